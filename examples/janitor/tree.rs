//! The folder tree: what is in it, and which paths are inside it.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use worker::Failure;

/// What compressed files end in.
pub(crate) const COMPRESSED: &str = "gz";
/// What files end in that are being written.
pub(crate) const PARTIAL: &str = "part";

/// A file of the tree.
pub(crate) struct Found {
    /// From the folder on, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) bytes: u64,
}

/// All plain files, by path, and how many could not be looked at.
pub(crate) fn files(folder: &Path) -> io::Result<(Vec<Found>, u64)> {
    let (mut found, mut n_skipped) = (Vec::new(), 0);
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        for entry in fs::read_dir(&inside)? {
            let entry = entry?;
            let path = entry.path();
            // A file may be gone again, and a link may lead anywhere.
            let Ok(metadata) = fs::symlink_metadata(&path) else {
                n_skipped += 1;
                continue;
            };
            if metadata.is_dir() {
                folders.push(path);
            } else if let Some(text) = path.strip_prefix(folder).ok().and_then(Path::to_str)
                && metadata.is_file()
            {
                found.push(Found { path: text.to_owned(), bytes: metadata.len() });
            } else {
                n_skipped += 1;
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok((found, n_skipped))
}

/// The file that a job names, if it is inside the folder.
pub(crate) fn inside(folder: &Path, path: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(path);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if path.as_os_str().is_empty() || !path.components().all(is_plain) {
        return Err(Failure::permanent(format!("`{}` is not inside the folder", path.display())));
    }
    Ok(folder.join(path))
}

/// Whether a file ends in this.
pub(crate) fn ends_in(path: &str, extension: &str) -> bool {
    Path::new(path).extension().is_some_and(|own| own == extension)
}

/// What the machine said, while doing something.
pub(crate) fn failed(doing: &str, path: &Path) -> impl Fn(io::Error) -> Failure {
    let text = format!("{doing} `{}`", path.display());
    move |error| Failure::transient(format!("{text}: {error}"))
}
