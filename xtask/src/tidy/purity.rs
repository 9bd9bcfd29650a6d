//! The pure crates keep their bans: no clock, no chance, no threads, no world outside.
//!
//! Said twice, here and in the settings of each crate, so that no ban can be dropped in passing.

use super::manifest::settings;
use super::{File, Finding};

/// Crates that only compute.
const PURE: &[&str] = &["crates/model/", "crates/decide/"];

/// The one file that may make an exception: it looks up by hash and never walks in hash order.
const EXCEPTION: &str = "crates/decide/src/index.rs";

/// Lints, and groups of lints, without which a ban says nothing.
const LINTS: &[&str] =
    &["clippy::disallowed_methods", "clippy::disallowed_types", "clippy::style", "clippy::all"];

/// What the workspace says about bans.
const DENIED: &[&str] = &["disallowed_methods = \"deny\"", "disallowed_types = \"deny\""];

/// Must be under `disallowed-methods`.
const METHODS: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::time::Instant::elapsed",
    "std::time::SystemTime::elapsed",
    "std::thread::available_parallelism",
    "std::thread::current",
    "std::thread::scope",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::env::args",
    "std::env::args_os",
    "std::env::current_dir",
    "std::env::current_exe",
    "std::env::home_dir",
    "std::env::remove_var",
    "std::env::set_current_dir",
    "std::env::set_var",
    "std::env::temp_dir",
    "std::env::var",
    "std::env::var_os",
    "std::env::vars",
    "std::env::vars_os",
    "std::fs::canonicalize",
    "std::fs::copy",
    "std::fs::create_dir",
    "std::fs::create_dir_all",
    "std::fs::exists",
    "std::fs::hard_link",
    "std::fs::metadata",
    "std::fs::read",
    "std::fs::read_dir",
    "std::fs::read_link",
    "std::fs::read_to_string",
    "std::fs::remove_dir",
    "std::fs::remove_dir_all",
    "std::fs::remove_file",
    "std::fs::rename",
    "std::fs::set_permissions",
    "std::fs::symlink_metadata",
    "std::fs::write",
    "std::path::Path::canonicalize",
    "std::path::Path::exists",
    "std::path::Path::is_dir",
    "std::path::Path::is_file",
    "std::path::Path::is_symlink",
    "std::path::Path::metadata",
    "std::path::Path::read_dir",
    "std::path::Path::read_link",
    "std::path::Path::symlink_metadata",
    "std::path::Path::try_exists",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net::ToSocketAddrs::to_socket_addrs",
    "std::process::abort",
    "std::process::exit",
    "std::process::id",
];

/// Must be under `disallowed-types`.
const TYPES: &[&str] = &[
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::collections::hash_map::RandomState",
    "std::hash::RandomState",
    "std::fs::DirBuilder",
    "std::fs::File",
    "std::fs::OpenOptions",
    "std::thread::Builder",
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "std::process::Command",
];

pub(super) fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings = undenied(files);
    for pure in PURE {
        findings.extend(dropped(files, &format!("{pure}clippy.toml")));
    }
    for file in files {
        let is_pure = PURE.iter().any(|pure| file.path.starts_with(pure));
        if is_pure && file.is_rust() && !file.is_test() && file.path != EXCEPTION {
            findings.extend(exceptions(file));
        }
    }
    findings
}

/// Bans that are not refusals any more.
fn undenied(files: &[File]) -> Vec<Finding> {
    let manifest = files.iter().find(|file| file.path == "Cargo.toml");
    let manifest = manifest.map_or("", |file| file.text.as_str());
    DENIED
        .iter()
        .filter(|denied| settings(manifest).all(|line| line != **denied))
        .map(|denied| Finding::new("Cargo.toml", 1, format!("the lints do not say `{denied}`")))
        .collect()
}

/// Bans that a pure crate does not have.
fn dropped(files: &[File], path: &str) -> Vec<Finding> {
    let file = files.iter().find(|file| file.path == path);
    let banned = banned(file.map_or("", |file| file.text.as_str()));
    let needed = [("disallowed-methods", METHODS), ("disallowed-types", TYPES)];
    let mut findings: Vec<Finding> = Vec::new();
    for (list, paths) in needed {
        for ban in paths {
            if !banned.contains(&(list, ban)) {
                let sentence = format!("`{ban}` must be under `{list}`");
                findings.push(Finding::new(path, 1, sentence));
            }
        }
    }
    findings
}

