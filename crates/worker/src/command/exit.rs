//! The outcome of a command.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use model::Measured;

use crate::{Done, Failure};

/// Exit codes of permanent failures, as `sysexits.h` and shells define them: wrong usage, data or
/// input, no permission, wrong configuration, cannot be executed, not found.
pub(super) const PERMANENT_CODES: [i32; 7] = [64, 65, 66, 77, 78, 126, 127];

/// Shells add this to the number of the signal that ended a command.
const CODE_SIGNAL: i32 = 128;
const SIGNAL_KILL: i32 = 9;

/// The end of a command.
#[derive(Debug)]
pub(super) struct Exit<'a> {
    pub(super) status: ExitStatus,
    pub(super) measured: Measured,
    /// Whether the kernel killed a process for lack of memory meanwhile.
    pub(super) memory_was_short: bool,
    /// Whether the worker stopped it. Then a success does not count.
    pub(super) was_told: bool,
    pub(super) tail: String,
    pub(super) permanent_codes: &'a [i32],
}

impl Exit<'_> {
    /// The outcome of the attempt.
    pub(super) fn outcome(self) -> Result<Done, Failure> {
        let signal = self.status.signal();
        let code = self.status.code().or(signal.map(|signal| CODE_SIGNAL + signal));
        let mut measured = self.measured;
        if self.status.success() && !self.was_told {
            return Ok(Done { exit_code: code, measured, ..Done::new() });
        }
        // Either the command itself, or a command that its shell ran.
        let was_killed = code == Some(CODE_SIGNAL + SIGNAL_KILL);
        measured.out_of_memory = was_killed && self.memory_was_short && !self.was_told;
        let what = match (signal, code) {
            _ if measured.out_of_memory => "killed for want of memory".to_owned(),
            (Some(signal), _) => format!("ended by signal {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "ended without an exit code".to_owned(),
        };
        let text = if self.tail.is_empty() { what } else { format!("{what}\n{}", self.tail) };
        let is_permanent = signal.is_none() && code.is_some_and(|code| self.is_permanent(code));
        let failure =
            if is_permanent { Failure::permanent(text) } else { Failure::transient(text) };
        Err(Failure { exit_code: code, measured, ..failure })
    }

    fn is_permanent(&self, code: i32) -> bool {
        self.permanent_codes.contains(&code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FailureKind;

    fn exit(raw: i32) -> Exit<'static> {
        Exit {
            status: ExitStatus::from_raw(raw),
            measured: Measured::default(),
            memory_was_short: false,
            was_told: false,
            tail: String::new(),
            permanent_codes: &PERMANENT_CODES,
        }
    }

    fn kind(code: i32) -> FailureKind {
        exit(code << 8).outcome().unwrap_err().kind
    }

    #[test]
    fn exit_codes_have_classes() {
        assert!(exit(0).outcome().is_ok());
        for code in [1, 2, 75, 137, 255] {
            assert_eq!(kind(code), FailureKind::Transient, "{code}");
        }
        for code in PERMANENT_CODES {
            assert_eq!(kind(code), FailureKind::Permanent, "{code}");
        }
    }

    #[test]
    fn signal_is_transient_and_has_the_shells_exit_code() {
        let failure = exit(11).outcome().unwrap_err();
        assert_eq!((failure.kind, failure.exit_code), (FailureKind::Transient, Some(139)));
        assert_eq!(failure.text, "ended by signal 11");
    }

    #[test]
    fn a_kill_while_memory_was_short_was_for_memory() {
        for raw in [9, 137 << 8] {
            let failure = Exit { memory_was_short: true, ..exit(raw) }.outcome().unwrap_err();
            assert!(failure.measured.out_of_memory && failure.kind == FailureKind::Transient);
            assert!(!exit(raw).outcome().unwrap_err().measured.out_of_memory);
        }
        let told = Exit { memory_was_short: true, was_told: true, ..exit(9) };
        assert!(!told.outcome().unwrap_err().measured.out_of_memory);
    }

    #[test]
    fn stopped_command_does_not_succeed() {
        assert!(Exit { was_told: true, ..exit(0) }.outcome().is_err());
    }

    #[test]
    fn error_message_ends_with_the_tail_of_stderr() {
        let failure = Exit { tail: "oh no".to_owned(), ..exit(1 << 8) }.outcome().unwrap_err();
        assert_eq!(failure.text, "exit code 1\noh no");
    }
}
