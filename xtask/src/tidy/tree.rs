//! Reads the text files of the repository.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::File;
use crate::shell;

/// Folders that are never part of the repository.
const FOREIGN: &[&str] = &[".git", "target"];

/// Every text file that is tracked or about to be; outside a checkout, every text file.
pub(super) fn read(root: &Path) -> Result<Vec<File>> {
    let mut files: Vec<File> = Vec::new();
    for path in paths(root)? {
        let full = root.join(&path);
        // A file that was deleted and not yet committed is still listed.
        if !full.is_file() {
            continue;
        }
        let bytes = fs::read(&full).with_context(|| format!("could not read {path}"))?;
        if let Some(text) = text(bytes) {
            files.push(File { path, text });
        }
    }
    Ok(files)
}

fn text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn paths(root: &Path) -> Result<Vec<String>> {
    let mut paths: Vec<String> = Vec::new();
    match from_git(root) {
        Some(listed) => paths = listed,
        None => walk(root, "", &mut paths)?,
    }
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// Git may be missing, or refuse a checkout that belongs to somebody else: then there is no list.
fn from_git(root: &Path) -> Option<Vec<String>> {
    if !root.join(".git").exists() {
        return None;
    }
    let line = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    shell::read(root, &line).ok().map(|output| listed(&output))
}

fn listed(output: &str) -> Vec<String> {
    output.split_terminator('\0').map(str::to_owned).collect()
}

fn walk(root: &Path, folder: &str, paths: &mut Vec<String>) -> Result<()> {
    let entries =
        fs::read_dir(root.join(folder)).with_context(|| format!("could not list {folder:?}"))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("could not list {folder:?}"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type().with_context(|| format!("could not look at {path}"))?;
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && !FOREIGN.contains(&name.as_str()) {
            walk(root, &path, paths)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_read_as_text() {
        assert_eq!(text(b"plain\n".to_vec()).as_deref(), Some("plain\n"));
        assert_eq!(text(b"PNG\0".to_vec()), None);
        assert_eq!(text(vec![0xff, 0xfe]), None);
    }

    #[test]
    fn paths_with_spaces_stay_whole() {
        assert_eq!(listed("a b.md\0c.rs\0"), ["a b.md", "c.rs"]);
    }

    #[test]
    fn a_walk_finds_this_file() {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut paths = Vec::new();
        walk(package, "", &mut paths).expect("the package can be listed");
        assert!(paths.contains(&"src/tidy/tree.rs".to_owned()), "{paths:?}");
    }
}
