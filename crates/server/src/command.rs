//! Which program a job runs, as far as its payload says so.

use model::Spec;
use serde::Deserialize;

/// Types of jobs that bring their own command.
const EXEC: &str = "exec";
/// Payloads beyond this are not read: they hold more than a command.
const PAYLOAD_MAX: usize = 64 << 10;
/// Programs that run another: what they run tells more.
const RUNNERS: [&str; 12] = [
    "sh", "bash", "dash", "zsh", "env", "nice", "python", "python3", "node", "perl", "ruby", "java",
];

#[derive(Deserialize)]
struct Call {
    argv: Vec<String>,
}

/// The program of a job of type `exec`, without its folder; of one that runs another, both. `None`
/// if the payload does not say.
pub(crate) fn program(spec: &Spec) -> Option<String> {
    if spec.kind.to_string() != EXEC || spec.payload.len() > PAYLOAD_MAX {
        return None;
    }
    let Call { argv } = serde_json::from_slice(&spec.payload).ok()?;
    let mut words = argv.iter().map(|word| word.rsplit('/').next().unwrap_or(word));
    let program = words.next()?;
    let script = words.find(|word| !word.starts_with('-'));
    match script.filter(|_| RUNNERS.contains(&program)) {
        Some(script) => Some(format!("{program} {script}")),
        None => Some(program.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use model::{Name, TenantId};

    use super::*;

    #[test]
    fn the_program_is_told_and_what_it_runs() {
        let of = |kind: &str, payload: &str| {
            let spec = Spec::new(TenantId::new("a"), Name::new(kind));
            program(&Spec { payload: payload.as_bytes().to_vec(), ..spec })
        };
        assert_eq!(of("exec", r#"{"argv": ["/bin/make", "all"]}"#).as_deref(), Some("make"));
        let script = r#"{"argv": ["python3", "-u", "jobs/train.py", "7"], "dir": "/tmp"}"#;
        assert_eq!(of("exec", script).as_deref(), Some("python3 train.py"));
        assert_eq!(of("exec", r#"{"argv": ["sh"]}"#).as_deref(), Some("sh"));
        let untold = [of("pdf", script), of("exec", "7"), of("exec", r#"{"argv": []}"#)];
        assert!(untold.iter().all(Option::is_none), "{untold:?}");
    }
}
