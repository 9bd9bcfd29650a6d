//! What a worker's stream says, checked and in our words.

use std::collections::BTreeMap;

use bytes::Bytes;
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
    /// The newest version of the protocol that both sides speak.
    pub(crate) protocol: u32,
    /// The attempts that it has.
    pub(crate) attempts: Vec<v1::AttemptRef>,
    pub(crate) has_inventory: bool,
    /// Types that it looks for, and how often at once.
    pub(crate) detects: BTreeMap<Name, u32>,
    pub(crate) runs_jobs: bool,
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
    Log(v1::AttemptRef, Piece),
    Complete(v1::AttemptRef, Box<Completion>),
    Draining(bool),
    Described(String, String),
    Proposals(v1::Proposals),
    Detected(v1::Detected),
    Publish(String),
    Goodbye,
}

/// A sign of life.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beat {
    pub(crate) sequence: u64,
    pub(crate) slots_used: u32,
    pub(crate) detections: (u32, u32),
    pub(crate) attempts: Vec<v1::AttemptRef>,
    pub(crate) metrics: Metrics,
    pub(crate) foreign_slots: u32,
    pub(crate) is_healthy: bool,
    pub(crate) hints: Option<Vec<Name>>,
    /// How far those of its attempts are that said so.
    pub(crate) progress: Vec<(v1::AttemptRef, Progress)>,
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// By the worker's own count; 0 if it does not count.
    pub(crate) number: u64,
    pub(crate) stream: Stream,
    /// Bytes that the attempt wrote before.
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
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
    /// Nobody heard it from the worker.
    pub(crate) is_silent: bool,
}

/// One message of a worker, checked. `None`: a message that this version does not know.
pub(crate) fn heard(message: v1::WorkerMessage) -> Result<Option<Heard>, Invalid> {
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
            let (attempt, progress) = checked_progress(report)?;
            Heard::Progress(attempt, progress)
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
            // A copy, or a few bytes would hold on to the whole message that they came in.
            let bytes = Bytes::copy_from_slice(&chunk.bytes);
            let (number, offset) = (chunk.number, chunk.offset);
            Heard::Log(attempt(chunk.attempt)?, Piece { number, stream, offset, bytes })
        }
        Message::Complete(complete) => {
            let about = attempt(complete.attempt)?;
            Heard::Complete(about, Box::new(checked_completion(complete)?))
        }
        Message::Draining(draining) => Heard::Draining(draining.draining),
        Message::Described(described) => {
            proto::name("described.type", &described.r#type)?;
            Heard::Described(described.r#type, described.json)
        }
        Message::Proposals(proposals) => Heard::Proposals(proposals),
        Message::Detected(detected) => {
            Heard::Detected(v1::Detected { error: cut(detected.error), ..detected })
        }
        Message::Publish(publish) => Heard::Publish(publish.json),
        Message::Goodbye(_) => Heard::Goodbye,
    };
    Ok(Some(heard))
}

fn attempt(attempt: Option<v1::AttemptRef>) -> Result<v1::AttemptRef, Invalid> {
    attempt.ok_or_else(|| Invalid::new("attempt", "is missing"))
}

fn checked_progress(report: v1::ProgressReport) -> Result<(v1::AttemptRef, Progress), Invalid> {
    Ok((attempt(report.attempt)?, report.progress.unwrap_or_default().checked()?))
}

fn checked_beat(beat: v1::Heartbeat) -> Result<Beat, Invalid> {
    let lists = [("attempts", beat.attempts.len()), ("progress", beat.progress.len())];
    if let Some((list, n)) = lists.into_iter().find(|(_, n)| *n > WORKER_ATTEMPTS_MAX) {
        let problem = format!("has {n} entries of at most {WORKER_ATTEMPTS_MAX}");
        return Err(Invalid::new(&format!("heartbeat.{list}"), problem));
    }
    Ok(Beat {
        sequence: beat.sequence,
        slots_used: beat.slots_used,
        detections: (beat.detections_used, beat.detections_total),
        metrics: beat
            .metrics
            .as_ref()
            .map_or_else(|| Ok(Metrics::default()), v1::Metrics::checked)?,
        foreign_slots: beat.foreign_slots,
        is_healthy: !beat.unhealthy,
        hints: beat.hints.as_ref().map(v1::Hints::checked).transpose()?,
        attempts: beat.attempts,
        progress: beat.progress.into_iter().map(checked_progress).collect::<Result<_, _>>()?,
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
        is_silent: false,
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