/// Each ban of a file of settings, with the name of the list that it is in. One ban, one line.
fn banned(text: &str) -> Vec<(&str, &str)> {
    let mut list = "";
    let mut banned: Vec<(&str, &str)> = Vec::new();
    for line in settings(text) {
        if let Some(name) = line.strip_suffix(" = [") {
            list = name;
        } else if line == "]" {
            list = "";
        } else if let Some((path, _)) =
            line.strip_prefix("{ path = \"").and_then(|rest| rest.split_once('"'))
        {
            banned.push((list, path));
        }
    }
    banned
}

/// Code that steps around a ban.
fn exceptions(file: &File) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (number, line) in file.lines() {
        for lint in LINTS.iter().filter(|lint| line.contains(**lint)) {
            let sentence = format!("`{lint}` has one exception, {EXCEPTION}");
            findings.push(Finding::new(&file.path, number, sentence));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::found_by;
    use super::*;

    const MANIFEST: (&str, &str) = (
        "Cargo.toml",
        "[workspace.lints.clippy]\ndisallowed_methods = \"deny\"\ndisallowed_types = \"deny\"\n",
    );
    const DECIDE: &str = include_str!("../../../crates/decide/clippy.toml");
    const MODEL: &str = include_str!("../../../crates/model/clippy.toml");

    /// What is found when `crates/decide/clippy.toml` is `decide` and there is one file more.
    fn found(decide: &str, (path, text): (&str, &str)) -> Vec<String> {
        let settings = [("crates/decide/clippy.toml", decide), ("crates/model/clippy.toml", MODEL)];
        found_by(findings, &[MANIFEST, settings[0], settings[1], (path, text)])
    }

    #[test]
    fn the_committed_bans_are_complete() {
        assert_eq!(found(DECIDE, ("README.md", "")), Vec::<String>::new());
    }

    #[test]
    fn no_ban_can_be_dropped() {
        let lists = [("disallowed-methods", METHODS), ("disallowed-types", TYPES)];
        for (list, bans) in lists {
            for ban in bans {
                let quoted = format!("\"{ban}\"");
                let kept: Vec<&str> =
                    DECIDE.lines().filter(|line| !line.contains(&quoted)).collect();
                assert_eq!(
                    found(&kept.join("\n"), ("README.md", "")),
                    [format!("crates/decide/clippy.toml:1: `{ban}` must be under `{list}`")]
                );
            }
        }
    }

    #[test]
    fn no_ban_can_be_commented_out_or_moved_to_the_wrong_list() {
        let ban = "{ path = \"std::collections::HashMap\"";
        let out = DECIDE.replace(ban, &format!("# {ban}"));
        assert_eq!(found(&out, ("README.md", "")).len(), 1);
        let moved = DECIDE.replace("disallowed-types = [", "disallowed-macros = [");
        assert_eq!(found(&moved, ("README.md", "")).len(), TYPES.len());
    }

    #[test]
    fn a_pure_crate_without_settings_is_found() {
        let files = [MANIFEST, ("crates/decide/clippy.toml", DECIDE)];
        assert_eq!(found_by(findings, &files).len(), METHODS.len() + TYPES.len());
    }

    #[test]
    fn a_ban_that_only_warns_is_found() {
        let manifest = MANIFEST.1.replace("types = \"deny\"", "types = \"warn\"");
        let settings = [("crates/decide/clippy.toml", DECIDE), ("crates/model/clippy.toml", MODEL)];
        assert_eq!(
            found_by(findings, &[("Cargo.toml", &manifest), settings[0], settings[1]]),
            ["Cargo.toml:1: the lints do not say `disallowed_types = \"deny\"`"]
        );
    }

    #[test]
    fn an_exception_in_a_pure_crate_is_found() {
        let text = "//! Fine.\n#![expect(clippy::disallowed_types, reason = \"quick\")]\n";
        assert_eq!(
            found(DECIDE, ("crates/decide/src/share.rs", text)),
            ["crates/decide/src/share.rs:2: \
              `clippy::disallowed_types` has one exception, crates/decide/src/index.rs"]
        );
        for path in [EXCEPTION, "crates/decide/tests/golden.rs", "crates/cli/src/main.rs"] {
            assert_eq!(found(DECIDE, (path, text)), Vec::<String>::new());
        }
    }
}
