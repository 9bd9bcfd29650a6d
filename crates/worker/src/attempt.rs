//! What a handler is given: one try of one job.

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

/// Which attempt: the job, and the number that is its fencing token.
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

/// Where output comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// What was asked for.
    Out,
    /// What is said about it.
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

/// One try of one job, as its handler sees it. Clones are the same attempt; its slots are taken
/// until the last of them is dropped.
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

    /// Which attempt at the job this is, from 1. Together with the job it is unique for ever: use
    /// the two as a fencing token in what you write to.
    pub fn number(&self) -> u32 {
        self.ticket.key.attempt
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.ticket.spec
    }

    /// What to do: the bytes that the submitter gave.
    pub fn payload(&self) -> &[u8] {
        &self.ticket.spec.payload
    }

    /// Earlier attempts that failed.
    pub fn failures(&self) -> u32 {
        self.ticket.failures
    }

    /// The named resource that it holds; `None` if it asked for none.
    pub fn resource(&self) -> Option<&str> {
        self.ticket.resource.as_deref()
    }

    /// How its type is configured.
    pub fn configuration(&self) -> &Configuration {
        &self.ticket.configuration
    }

    /// What all workers are told about the world around them.
    pub fn context(&self) -> &Context {
        &self.ticket.context
    }

    /// The longest result that the server takes.
    pub fn result_bytes_max(&self) -> usize {
        self.ticket.result_bytes_max
    }

    /// Says how far it is: from 0 to 1, and in words. At most one a second is sent, and always the
    /// last.
    pub fn progress(&self, fraction: f64, note: &str) {
        self.stage(fraction, note, "");
    }

    /// Says how far it is, and which of its steps it is at, by name: `copying`, `verifying`.
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

    /// Passes on output. What there is no room for is left out, and a line says so.
    pub fn log(&self, stream: Stream, bytes: &[u8]) {
        self.ticket.log(stream, bytes);
    }

    /// Passes on output, and waits for room, so that nothing is lost: also for a server that is
    /// away to come back, unless the grace of the attempt is over before.
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

    /// Says that inputs were fetched over the network, how many, how large, and how long it took.
    pub fn fetched(&self, paths: u32, bytes: u64, took: Duration) {
        self.ticket.speeds.net(bytes, took);
        let mut fetched = lock(&self.ticket.fetched);
        let (known_paths, known_bytes) = fetched.unwrap_or_default();
        *fetched = Some((known_paths.saturating_add(paths), known_bytes.saturating_add(bytes)));
    }

    /// Lets it run no longer than this from its start, if it may run for longer otherwise.
    pub fn run_at_most(&self, length: Duration) {
        {
            let mut known = lock(&self.ticket.run_max);
            *known = Some(known.map_or(length, |known| known.min(length)));
        }
        self.room.look_at(self.ticket.key, self.ticket.started + length);
    }

    /// Cancelled once the attempt is asked to stop.
    pub fn stop_token(&self) -> &CancellationToken {
        &self.ticket.stops.asked
    }

    /// Cancelled once the grace after that is over. Soon after, the handler is dropped.
    pub fn kill_token(&self) -> &CancellationToken {
        &self.ticket.stops.killed
    }

    /// Waits until the attempt is asked to stop, and says why.
    pub async fn stopped(&self) -> StopReason {
        self.ticket.stops.asked.cancelled().await;
        self.ticket.stops.reason().unwrap_or(StopReason::Cancelled)
    }

    /// Whether it is asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.ticket.stops.asked.is_cancelled()
    }

    /// Why it is asked to stop; `None` while it is not.
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
    /// Paths and bytes; `None` if it never said.
    pub(crate) fetched: Mutex<Option<(u32, u64)>>,
    /// How far it last said it was.
    pub(crate) progress: Mutex<Option<v1::Progress>>,
    last_word: Mutex<Instant>,
    /// Pieces of its output that wait for room: who has something to say is not silent.
    n_waiting: AtomicUsize,
    run_max: Mutex<Option<Duration>>,
    /// Whether its end is told: what it says after that is not heard.
    has_ended: AtomicBool,
    task: OnceLock<AbortHandle>,
}

/// Somebody waits, until this is dropped.
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

/// What a ticket is made of, besides the places where it reports.
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

    /// When it runs out of time as things stand, and in which words; `None` if it never does.
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

    /// Nothing more is to be said about it, but its end; `false` if that was said already.
    pub(crate) fn end(&self) -> bool {
        let mut log = lock(&self.log);
        let is_first = !self.has_ended.swap(true, Ordering::SeqCst);
        if is_first {
            log.finish(&self.outbox);
        }
        is_first
    }

    /// This is where its handler runs.
    pub(crate) fn runs_as(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    /// Drops its handler, as soon as that lets go.
    pub(crate) fn abort(&self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }

    /// Notes that it is not silent; `false` if nobody listens any more.
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
