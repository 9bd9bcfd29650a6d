//! Where the jobs of a benchmark are kept: each time somewhere empty, and gone at the end.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cluster::{Cluster, Database, Sync};
use tempfile::TempDir;

use crate::place::Place;
use crate::print::Failure;

/// What kind of store: a URL of a Postgres, or one of these words.
const SQLITE: &str = "sqlite";
const POSTGRES: &str = "postgres";

/// Where empty stores are made.
pub(crate) struct Data {
    directory: TempDir,
    cluster: Option<Cluster>,
}

/// An empty store; it is removed with this.
pub(crate) struct Fresh {
    pub(crate) directory: PathBuf,
    pub(crate) place: Place,
    database: Option<Database>,
}

impl Data {
    /// In `dir`, or where the system keeps what is temporary.
    pub(crate) fn of(store: &str, dir: Option<&Path>) -> Result<Self, Failure> {
        let directory = tempfile::Builder::new()
            .prefix("maitre-bench-")
            .tempdir_in(dir.map_or_else(std::env::temp_dir, Path::to_owned));
        let directory = directory.context("make a directory for the data")?;
        let cluster = match store {
            SQLITE => None,
            POSTGRES => Some(Cluster::start(Sync::On).context("start a Postgres of its own")?),
            url if matches!(Place::named(url)?, Place::Postgres(_)) => Some(Cluster::at(url)),
            _ => {
                return Err(Failure::Input {
                    error: format!("`--store {store}` cannot be measured"),
                    hint: Some(
                        "use `sqlite`, `postgres` for a server of its own, or a `postgres://` \
                         address; `--dir` says on which disk SQLite writes"
                            .to_owned(),
                    ),
                });
            }
        };
        Ok(Self { directory, cluster })
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.cluster.is_some()
    }

    /// An empty store of this name.
    pub(crate) fn fresh(&self, name: &str) -> Result<Fresh, Failure> {
        let directory = self.directory.path().join(name);
        if directory.exists() {
            std::fs::remove_dir_all(&directory).context("remove old data")?;
        }
        std::fs::create_dir(&directory).context("make a directory for the data")?;
        let Some(cluster) = &self.cluster else {
            let place = Place::Directory(directory.join("data"));
            return Ok(Fresh { directory, place, database: None });
        };
        let database = cluster.database().context("make an empty database")?;
        let place = Place::Postgres(database.url().to_owned());
        Ok(Fresh { directory, place, database: Some(database) })
    }
}

impl Fresh {
    /// Whether several may use it at once.
    pub(crate) const fn is_shared(&self) -> bool {
        matches!(self.place, Place::Postgres(_))
    }

    /// Lets a Postgres count its rows, which it does by itself once a minute.
    pub(crate) fn count(&self) -> Result<(), Failure> {
        let counted = self.database.as_ref().map_or(Ok(()), |database| database.say("ANALYZE"));
        Ok(counted.context("have rows counted")?)
    }

    /// What tells a scheduler to keep its jobs here.
    pub(crate) fn words(&self) -> [String; 2] {
        match &self.place {
            Place::Directory(data) => ["--data-dir".to_owned(), data.display().to_string()],
            Place::Postgres(url) => ["--store".to_owned(), url.clone()],
        }
    }
}
