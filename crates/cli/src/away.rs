//! Whoever waits for jobs goes on waiting while their scheduler is away: jobs outlive schedulers.

use std::time::Duration;

use proto::v1;
use tonic::{Code, Status};

use crate::client::refused;
use crate::print::{self, Failure};

/// Between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// Who is away for two minutes is not waited for any longer.
const TRIES_MAX: u32 = 240;
/// The exit code if it is not known how a job ended: jobs seldom end with it.
const NOT_KNOWN: u8 = 125;

/// How often a scheduler that answered before did not answer.
#[derive(Default)]
pub(crate) struct Away {
    n_tries: u32,
}

impl Away {
    /// It answered.
    pub(crate) const fn is_over(&mut self) {
        self.n_tries = 0;
    }

    /// Waits for a moment, if it may come back or have room again; otherwise that is all.
    pub(crate) async fn bear(&mut self, status: &Status) -> Result<(), Failure> {
        let what = what(status).filter(|_| self.n_tries < TRIES_MAX);
        let Some(what) = what else { return Err(refused(status)) };
        if self.n_tries == 0 {
            print::note(&format!("{what}; trying again (Ctrl-C ends this, not the job)"));
        }
        self.n_tries += 1;
        tokio::time::sleep(PAUSE).await;
        Ok(())
    }
}

/// What passes by itself.
fn what(status: &Status) -> Option<&str> {
    let message = status.message();
    if status.code() == Code::ResourceExhausted {
        // Too many wait. Whatever else is done already stays so.
        return message.split("; nothing was done").next();
    }
    // A connection may also break in the middle of an answer.
    let is_away = status.code() == Code::Unavailable || is_broken(message);
    is_away.then_some("the scheduler is away")
}

fn is_broken(message: &str) -> bool {
    ["transport error", "h2 protocol error", "error reading a body", "operation was canceled"]
        .iter()
        .any(|words| message.contains(words))
}

/// That jobs are submitted is said whatever became of waiting for them: whoever takes an error for
/// a reason to submit them again has them run twice.
pub(crate) fn submitted(jobs: &[v1::Submitted], failure: &Failure) -> Failure {
    if let Failure::Exit(code) = failure {
        return Failure::Exit(*code);
    }
    print::note(&format!("error: {failure}\n"));
    if let (Some(first), Some(last)) = (jobs.first(), jobs.last()) {
        print::note(&match jobs.len() {
            1 => format!("job {0} is submitted: `maitre watch {0}` follows it", first.id),
            n => format!("{n} jobs are submitted, {} to {}: `maitre jobs`", first.id, last.id),
        });
    }
    Failure::Exit(NOT_KNOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_borne_and_what_does_not_is_told() {
        let broken = Status::unknown("transport error");
        let cut = Status::internal("h2 protocol error: error reading a body from connection");
        let given_up = Status::cancelled("operation was canceled");
        let passing =
            [Status::unavailable(""), Status::resource_exhausted(""), broken, cut, given_up];
        assert!(passing.iter().all(|status| what(status).is_some()));
        let lasting = [Status::not_found(""), Status::permission_denied(""), Status::unknown("")];
        assert!(lasting.iter().all(|status| what(status).is_none()));
    }
}
