//! A temporary directory, removed after the test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

static NUMBER: AtomicU64 = AtomicU64::new(0);

pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    /// A directory in memory if there is one, for tests that are not about disks.
    pub(crate) fn quick() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::under(memory) } else { Self::new() }
    }

    fn under(directory: &Path) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("maitre-store-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("maitre.db")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
