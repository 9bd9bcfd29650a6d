//! Messages that wait to be sent to the server, and the size of a batch.
//!
//! **Invariant:** everything in here is bounded, and no caller waits for the network. Output
//! without room is dropped. A completion is kept until the server has it.
//! **Invariant:** a completion goes out after the output before it, in every session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use prost::Message as _;
use proto::v1;
use proto::v1::worker_message::Message;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::attempt::Key;
use crate::completions::Completions;
use crate::lock::lock;

mod logs;

#[cfg(test)]
pub(crate) use logs::LOG_BYTES_QUEUED_MAX;
use logs::Logs;

/// The limit of accepts and refusals that wait to be sent: for each slot, and at least. A server
/// that causes more does not read.
const ANSWERS_A_SLOT: usize = 2;
const ANSWERS_MIN: usize = 10_000;
/// Pages of proposals that wait to be sent.
const PAGES_MAX: usize = 8;
/// The size at which a batch ends. One further message may follow, far below the 4 MiB that servers
/// accept.
const BATCH_BYTES_MAX: usize = 512 << 10;
/// The shortest interval between progress reports of one attempt.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// The messages to send.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    n_slots: usize,
    /// There is something to send.
    pub(crate) wake: Notify,
    /// A message was sent or acknowledged, or the connection ended.
    room: Notify,
    /// A completion was acknowledged.
    acked: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    is_connected: bool,
    heartbeat: Option<v1::Heartbeat>,
    answers: VecDeque<Message>,
    inventory: VecDeque<v1::Inventory>,
    progress: BTreeMap<Key, Told>,
    /// Proposals, and ends of detections, in order.
    pages: VecDeque<Message>,
    logs: Logs,
    completions: Completions,
    says_goodbye: bool,
    is_goodbye_sent: bool,
}

/// Progress of one attempt.
#[derive(Debug, Default)]
struct Told {
    waiting: Option<v1::Progress>,
    sent_at: Option<Instant>,
}

/// The next batch.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) messages: Vec<v1::WorkerMessage>,
    /// When more becomes due, if no message comes before.
    pub(crate) next_at: Option<Instant>,
    /// The last message is the goodbye.
    pub(crate) is_last: bool,
}

impl Outbox {
    pub(crate) fn new(slots: u32) -> Self {
        Self {
            waiting: Mutex::default(),
            n_slots: usize::try_from(slots).unwrap_or(usize::MAX),
            wake: Notify::new(),
            room: Notify::new(),
            acked: Notify::new(),
        }
    }

    /// A new session has begun: messages that the last one may not have delivered are sent again.
    pub(crate) fn connected(&self, acknowledges_output: bool) {
        let mut waiting = lock(&self.waiting);
        waiting.is_connected = true;
        waiting.logs.is_acknowledged = acknowledges_output;
        waiting.heartbeat = None;
        waiting.inventory.clear();
        waiting.pages.clear();
        waiting.logs.repeat_all();
        waiting.completions.repeat_all();
        drop(waiting);
        self.wake.notify_one();
    }

    pub(crate) fn disconnected(&self) {
        lock(&self.waiting).is_connected = false;
        self.room.notify_waiters();
    }

    /// Sets the latest heartbeat, and replaces an unsent one.
    pub(crate) fn heartbeat(&self, heartbeat: v1::Heartbeat) {
        lock(&self.waiting).heartbeat = Some(heartbeat);
        self.wake.notify_one();
    }

    /// An accept, a refusal, or the start of a drain. `false` if there are too many.
    #[must_use]
    pub(crate) fn answer(&self, answer: Message) -> bool {
        let mut waiting = lock(&self.waiting);
        let answers_max = ANSWERS_MIN.max(self.n_slots.saturating_mul(ANSWERS_A_SLOT));
        if waiting.answers.len() >= answers_max {
            return false;
        }
        waiting.answers.push_back(answer);
        drop(waiting);
        self.wake.notify_one();
        true
    }

