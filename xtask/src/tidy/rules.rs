//! A rule that is not listed is not compiled, and nobody would notice.

use super::{File, Finding};

const FOLDER: &str = "crates/decide/src/rules/";

pub(super) fn findings(files: &[File]) -> Vec<Finding> {
    let rules: Vec<(&str, &File)> = files
        .iter()
        .filter_map(|file| file.path.strip_prefix(FOLDER).map(|name| (name, file)))
        .filter(|(_, file)| file.is_rust())
        .collect();
    let list = rules.iter().find(|(name, _)| *name == "mod.rs");
    let list = list.map_or("", |(_, file)| file.text.as_str());

    let mut findings: Vec<Finding> = Vec::new();
    for (name, file) in &rules {
        let module = name.split('/').next().unwrap_or(name).trim_end_matches(".rs");
        let is_named = rules.iter().any(|(_, other)| names_path(&other.text, name));
        if module != "mod" && !is_named && !lists(list, module) {
            let sentence = format!("`mod {module};` is not in {FOLDER}mod.rs");
            findings.push(Finding::new(&file.path, 1, sentence));
        }
    }
    findings
}

/// Whether a file has `mod module;`, whatever its visibility.
fn lists(text: &str, module: &str) -> bool {
    let wanted = format!("mod {module};");
    text.lines().filter_map(|line| line.trim().strip_suffix(wanted.as_str())).any(|visibility| {
        let visibility = visibility.trim_end();
        visibility.is_empty() || (visibility.starts_with("pub") && !visibility.contains(' '))
    })
}

/// Whether a file takes another one in as `#[path = "share_tests.rs"]`.
fn names_path(text: &str, name: &str) -> bool {
    let attribute = format!("#[path = \"{name}\"]");
    text.lines().any(|line| line.trim() == attribute)
}

#[cfg(test)]
mod tests {
    use super::super::found_by;
    use super::*;

    /// The rules as files in their folder.
    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let paths: Vec<String> = files.iter().map(|(name, _)| format!("{FOLDER}{name}")).collect();
        let files: Vec<(&str, &str)> =
            paths.iter().map(String::as_str).zip(files.iter().map(|(_, text)| *text)).collect();
        found_by(findings, &files)
    }

    #[test]
    fn a_listed_rule_is_fine() {
        let list = "mod warm;\npub mod cold;\npub(crate) mod near;\n";
        let files = [("mod.rs", list), ("warm.rs", ""), ("cold.rs", ""), ("near/far.rs", "")];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn a_rule_that_is_not_listed_is_found() {
        for list in ["", "mod warmer;\n", "// mod warm;\n", "submod warm;\n", "use warm;\n"] {
            assert_eq!(
                found(&[("mod.rs", list), ("warm.rs", "")]),
                ["crates/decide/src/rules/warm.rs:1: \
                  `mod warm;` is not in crates/decide/src/rules/mod.rs"]
            );
        }
    }

    #[test]
    fn rules_without_a_list_are_found() {
        assert_eq!(found(&[("warm.rs", "")]).len(), 1);
    }

    #[test]
    fn tests_that_a_rule_takes_in_by_path_need_not_be_listed() {
        let rule = "#[cfg(test)]\n#[path = \"warm_tests.rs\"]\nmod tests;\n";
        let files = [("mod.rs", "mod warm;\n"), ("warm.rs", rule), ("warm_tests.rs", "")];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
