//! Pages that are written by the program they describe, and committed.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::shell;

/// Each generated page with the command line that prints it.
const PAGES: &[(&str, &[&str])] =
    &[("docs/rules.md", &["cargo", "run", "-q", "-p", "cli", "--", "rules", "--markdown"])];

/// Writes every generated page.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (page, line) in PAGES {
        let path = root.join(page);
        let text = shell::read(root, line)?;
        let folder = path.parent().expect("a page is in a folder");
        fs::create_dir_all(folder).with_context(|| format!("could not make room for {page}"))?;
        fs::write(&path, text).with_context(|| format!("could not write {page}"))?;
        println!("wrote {page}");
    }
    Ok(())
}

/// Fails when a committed page is not what the program would print now.
pub(crate) fn check(root: &Path) -> Result<()> {
    for (page, line) in PAGES {
        let printed = shell::read(root, line)?;
        let committed = fs::read_to_string(root.join(page)).unwrap_or_default();
        if let Some(line) = first_difference(&committed, &printed) {
            bail!("{page}:{line}: the page is stale; run `cargo xtask docs` and commit it");
        }
    }
    Ok(())
}

/// The number of the first line that differs.
fn first_difference(committed: &str, printed: &str) -> Option<usize> {
    if committed == printed {
        return None;
    }
    let n_same = committed
        .split_inclusive('\n')
        .zip(printed.split_inclusive('\n'))
        .take_while(|(committed, printed)| committed == printed)
        .count();
    Some(n_same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_up_to_date_does_not_differ() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
    }

    #[test]
    fn the_first_stale_line_is_named() {
        assert_eq!(first_difference("a\nb\nc\n", "a\nB\nC\n"), Some(2));
    }

    #[test]
    fn a_page_that_is_too_short_differs_after_its_end() {
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("", "a\n"), Some(1));
    }

    #[test]
    fn a_missing_last_newline_is_a_difference() {
        assert_eq!(first_difference("a\nb", "a\nb\n"), Some(2));
    }
}
