//! Directories of one attempt, that nobody else can read, and that go with it.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Where one attempt works.
#[derive(Debug)]
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes the directories for one attempt below `base`.
    pub(crate) fn create(base: &Path, name: &str) -> io::Result<Self> {
        let place = Self { root: base.join(name) };
        private(&place.root)?;
        private(&place.work())?;
        Ok(place)
    }

    /// Empty at first.
    pub(crate) fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Where a command may write its result.
    pub(crate) fn result_path(&self) -> PathBuf {
        self.root.join("result")
    }

    /// The result, if one was written: one byte more than allowed, if it is too long.
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
            tracing::warn!(%error, path = %self.root.display(), "could not remove a directory");
        }
    }
}

/// Makes a directory that only we can enter. It may not be there before.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}