    /// A page of proposals, or the end of a detection. Dropped without a connection.
    pub(crate) fn page(&self, page: Message) {
        let mut waiting = lock(&self.waiting);
        if waiting.is_connected {
            waiting.pages.push_back(page);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Waits for room for a page, or for the end of the connection.
    pub(crate) async fn page_room(&self) {
        self.room_if(|waiting| !waiting.is_connected || waiting.pages.len() < PAGES_MAX).await;
    }

    async fn room_if(&self, has_room: impl Fn(&Waiting) -> bool) {
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            // Registered before the check, so that no change in between is missed.
            changed.as_mut().enable();
            if has_room(&lock(&self.waiting)) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn inventory(&self, pages: Vec<v1::Inventory>) {
        lock(&self.waiting).inventory.extend(pages);
        self.wake.notify_one();
    }

    /// Whether all earlier pages are sent.
    pub(crate) fn has_inventory_room(&self) -> bool {
        lock(&self.waiting).inventory.is_empty()
    }

    pub(crate) fn progress(&self, key: Key, progress: v1::Progress) {
        lock(&self.waiting).progress.entry(key).or_default().waiting = Some(progress);
        self.wake.notify_one();
    }

    /// The server has the first `n_kept` output chunks.
    pub(crate) fn logs_acknowledged(&self, n_kept: u64) {
        lock(&self.waiting).logs.acknowledged(n_kept);
        self.room.notify_waiters();
    }

    pub(crate) fn has_log_room(&self, bytes: usize) -> bool {
        lock(&self.waiting).logs.has_room(bytes)
    }

    /// Waits for room for output. If the server does not acknowledge output, the end of the
    /// connection ends the wait.
    pub(crate) async fn log_room(&self, bytes: usize) {
        self.room_if(|Waiting { is_connected, logs, .. }| {
            let is_waited_for = *is_connected || logs.is_acknowledged;
            !is_waited_for || logs.has_room_to_spare(bytes)
        })
        .await;
    }

    pub(crate) fn log(&self, key: Key, chunk: v1::LogChunk) {
        lock(&self.waiting).logs.push(key, chunk);
        self.wake.notify_one();
    }

    /// An attempt ended. Its completion is sent until the server acknowledges it.
    pub(crate) fn complete(&self, key: Key, complete: v1::Complete) {
        let mut waiting = lock(&self.waiting);
        let after_logs = waiting.logs.end();
        waiting.completions.insert(key, complete, after_logs);
        drop(waiting);
        self.wake.notify_one();
    }

    /// The server has the completion, or rejects it. `false`: there was none.
    pub(crate) fn forget(&self, key: Key) -> bool {
        let mut waiting = lock(&self.waiting);
        let was_kept = waiting.completions.forget(key);
        waiting.logs.forget(key);
        waiting.progress.remove(&key);
        drop(waiting);
        self.acked.notify_waiters();
        self.room.notify_waiters();
        was_kept
    }

    /// Sends a completion again now.
    pub(crate) fn repeat(&self, key: Key) -> bool {
        let mut waiting = lock(&self.waiting);
        if !waiting.completions.repeat(key) {
            return false;
        }
        drop(waiting);
        self.wake.notify_one();
        true
    }

    /// Sends unacknowledged completions again that are older than this.
    pub(crate) fn repeat_older_than(&self, age: Duration) {
        lock(&self.waiting).completions.repeat_older_than(age, Instant::now());
    }

    /// Attempts that ended and are not acknowledged.
    pub(crate) fn unacknowledged(&self) -> Vec<Key> {
        lock(&self.waiting).completions.keys()
    }

    pub(crate) fn has_completion_room(&self) -> bool {
        lock(&self.waiting).completions.has_room(self.n_slots)
    }

    /// Waits until the server has every completion.
    pub(crate) async fn all_acknowledged(&self) {
        loop {
            let acked = self.acked.notified();
            tokio::pin!(acked);
            // Registered before the check, so that no acknowledgement in between is missed.
            acked.as_mut().enable();
            if lock(&self.waiting).completions.is_empty() {
                return;
            }
            acked.await;
        }
    }

    pub(crate) fn is_connected(&self) -> bool {
        lock(&self.waiting).is_connected
    }

    pub(crate) fn is_goodbye_sent(&self) -> bool {
        lock(&self.waiting).is_goodbye_sent
    }

    /// Sends a goodbye after all other messages.
    pub(crate) fn goodbye(&self) {
        lock(&self.waiting).says_goodbye = true;
        self.wake.notify_one();
    }

    /// Takes the messages of the next batch.
    pub(crate) fn next(&self, now: Instant) -> Parcel {
        let mut waiting = lock(&self.waiting);
        let parcel = waiting.next(now);
        drop(waiting);
        self.room.notify_waiters();
        parcel
    }

    #[cfg(test)]
    pub(crate) fn take_logs(&self) -> Vec<v1::LogChunk> {
        let mut waiting = lock(&self.waiting);
        std::iter::from_fn(|| waiting.logs.take()).collect()
    }
}

impl Waiting {
    /// In the order of urgency: the heartbeat first, and the output of an attempt before its end.
    fn next(&mut self, now: Instant) -> Parcel {
        let mut messages: Vec<Message> = Vec::new();
        let mut bytes = 0;
        while bytes < BATCH_BYTES_MAX
            && let Some(page) = self.inventory.pop_front()
        {
            bytes += page
                .added
                .iter()
                .chain(&page.removed)
                .map(|digest| digest.len() + 2)
                .sum::<usize>();
            messages.push(Message::Inventory(page));
        }
        while bytes < BATCH_BYTES_MAX
            && let Some(page) = self.pages.pop_front()
        {
            bytes += v1::WorkerMessage { message: Some(page.clone()) }.encoded_len();
            messages.push(page);
        }
        let next_at = self.take_progress(now, &mut messages);
        while bytes < BATCH_BYTES_MAX
            && let Some(chunk) = self.logs.take()
        {
            bytes += chunk.bytes.len();
            messages.push(Message::Log(chunk));
        }
        let (room, moment) = ((bytes, BATCH_BYTES_MAX), (self.logs.sent(), now));
        let n_before = messages.len();
        let bytes = self.completions.take(&mut messages, room, moment);
        let begun = begun(&messages[n_before..]);
        let is_full = bytes >= BATCH_BYTES_MAX;
        let is_last = self.says_goodbye && !is_full;
        if is_last {
            self.is_goodbye_sent = true;
            messages.push(Message::Goodbye(v1::Goodbye {}));
        }
        let heartbeat = self.heartbeat.take().map(Message::Heartbeat);
        let answers = self.answers.drain(..).filter(|answer| !is_accept_of(answer, &begun));
        let all = heartbeat.into_iter().chain(answers).chain(messages);
        Parcel {
            messages: all.map(|message| v1::WorkerMessage { message: Some(message) }).collect(),
            next_at: if is_full { Some(now) } else { next_at },
            is_last,
        }
    }

    /// Adds due progress reports, and returns the time of the next. Ended attempts have none.
    fn take_progress(&mut self, now: Instant, messages: &mut Vec<Message>) -> Option<Instant> {
        let mut next_at: Option<Instant> = None;
        for (key, told) in &mut self.progress {
            if told.waiting.is_none() {
                continue;
            }
            let has_ended = self.completions.contains(*key);
            match told.sent_at.map(|at| at + PROGRESS_EVERY) {
                Some(at) if at > now && !has_ended => {
                    next_at = Some(next_at.map_or(at, |next_at| next_at.min(at)));
                }
                _ => {
                    told.sent_at = Some(now);
                    let (attempt, progress) = (Some((*key).into()), told.waiting.take());
                    messages.push(Message::Progress(v1::ProgressReport { attempt, progress }));
                }
            }
        }
        next_at
    }
}

/// The attempts whose completions include their start, in order.
fn begun(ends: &[Message]) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::with_capacity(ends.len());
    for end in ends {
        if let Message::Complete(complete) = end
            && complete.ending().known().is_some_and(model::Ending::is_own)
        {
            keys.extend(complete.attempt.map(Key::from));
        }
    }
    keys.sort_unstable();
    keys
}

/// Whether this is the start of one of these attempts, whose completion in the same batch includes
/// it.
fn is_accept_of(answer: &Message, begun: &[Key]) -> bool {
    let Message::Accept(v1::Accept { attempt: Some(attempt) }) = answer else { return false };
    begun.binary_search(&Key::from(*attempt)).is_ok()
}

#[cfg(test)]
mod tests;
