//! The habits that no linter checks, each a function over files that have been read already.

mod tree;
mod line;
mod length;
mod manifest;
mod purity;
mod rules;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

/// Prints every finding of every check, and fails when there is one.
pub(crate) fn run(root: &Path) -> Result<()> {
    let findings = findings(&tree::read(root)?);
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("1 finding"),
        n_findings => bail!("{n_findings} findings"),
    }
}

/// A text file of the repository.
struct File {
    /// From the root of the repository, with slashes.
    path: String,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    fn has_extension(&self, wanted: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|extension| extension == wanted)
    }

    /// Whether the whole file is tests.
    fn is_test(&self) -> bool {
        let mut names = self.path.split('/').rev();
        let name = names.next().unwrap_or_default();
        name == "tests.rs" || name.ends_with("_tests.rs") || names.any(|folder| folder == "tests")
    }

    /// The lines with their numbers, which start at one.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }
}

/// Something to put right, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    line: usize,
    sentence: String,
}

impl Finding {
    fn new(path: &str, line: usize, sentence: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, sentence: sentence.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.sentence)
    }
}

/// What all checks find, by path and line.
fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = [
        line::findings(files),
        length::findings(files, length::OVERLONG),
        manifest::findings(files),
        purity::findings(files),
        rules::findings(files),
    ]
    .concat();
    findings.sort();
    findings
}

/// What `check` finds in files given as path and text, as it would be printed.
#[cfg(test)]
fn found_by(check: impl Fn(&[File]) -> Vec<Finding>, files: &[(&str, &str)]) -> Vec<String> {
    let files: Vec<File> = files
        .iter()
        .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect();
    check(&files).iter().map(Finding::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_test(path: &str) -> bool {
        File { path: path.to_owned(), text: String::new() }.is_test()
    }

    #[test]
    fn files_of_tests_are_known_by_their_names() {
        assert!(is_test("crates/decide/tests/properties.rs"));
        assert!(is_test("crates/decide/src/share/tests.rs"));
        assert!(is_test("crates/decide/src/share_tests.rs"));
        assert!(!is_test("crates/decide/src/share.rs"));
        assert!(!is_test("crates/decide/src/attests.rs"));
    }

    #[test]
    fn findings_of_different_checks_come_in_the_order_of_the_files() {
        let long = format!("//! {}\n{}", "x".repeat(100), "\n".repeat(400));
        let found = found_by(findings, &[("crates/b/src/lib.rs", &long), ("a.md", "no newline")]);
        let paths: Vec<&str> = found.iter().filter_map(|line| line.split(": ").next()).collect();
        assert!(paths.is_sorted(), "{paths:?}");
        assert!(paths.contains(&"a.md:1") && paths.contains(&"crates/b/src/lib.rs:1"), "{paths:?}");
        assert!(paths.contains(&"crates/b/src/lib.rs:401"), "{paths:?}");
    }
}
