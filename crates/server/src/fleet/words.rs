//! What a worker's stream says, checked and in our words.

use model::maxima::{LOG_CHUNK_BYTES_MAX, TEXT_BYTES_MAX, WORKER_ATTEMPTS_MAX};
use model::{Ending, Fixed, Measured, Metrics, Name, Progress, Worker};
use proto::v1::worker_message::Message;
use proto::{Invalid, v1};
use store::Stream;
use tokio::sync::mpsc;

/// One connection of a worker, by a number that this process uses once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct StreamId(pub(crate) u64);

/// What a worker's stream is fed with.
pub(crate) type Outbox = mpsc::Sender<Result<v1::ServerBatch, tonic::Status>>;

/// A worker that came.
#[derive(Debug)]
pub(crate) struct Arrival {
    pub(crate) stream: StreamId,
    pub(crate) worker: Worker,
    /// Another after every restart of the worker.
    pub(crate) instance: String,
    pub(crate) software: String,
    pub(crate) protocol: u32,
    /// The attempts that it has.
    pub(crate) attempts: Vec<v1::AttemptRef>,
    pub(crate) has_inventory: bool,
    pub(crate) outbox: Outbox,
}

/// Something that a worker said.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Heard {
    Heartbeat(Box<Beat>),
    Inventory(v1::Inventory),
    Accept(v1::AttemptRef),
    Refuse(v1::AttemptRef, String),
    Progress(v1::AttemptRef, Progress),
    Log(v1::AttemptRef, Stream, u64, Vec<u8>),
    Complete(v1::AttemptRef, Box<Completion>),
    Draining(bool),
    Goodbye,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beat {
    pub(crate) sequence: u64,
    pub(crate) attempts: Vec<v1::AttemptRef>,
    pub(crate) metrics: Metrics,
    pub(crate) foreign_slots: u32,
    pub(crate) is_healthy: bool,
    pub(crate) hints: Option<Vec<Name>>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) ending: Ending,
    pub(crate) error: Option<String>,
    pub(crate) result: Option<Vec<u8>>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) measured: Measured,
    pub(crate) cost: Option<Fixed>,
    pub(crate) fetched: Option<(u32, u64)>,
}

/// One message of a worker, checked. `None`: a message that this version does not know.
pub(crate) fn heard(message: v1::WorkerMessage) -> Result<Option<Heard>, Invalid> {
    let attempt = |attempt: Option<v1::AttemptRef>| {
        attempt.ok_or_else(|| Invalid::new("attempt", "is missing"))
    };
    let Some(message) = message.message else { return Ok(None) };
    let heard = match message {
        Message::Hello(_) => return Err(Invalid::new("hello", "came twice on one stream")),
        Message::Heartbeat(beat) => Heard::Heartbeat(Box::new(checked_beat(beat)?)),
        Message::Inventory(inventory) => {
            for digest in inventory.added.iter().chain(&inventory.removed) {
                proto::name("inventory", digest)?;
            }
            Heard::Inventory(inventory)
        }
        Message::Accept(accept) => Heard::Accept(attempt(accept.attempt)?),
        Message::Refuse(refuse) => Heard::Refuse(attempt(refuse.attempt)?, cut(refuse.reason)),
        Message::Progress(report) => {
            let progress = report.progress.unwrap_or_default().checked()?;
            Heard::Progress(attempt(report.attempt)?, progress)
        }
        Message::Log(chunk) => {
            let stream = match chunk.stream() {
                v1::Stream::Err => Stream::Err,
                v1::Stream::Out | v1::Stream::Unspecified => Stream::Out,
            };
            if chunk.bytes.len() > LOG_CHUNK_BYTES_MAX {
                let problem =
                    format!("has {} bytes of at most {LOG_CHUNK_BYTES_MAX}", chunk.bytes.len());
                return Err(Invalid::new("log.bytes", problem));
            }
            Heard::Log(attempt(chunk.attempt)?, stream, chunk.offset, chunk.bytes)
        }
        Message::Complete(complete) => {
            let about = attempt(complete.attempt)?;
            Heard::Complete(about, Box::new(checked_completion(complete)?))
        }
        Message::Draining(draining) => Heard::Draining(draining.draining),
        Message::Goodbye(_) => Heard::Goodbye,
    };
    Ok(Some(heard))
}

fn checked_beat(beat: v1::Heartbeat) -> Result<Beat, Invalid> {
    if beat.attempts.len() > WORKER_ATTEMPTS_MAX {
        let problem =
            format!("has {} entries of at most {WORKER_ATTEMPTS_MAX}", beat.attempts.len());
        return Err(Invalid::new("heartbeat.attempts", problem));
    }
    Ok(Beat {
        sequence: beat.sequence,
        metrics: beat
            .metrics
            .as_ref()
            .map_or_else(|| Ok(Metrics::default()), v1::Metrics::checked)?,
        foreign_slots: beat.foreign_slots,
        is_healthy: !beat.unhealthy,
        hints: beat.hints.as_ref().map(v1::Hints::checked).transpose()?,
        attempts: beat.attempts,
    })
}

fn checked_completion(complete: v1::Complete) -> Result<Completion, Invalid> {
    let ending = complete.ending().known();
    let ending = ending.ok_or_else(|| Invalid::new("complete.ending", "is missing"))?;
    let result_max = model::maxima::RESULT_BYTES_MAX;
    if let Some(result) = complete.result.as_ref().filter(|result| result.len() > result_max) {
        let problem = format!("has {} bytes of at most {result_max}", result.len());
        return Err(Invalid::new("complete.result", problem));
    }
    // A cost that cannot be is not worth the attempt: what was expected counts.
    let most = Fixed::whole(model::maxima::NUMBER_MAX);
    let cost = complete.cost.and_then(Fixed::from_f64);
    let cost = cost.filter(|cost| *cost >= Fixed::ZERO && *cost <= most);
    Ok(Completion {
        ending,
        error: (!complete.error.is_empty()).then(|| cut(complete.error)),
        result: complete.result,
        exit_code: complete.exit_code,
        measured: complete.measured.unwrap_or_default().into(),
        cost,
        fetched: complete.fetched_paths.zip(complete.fetched_bytes),
    })
}

/// What a worker says went wrong is kept up to a limit.
fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
    }
    text.retain(|character| character != '\0');
    text
}
