//! The log of one client, and its reader.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use checker::{Asked, Op, Outcome, Said};
use tonic::{Code, Status};

use crate::Error;
use crate::clock::now_ms;

/// The log of one client.
#[derive(Debug)]
pub struct Notebook {
    client: u32,
    log: File,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its outcome.
    pub outcome: Outcome,
    /// Its jobs.
    pub ids: Vec<u64>,
    /// Whether the request changed anything.
    pub changed: bool,
    /// A message.
    pub note: String,
}

impl Notebook {
    /// Opens a log, and appends to it.
    pub fn open(client: u32, path: &Path) -> Result<Self, Error> {
        let log = File::options().create(true).append(true).open(path);
        Ok(Self { client, log: log.map_err(Error::system("open a log"))? })
    }

    /// Logs a request with its time, and its answer with the current time.
    pub fn write(
        &mut self,
        (op, key, sent_ms): (Op, &str, i64),
        answer: Answer,
        asked: Vec<Asked>,
    ) -> Result<(), Error> {
        let Answer { outcome, ids, changed, note } = answer;
        let (client, key, at_ms) = (self.client, key.to_owned(), now_ms());
        let said = Said { client, op, key, sent_ms, at_ms, outcome, ids, changed, asked, note };
        let line = serde_json::to_string(&said).expect("plain data becomes JSON");
        writeln!(self.log, "{line}").map_err(Error::system("write a client's log"))
    }
}

/// Reads the log of one client.
pub fn read_said(path: &Path) -> Result<Vec<Said>, Error> {
    lines(path, |line| serde_json::from_str(line).ok())
}

/// Reads each line of a file, if it is valid.
pub(crate) fn lines<T>(path: &Path, read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Error> {
    let read = |line: &str| read(line).ok_or_else(|| Error::Line { line: line.to_owned() });
    text(path)?.lines().map(read).collect()
}

/// The text of a file. A missing file is empty.
fn text(path: &Path) -> Result<String, Error> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(Error::system(format!("read `{}`", path.display()))),
    }
}

/// The meaning of an answer, and whether a repetition is useless.
pub fn settle(answer: Result<Answer, Status>) -> (Answer, bool) {
    let status = match answer {
        Ok(answer) => return (answer, true),
        Err(status) => status,
    };
    let (outcome, is_final) = match status.code() {
        Code::InvalidArgument | Code::NotFound | Code::AlreadyExists => (Outcome::Fail, true),
        // The answer promises that nothing was changed. A later request may succeed.
        Code::ResourceExhausted => (Outcome::Fail, false),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::DeadlineExceeded
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => (Outcome::Unknown, false),
    };
    let note = format!("{:?}: {}", status.code(), status.message());
    (Answer { outcome, ids: Vec::new(), changed: false, note }, is_final)
}
