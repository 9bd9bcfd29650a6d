//! Where the jobs of a benchmark are kept: each time somewhere empty, and gone at the end.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use store::Scratch;
use tempfile::TempDir;

use crate::place::Place;
use crate::print::Failure;

/// A store in a file. Any other store is the address of a Postgres.
const SQLITE: &str = "sqlite";

/// Where empty stores are made.
pub(crate) struct Data {
    directory: TempDir,
    server: Option<Server>,
}

/// A Postgres, and the databases that the benchmark made there.
struct Server {
    url: String,
    databases: Mutex<Vec<Arc<Scratch>>>,
}

/// An empty store.
pub(crate) struct Fresh {
    pub(crate) directory: PathBuf,
    pub(crate) place: Place,
    database: Option<Arc<Scratch>>,
}

impl Data {
    /// In `dir`, or where the system keeps what is temporary.
    pub(crate) fn of(store: &str, dir: Option<&Path>) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("maitre-bench-")
            .tempdir_in(dir.map_or_else(std::env::temp_dir, Path::to_owned));
        let directory = directory.context("make a directory for the data")?;
        let server = match Place::named(store) {
            _ if store == SQLITE => None,
            Ok(Place::Postgres(url)) => Some(Server { url, databases: Mutex::default() }),
            Ok(Place::Directory(_)) | Err(_) => return Err(refused(store)),
        };
        Ok(Self { directory, server })
    }

    pub(crate) const fn is_shared(&self) -> bool {
        self.server.is_some()
    }

    /// An empty store of this name. Databases that no measurement uses any more are removed first.
    pub(crate) async fn fresh(&self, name: &str) -> Result<Fresh, Failure> {
        let directory = self.directory.path().join(name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).context("remove old data")?;
        }
        std::fs::create_dir(&directory).context("make a directory for the data")?;
        let Some(server) = &self.server else {
            let place = Place::Directory(directory.join("data"));
            return Ok(Fresh { directory, place, database: None });
        };
        server.remove_unused().await?;
        let database = server.database().await?;
        let place = Place::Postgres(database.url());
        Ok(Fresh { directory, place, database: Some(database) })
    }

    /// Removes the databases that are left on a Postgres.
    pub(crate) async fn remove(self) -> Result<(), Failure> {
        match &self.server {
            Some(server) => server.remove_unused().await,
            None => Ok(()),
        }
    }
}

fn refused(store: &str) -> Failure {
    Failure::Input {
        error: format!("`--store {store}` cannot be measured"),
        hint: Some(
            "use `sqlite`, or the address of a server: `postgres://user@host/postgres`; in the \
             source, `cargo xtask bench-postgres` starts a server for a benchmark; `--dir` says \
             on which disk SQLite writes"
                .to_owned(),
        ),
    }
}

impl Server {
    async fn database(&self) -> Result<Arc<Scratch>, Failure> {
        let database = Arc::new(Scratch::create(&self.url).await.map_err(failed)?);
        self.databases().push(Arc::clone(&database));
        Ok(database)
    }

    async fn remove_unused(&self) -> Result<(), Failure> {
        let is_unused = |database: &mut Arc<Scratch>| Arc::strong_count(database) == 1;
        let unused: Vec<_> = self.databases().extract_if(.., is_unused).collect();
        for database in unused {
            database.remove().await.map_err(failed)?;
        }
        Ok(())
    }

    fn databases(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Scratch>>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(error: store::Error) -> Failure {
    anyhow!(error).context("could not use the Postgres that `--store` names").into()
}

impl Fresh {
    /// Whether several may use it at once.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self.place, Place::Postgres(_))
    }

    /// Lets a Postgres count its rows, which it does by itself once a minute.
    pub(crate) async fn count(&self) -> Result<(), Failure> {
        match &self.database {
            Some(database) => database.analyze().await.map_err(failed),
            None => Ok(()),
        }
    }

    /// What tells a scheduler to keep its jobs here.
    pub(crate) fn words(&self) -> [String; 2] {
        match &self.place {
            Place::Directory(data) => ["--data-dir".to_owned(), data.display().to_string()],
            Place::Postgres(url) => ["--store".to_owned(), url.clone()],
        }
    }
}

#[cfg(test)]
mod tests {
    use cluster::Cluster;
    use store::{Options, Postgres};

    use super::*;

    #[tokio::test]
    async fn a_benchmark_leaves_no_database_on_a_server_of_the_user() {
        let cluster = Cluster::shared().unwrap();
        let data = Data::of(&cluster.url("postgres"), None).unwrap();
        let urls = {
            let (one, two) = (data.fresh("one").await.unwrap(), data.fresh("two").await.unwrap());
            assert_ne!(one.words(), two.words(), "each measurement has a database of its own");
            drop(one.place.open(Options::default()).await.unwrap());
            one.count().await.unwrap();
            [one, two].map(|fresh| fresh.words()[1].clone())
        };
        data.remove().await.unwrap();
        for url in urls {
            let gone = Postgres::connect(&url, Options::default()).await.err().unwrap();
            assert!(gone.to_string().contains("does not exist"), "{gone}");
        }
    }

    #[test]
    fn only_sqlite_and_addresses_of_a_postgres_are_measured() {
        let is_shared = |store| Data::of(store, None).map(|data| data.is_shared()).ok();
        assert_eq!(is_shared("sqlite"), Some(false));
        assert_eq!(is_shared("postgres://me@host/postgres"), Some(true));
        for store in ["postgres", "sqlite:///tmp/x", "mysql://host", ""] {
            let Some(Failure::Input { hint: Some(hint), .. }) = Data::of(store, None).err() else {
                panic!("`{store}` is refused");
            };
            assert!(hint.contains("cargo xtask bench-postgres"), "{hint}");
        }
    }
}
