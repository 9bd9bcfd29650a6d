//! Where jobs are kept: a directory, or a Postgres.

use std::fmt;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use server::{Replayer, Secret};
use store::{Options, Postgres, Sqlite, Store};

use crate::print::Failure;
use crate::settings::All;

/// The database, in the data directory.
pub(crate) const DATABASE: &str = "maitre.db";
/// Who holds this open has the data directory.
const LOCK: &str = "lock";
/// A data directory of this name keeps everything in memory.
pub(crate) const MEMORY: &str = ":memory:";

/// Where jobs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// In a Postgres, at this address.
    Postgres(String),
}

/// An open store. The lock says whose it is.
pub(crate) struct Kept {
    pub(crate) store: Arc<dyn Store>,
    _lock: Option<File>,
}

impl Kept {
    /// One that is nobody's alone.
    pub(crate) const fn shared(store: Arc<dyn Store>) -> Self {
        Self { store, _lock: None }
    }
}

impl Place {
    /// Where settings say that jobs are kept.
    pub(crate) fn of(all: &All) -> Self {
        all.store.clone().unwrap_or_else(|| Self::Directory(all.data_dir.clone()))
    }

    /// What a URL names.
    pub(crate) fn named(url: &str) -> Result<Self, Failure> {
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.to_owned()));
        }
        if let Some(path) = url.strip_prefix("sqlite://") {
            let path = Path::new(path);
            let directory = path.parent().filter(|_| path.ends_with(DATABASE)).unwrap_or(path);
            return Ok(Self::Directory(directory.to_owned()));
        }
        let scheme = url.split_once("://").map_or(url, |(scheme, _)| scheme);
        Err(Failure::Input {
            error: format!("the store's address begins with `{scheme}`, which is no store"),
            hint: Some("use `postgres://user@host/database` or `sqlite://DIR`".to_owned()),
        })
    }

    /// This program, for replays of what is kept; what is in memory is for one process alone.
    pub(crate) fn replayer(&self) -> Option<Replayer> {
        let store = match self {
            Self::Directory(directory) if directory == Path::new(MEMORY) => return None,
            Self::Directory(directory) => format!("sqlite://{}", directory.display()),
            Self::Postgres(url) => url.clone(),
        };
        Some(Replayer {
            program: std::env::current_exe().ok()?,
            store: Secret::new(store),
            policies: crate::simulate::policies(),
        })
    }

    /// Opens the store, and takes it if only one may have it.
    pub(crate) async fn open(&self, options: Options) -> Result<Kept, Failure> {
        let unusable =
            |error: store::Error| Failure::Other(anyhow!(error).context("open the store"));
        let directory = match self {
            Self::Directory(directory) => directory,
            Self::Postgres(url) => {
                let store = Postgres::connect(url, options).await.map_err(unusable)?;
                return Ok(Kept::shared(Arc::new(store)));
            }
        };
        if directory == Path::new(MEMORY) {
            let store = Sqlite::in_memory(options).map_err(unusable)?;
            return Ok(Kept::shared(Arc::new(store)));
        }
        let lock = lock(directory)?;
        let store = Sqlite::open(&directory.join(DATABASE), options).map_err(unusable)?;
        Ok(Kept { store: Arc::new(store), _lock: Some(lock) })
    }
}

/// Without what is secret.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => write!(f, "{}", directory.display()),
            Self::Postgres(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
                let rest = rest.split('?').next().unwrap_or(rest);
                match rest.rsplit_once('@') {
                    Some((user, host)) => {
                        let user = user.split(':').next().unwrap_or(user);
                        write!(f, "{scheme}://{user}@{host}")
                    }
                    None => write!(f, "{scheme}://{rest}"),
                }
            }
        }
    }
}

/// Makes the directory if need be, and takes it.
pub(crate) fn lock(data_dir: &Path) -> Result<File, Failure> {
    let place = data_dir.display();
    let make = || -> anyhow::Result<File> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(data_dir)?;
        let path = data_dir.join(LOCK);
        Ok(File::options().create(true).truncate(false).write(true).open(path)?)
    };
    let file = make().with_context(|| format!("could not use `{place}` as data directory"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::Input {
            error: format!("another scheduler uses the data in `{place}`"),
            hint: Some("stop it, or name another directory with `--data-dir`".to_owned()),
        }),
        Err(TryLockError::Error(error)) => {
            Err(Failure::Other(anyhow!(error).context(format!("could not lock `{place}`"))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_store_and_its_password_is_not_shown() {
        let place = |url: &str| Place::named(url).map(|place| place.to_string()).ok();
        let shown = place("postgres://me:secret@host:5433/jobs?sslpassword=secret");
        assert_eq!(shown.as_deref(), Some("postgres://me@host:5433/jobs"));
        assert_eq!(place("sqlite://a/maitre.db").as_deref(), Some("a"));
        assert_eq!(place("sqlite://a/b").as_deref(), Some("a/b"));
        assert_eq!(place("mysql://secret@host"), None);
    }
}
