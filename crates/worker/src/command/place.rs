//! The directories of one attempt. Other users cannot read them, and they are removed at its end.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// The directories of one attempt.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// Creates the directories of one attempt in `base`.
    pub(crate) fn create(base: &Path, name: &str) -> io::Result<Self> {
        let place = Self { root: base.join(name) };
        private(&place.root)?;
        private(&place.work())?;
        Ok(place)
    }

    /// The working directory, empty at first.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The file for a result of the command.
    pub(crate) fn result_path(&self) -> PathBuf {
        self.root.join("result")
    }

    /// The result, if there is one. A result that is too long has one byte more than allowed.
    pub(crate) fn result(&self, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
        let path = self.result_path();
        let is_file = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            metadata => metadata?.is_file(),
        };
        if !is_file {
            return Err(io::Error::other("it is no file"));
        }
        let mut bytes = Vec::new();
        let bytes_max = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
        File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            tracing::warn!(%error, path = %self.root.display(), "command directory not removed");
        }
    }
}

/// Creates a directory that other users cannot enter. It must not exist.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}
