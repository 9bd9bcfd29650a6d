//! The JSON payload of a job.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::Failure;

/// The payload of a job with its own command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exec {
    pub(crate) argv: Vec<String>,
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// `None` means an empty directory of its own.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) stdin: Option<String>,
}

/// The payload of a job for a command that the worker defines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Args {
    pub(crate) args: Vec<String>,
    pub(crate) stdin: Option<String>,
}

impl Exec {
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Failure> {
        let exec: Self = read(payload)?;
        if exec.argv.first().is_none_or(String::is_empty) {
            return Err(wrong("argv", "has no program in it"));
        }
        words("argv", &exec.argv)?;
        variables(&exec.env)?;
        Ok(exec)
    }
}

impl Args {
    /// An empty payload means no arguments.
    pub(crate) fn read(payload: &[u8]) -> Result<Self, Failure> {
        if payload.is_empty() {
            return Ok(Self::default());
        }
        let args: Self = read(payload)?;
        words("args", &args.args)?;
        Ok(args)
    }
}

fn read<T: DeserializeOwned>(payload: &[u8]) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(payload);
    let read = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        // A single dot is the whole payload.
        let field = if path == "." { "payload".to_owned() } else { format!("payload.{path}") };
        Failure::permanent(format!("`{field}` is wrong: {}", error.into_inner()))
    })?;
    json.end().map_err(|error| Failure::permanent(format!("`payload` is wrong: {error}")))?;
    Ok(read)
}

/// The kernel ends an argument at a zero byte.
fn words(field: &str, words: &[String]) -> Result<(), Failure> {
    match words.iter().position(|word| word.contains('\0')) {
        Some(index) => Err(wrong(&format!("{field}[{index}]"), "has a zero in it")),
        None => Ok(()),
    }
}

fn variables(env: &BTreeMap<String, String>) -> Result<(), Failure> {
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(wrong("env", &format!("has `{}`, which is no name", name.escape_debug())));
        }
        if value.contains('\0') {
            return Err(wrong(&format!("env.{name}"), "has a zero in it"));
        }
    }
    Ok(())
}

fn wrong(field: &str, problem: &str) -> Failure {
    Failure::permanent(format!("`payload.{field}` {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureKind;

    fn problem(payload: &str) -> String {
        let failure = Exec::read(payload.as_bytes()).unwrap_err();
        assert_eq!(failure.kind, FailureKind::Permanent);
        failure.text
    }

    #[test]
    fn a_wrong_payload_is_named_by_its_field() {
        assert!(problem("").starts_with("`payload` is wrong: EOF"));
        assert!(problem("[]").starts_with("`payload` is wrong: "));
        assert!(problem(r#"{"argv": ["a", 7]}"#).starts_with("`payload.argv[1]` is wrong: "));
        assert!(problem(r#"{"argv": ["a"], "shell": 1}"#).contains("unknown field `shell`"));
        assert!(problem(r#"{"env": {}}"#).contains("missing field `argv`"));
        assert!(problem(r#"{"argv": ["a"]} more"#).starts_with("`payload` is wrong: trailing"));
        assert_eq!(problem(r#"{"argv": []}"#), "`payload.argv` has no program in it");
        assert_eq!(problem(r#"{"argv": ["a", "\u0000"]}"#), "`payload.argv[1]` has a zero in it");
        let env = r#"{"argv": ["a"], "env": {"A=B": ""}}"#;
        assert_eq!(problem(env), "`payload.env` has `A=B`, which is no name");
    }

    #[test]
    fn a_command_of_the_workers_needs_no_payload() {
        assert_eq!(Args::read(b"").unwrap(), Args::default());
        assert_eq!(Args::read(br#"{"args": ["x"]}"#).unwrap().args, ["x"]);
        let failure = Args::read(br#"{"argv": ["x"]}"#).unwrap_err();
        assert!(failure.text.contains("unknown field `argv`"), "{failure}");
    }
}
