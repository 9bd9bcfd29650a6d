//! The attempt that a handler runs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use model::maxima::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use model::{JobId, Spec};
use proto::v1;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::known::{Configuration, Context};
use crate::lock::lock;
use crate::log::Cursor;
use crate::metrics::Speeds;
use crate::outbox::Outbox;
use crate::roster::Room;
use crate::stop::{StopReason, Stops};

/// The job and the number of the attempt. Together they are its fencing token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) job: u64,
    pub(crate) attempt: u32,
}

impl From<Key> for v1::AttemptRef {
    fn from(key: Key) -> Self {
        Self { job: key.job, attempt: key.attempt }
    }
}

impl From<v1::AttemptRef> for Key {
    fn from(attempt: v1::AttemptRef) -> Self {
        Self { job: attempt.job, attempt: attempt.attempt }
    }
}

/// The stream of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

impl From<Stream> for v1::Stream {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Out => Self::Out,
            Stream::Err => Self::Err,
        }
    }
}

/// One attempt of a job, as its handler sees it. Clones are the same attempt. Its slots are in use
/// until the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Attempt {
    ticket: Arc<Ticket>,
    room: Arc<Room>,
}

impl Attempt {
    pub(crate) fn new(ticket: Arc<Ticket>, room: Room) -> Self {
        Self { ticket, room: Arc::new(room) }
    }

    /// The job.
    pub fn job(&self) -> JobId {
        JobId::number(self.ticket.key.job)
    }

    /// The number of the attempt, from 1. The job and this number are unique for ever: use them as
    /// a fencing token in external writes.
    pub fn number(&self) -> u32 {
        self.ticket.key.attempt
    }

    /// The specification of the job.
    pub fn spec(&self) -> &Spec {
        &self.ticket.spec
    }

    /// The job's payload.
    pub fn payload(&self) -> &[u8] {
        &self.ticket.spec.payload
    }

    /// Earlier attempts that failed.
    pub fn failures(&self) -> u32 {
        self.ticket.failures
    }

    /// The exclusive lock that it holds. `None` if the job asked for none.
    pub fn resource(&self) -> Option<&str> {
        self.ticket.resource.as_deref()
    }

    /// The configuration of its type.
    pub fn configuration(&self) -> &Configuration {
        &self.ticket.configuration
    }

    /// The context that is published to all workers.
    pub fn context(&self) -> &Context {
        &self.ticket.context
    }

    /// The longest result that the server accepts, in bytes.
    pub fn result_bytes_max(&self) -> usize {
        self.ticket.result_bytes_max
    }

    /// Reports progress, from 0 to 1, with a note. The worker sends at most one report a second,
    /// and always the last.
    pub fn progress(&self, fraction: f64, note: &str) {
        self.stage(fraction, note, "");
    }

    /// Reports progress and the name of the current step: `copying`, `verifying`.
    pub fn stage(&self, fraction: f64, note: &str, stage: &str) {
        if !self.ticket.says_something() {
            return;
        }
        let fraction = if fraction.is_nan() { 0.0 } else { fraction.clamp(0.0, 1.0) };
        let note = cut(&note.replace(char::is_control, " "), TEXT_BYTES_MAX).to_owned();
        let stage = cut(&stage.replace(char::is_control, " "), NAME_BYTES_MAX).to_owned();
        let progress = v1::Progress { fraction, note, stage };
        *lock(&self.ticket.progress) = Some(progress.clone());
        self.ticket.outbox.progress(self.ticket.key, progress);
    }

    /// Sends output. If there is no room, the output is dropped, and a line says so.
    pub fn log(&self, stream: Stream, bytes: &[u8]) {
        self.ticket.log(stream, bytes);
    }

    /// Sends output, and waits for room, so that no output is lost. It also waits while the server
    /// is unreachable, unless the grace period of the attempt ends first.
    pub async fn log_patiently(&self, stream: Stream, bytes: &[u8]) {
        for piece in bytes.chunks(model::maxima::LOG_CHUNK_BYTES_MAX) {
            if !lock(&self.ticket.log).is_cut() {
                let _waits = Waits::new(&self.ticket.n_waiting);
                tokio::select! {
                    () = self.ticket.outbox.log_room(piece.len()) => {}
                    () = self.kill_token().cancelled() => {}
                }
            }
            self.ticket.log(stream, piece);
        }
    }

    /// Reports inputs that were fetched over the network: their number, size and duration.
    pub fn fetched(&self, paths: u32, bytes: u64, took: Duration) {
        self.ticket.speeds.net(bytes, took);
        let mut fetched = lock(&self.ticket.fetched);
        let (known_paths, known_bytes) = fetched.unwrap_or_default();
        *fetched = Some((known_paths.saturating_add(paths), known_bytes.saturating_add(bytes)));
    }

    /// Limits the run time from the start of the attempt. An earlier limit stays.
    pub fn run_at_most(&self, length: Duration) {
        {
            let mut known = lock(&self.ticket.run_max);
            *known = Some(known.map_or(length, |known| known.min(length)));
        }
        self.room.look_at(self.ticket.key, self.ticket.started + length);
    }

