//! Every crate takes the lints of the workspace, and repeats their settings where it adds its own.

use super::{File, Finding};

const SETTINGS: &str = "clippy.toml";

pub(super) fn findings(files: &[File]) -> Vec<Finding> {
    let root = files.iter().find(|file| file.path == SETTINGS);
    let root = root.map_or("", |file| file.text.as_str());

    let mut findings: Vec<Finding> = Vec::new();
    for file in files {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        match name {
            "Cargo.toml" => findings.extend(without_lints(file)),
            SETTINGS => findings.extend(unrepeated(root, file)),
            ".clippy.toml" => {
                let sentence = "this would win over `clippy.toml`; there is one name for settings";
                findings.push(Finding::new(&file.path, 1, sentence));
            }
            _ => {}
        }
    }
    findings
}

/// The lines of a file of settings that mean something.
pub(super) fn settings(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn without_lints(manifest: &File) -> Option<Finding> {
    let mut section = "";
    // One that is a workspace of its own is not of ours.
    let (mut is_package, mut is_workspace) = (false, false);
    for line in settings(&manifest.text) {
        if line.starts_with('[') {
            section = line;
            is_package |= section == "[package]";
            is_workspace |= section == "[workspace]";
        }
        if section == "[lints]" && line == "workspace = true" {
            return None;
        }
    }
    let sentence = "the crate does not say `[lints] workspace = true`";
    (is_package && !is_workspace).then(|| Finding::new(&manifest.path, 1, sentence))
}

/// Clippy reads the nearest file of settings and no other, so the nearest must have all lines.
fn unrepeated(root: &str, file: &File) -> Vec<Finding> {
    settings(root)
        .filter(|line| settings(&file.text).all(|repeated| repeated != *line))
        .map(|line| {
            let sentence = format!("the root's line `{line}` is not repeated here");
            Finding::new(&file.path, 1, sentence)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::found_by;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        found_by(findings, files)
    }

    #[test]
    fn a_crate_with_the_lints_of_the_workspace_is_fine() {
        let text = "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n";
        assert_eq!(found(&[("crates/a/Cargo.toml", text)]), Vec::<String>::new());
    }

    #[test]
    fn a_workspace_without_a_package_needs_no_lints() {
        assert_eq!(found(&[("Cargo.toml", "[workspace]\n")]), Vec::<String>::new());
        let own = [("bench/a/Cargo.toml", "[package]\n[workspace]\n")];
        assert_eq!(found(&own), Vec::<String>::new());
    }

    #[test]
    fn a_crate_without_the_lints_of_the_workspace_is_found() {
        let expected = ["crates/a/Cargo.toml:1: the crate does not say `[lints] workspace = true`"];
        for lints in ["", "[lints]\n", "# [lints]\n# workspace = true\n"] {
            let text = format!("[package]\nname = \"a\"\n{lints}");
            assert_eq!(found(&[("crates/a/Cargo.toml", &text)]), expected);
        }
        let elsewhere = "[package]\n[dependencies.b]\nworkspace = true\n";
        assert_eq!(found(&[("crates/a/Cargo.toml", elsewhere)]), expected);
    }

    #[test]
    fn settings_of_a_crate_may_add_lines() {
        let root = "# Ours.\nfew = 5\nbans = [\n    \"a\",\n]\n";
        let own = "bans = [\n    \"a\",\n    \"b\",\n]\n\nfew = 5\n";
        let files = [("clippy.toml", root), ("crates/a/clippy.toml", own)];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn settings_of_a_crate_may_not_lack_lines() {
        let files = [
            ("clippy.toml", "few = 5\nlong = 70\n"),
            ("crates/a/clippy.toml", "few = 6\n# long = 70\n"),
        ];
        assert_eq!(
            found(&files),
            [
                "crates/a/clippy.toml:1: the root's line `few = 5` is not repeated here",
                "crates/a/clippy.toml:1: the root's line `long = 70` is not repeated here",
            ]
        );
    }

    #[test]
    fn settings_under_another_name_are_found() {
        assert_eq!(
            found(&[("crates/a/.clippy.toml", "")]),
            ["crates/a/.clippy.toml:1: \
              this would win over `clippy.toml`; there is one name for settings"]
        );
    }
}
