//! The binary, as a person or a program meets it.

mod decide;
mod simulate;
mod rules;
mod help;
mod reasons;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `maitre` in the root with `stdin`.
fn maitre(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_maitre"))
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("maitre starts");
    // A command that does not read its input may be gone by now.
    let _unread = child.stdin.take().expect("its input is a pipe").write_all(stdin.as_bytes());
    child.wait_with_output().expect("maitre ends")
}

/// What it said, when all went well.
fn said(arguments: &[&str], stdin: &str) -> String {
    let output = maitre(arguments, stdin);
    let stderr = String::from_utf8(output.stderr).expect("it speaks UTF-8");
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, "");
    String::from_utf8(output.stdout).expect("it speaks UTF-8")
}

/// What it complained about: exit code 2, and nothing on stdout.
fn refused(arguments: &[&str], stdin: &str) -> String {
    let output = maitre(arguments, stdin);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(output.stdout, b"");
    String::from_utf8(output.stderr).expect("it speaks UTF-8")
}

/// A file of the repository.
fn file(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("the file is in the repository")
}