    /// Cancelled once the attempt should stop.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.ticket.stops.asked
    }

    /// Cancelled at the end of the grace period. The handler is dropped soon after.
    pub fn kill_token(&self) -> &CancellationToken {
        &self.ticket.stops.killed
    }

    /// Waits until the attempt should stop, and returns the reason.
    pub async fn stopped(&self) -> StopReason {
        self.ticket.stops.asked.cancelled().await;
        self.ticket.stops.reason().unwrap_or(StopReason::Cancelled)
    }

    /// Whether the attempt should stop.
    pub fn is_stopped(&self) -> bool {
        self.ticket.stops.asked.is_cancelled()
    }

    /// The reason why the attempt should stop. `None` while it should not.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.ticket.stops.reason()
    }
}

/// An attempt, as the worker sees it.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) key: Key,
    pub(crate) spec: Spec,
    pub(crate) failures: u32,
    pub(crate) resource: Option<String>,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) context: Arc<Context>,
    pub(crate) result_bytes_max: usize,
    pub(crate) started: Instant,
    pub(crate) stops: Stops,
    pub(crate) log: Mutex<Cursor>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) speeds: Arc<Speeds>,
    /// The number and bytes of fetched inputs. `None` if none were reported.
    pub(crate) fetched: Mutex<Option<(u32, u64)>>,
    /// The last reported progress.
    pub(crate) progress: Mutex<Option<v1::Progress>>,
    last_word: Mutex<Instant>,
    /// Output chunks that wait for room. While there are any, the attempt is not silent.
    n_waiting: AtomicUsize,
    run_max: Mutex<Option<Duration>>,
    /// Whether its end was reported. Later output and progress are ignored.
    has_ended: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// Counts a waiting call until it is dropped.
struct Waits<'a>(&'a AtomicUsize);

impl<'a> Waits<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The data of a ticket, without its channels for reports.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) key: Key,
    pub(crate) spec: Spec,
    pub(crate) failures: u32,
    pub(crate) resource: Option<String>,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) context: Arc<Context>,
    pub(crate) result_bytes_max: usize,
    pub(crate) log_bytes_max: u64,
}

impl Ticket {
    pub(crate) fn new(given: Given, outbox: Arc<Outbox>, speeds: Arc<Speeds>) -> Self {
        let now = Instant::now();
        let run_max = given.spec.run_timeout.map(length);
        Self {
            key: given.key,
            spec: given.spec,
            failures: given.failures,
            resource: given.resource,
            configuration: given.configuration,
            context: given.context,
            result_bytes_max: given.result_bytes_max,
            started: now,
            stops: Stops::new(),
            log: Mutex::new(Cursor::new(given.key, given.log_bytes_max)),
            outbox,
            speeds,
            fetched: Mutex::new(None),
            progress: Mutex::new(None),
            last_word: Mutex::new(now),
            n_waiting: AtomicUsize::new(0),
            run_max: Mutex::new(run_max),
            has_ended: AtomicBool::new(false),
            task: OnceLock::new(),
        }
    }

    /// The time of its next timeout, and the error text. `None` if it has no timeout.
    pub(crate) fn due(&self) -> Option<(Instant, String)> {
        let run = lock(&self.run_max).map(|timeout| {
            let text = format!("it ran for longer than {} ms", timeout.as_millis());
            (self.started + timeout, text)
        });
        let silence = self.spec.silence_timeout.map(|timeout| {
            let text = format!("it said nothing for longer than {} ms", timeout.0);
            (self.last_word() + length(timeout), text)
        });
        match (run, silence) {
            (Some(run), Some(silence)) => Some(if silence.0 < run.0 { silence } else { run }),
            (run, silence) => run.or(silence),
        }
    }

    fn last_word(&self) -> Instant {
        match self.n_waiting.load(Ordering::SeqCst) {
            0 => *lock(&self.last_word),
            _ => Instant::now(),
        }
    }

    /// Ends all reports but the completion. `false` if the attempt has ended before.
    pub(crate) fn end(&self) -> bool {
        let mut log = lock(&self.log);
        let is_first = !self.has_ended.swap(true, Ordering::SeqCst);
        if is_first {
            log.finish(&self.outbox);
        }
        is_first
    }

    /// Sets the task of its handler.
    pub(crate) fn runs_as(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    /// Drops its handler at its next await point.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Resets the silence timeout. `false` if the attempt has ended.
    fn says_something(&self) -> bool {
        *lock(&self.last_word) = Instant::now();
        !self.has_ended.load(Ordering::SeqCst)
    }

    fn log(&self, stream: Stream, bytes: &[u8]) {
        let mut log = lock(&self.log);
        if self.says_something() {
            log.write(&self.outbox, stream, bytes);
        }
    }
}

fn length(ms: model::Millis) -> Duration {
    Duration::from_millis(ms.0.unsigned_abs())
}

/// The first bytes of `text`, at most `bytes_max`, up to a whole character.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("näh", 2), "n");
        assert_eq!(cut("näh", 3), "nä");
        assert_eq!(cut("näh", 99), "näh");
    }
}
