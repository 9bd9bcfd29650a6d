//! What waits to be told to the server, and how much of it goes into the next batch.
//!
//! **Invariant:** everything in here is bounded, and nobody who puts something in waits for the
//! network. Output that there is no room for is left out; a completion is kept until the server
//! has it.

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

/// Output of all attempts that waits to be sent.
pub(crate) const LOG_BYTES_QUEUED_MAX: usize = 4 << 20;
/// Accepts and refusals that wait to be sent, for each slot and for a start. A server that causes
/// more does not listen.
const ANSWERS_A_SLOT: usize = 2;
const ANSWERS_MIN: usize = 10_000;
/// Pages of proposals that wait to be sent.
const PAGES_MAX: usize = 8;
/// Where a batch ends. One message more may be in it: far below the 4 MiB that servers take.
const BATCH_BYTES_MAX: usize = 512 << 10;
/// Progress of one attempt is sent at most so often.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// What waits to be told.
#[derive(Debug)]
pub(crate) struct Outbox {
    waiting: Mutex<Waiting>,
    n_slots: usize,
    /// There is something to send.
    pub(crate) wake: Notify,
    /// Output was sent, or the connection came or went.
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
    /// Work that was found, and how detections ended: in order.
    pages: VecDeque<Message>,
    logs: VecDeque<v1::LogChunk>,
    log_bytes: usize,
    /// Chunks that ever came in, and ever went out. A completion waits for the output before it.
    logs_in: u64,
    logs_out: u64,
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

/// What goes out next.
#[derive(Debug)]
pub(crate) struct Parcel {
    pub(crate) messages: Vec<v1::WorkerMessage>,
    /// When there is more, if nothing comes in before.
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

    /// A new session has begun: what the last one may not have delivered is to be sent again.
    pub(crate) fn connected(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.is_connected = true;
        waiting.heartbeat = None;
        waiting.inventory.clear();
        waiting.pages.clear();
        waiting.completions.repeat_all();
        drop(waiting);
        self.wake.notify_one();
    }

    pub(crate) fn disconnected(&self) {
        lock(&self.waiting).is_connected = false;
        self.room.notify_waiters();
    }

    /// The latest heartbeat; one that was not sent yet is replaced.
    pub(crate) fn heartbeat(&self, heartbeat: v1::Heartbeat) {
        lock(&self.waiting).heartbeat = Some(heartbeat);
        self.wake.notify_one();
    }

    /// An accept, a refusal, or that the worker drains. `false` if there are too many.
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

    /// A page of work that was found, or how a detection ended. Nobody wants it who is not there.
    pub(crate) fn page(&self, page: Message) {
        let mut waiting = lock(&self.waiting);
        if waiting.is_connected {
            waiting.pages.push_back(page);
        }
        drop(waiting);
        self.wake.notify_one();
    }

    /// Waits for room for a page, or for the connection to be gone.
    pub(crate) async fn page_room(&self) {
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change in between is missed.
            changed.as_mut().enable();
            {
                let waiting = lock(&self.waiting);
                if !waiting.is_connected || waiting.pages.len() < PAGES_MAX {
                    return;
                }
            }
            changed.await;
        }
    }

    pub(crate) fn inventory(&self, pages: Vec<v1::Inventory>) {
        lock(&self.waiting).inventory.extend(pages);
        self.wake.notify_one();
    }

    /// Whether the pages before are all sent.
    pub(crate) fn has_inventory_room(&self) -> bool {
        lock(&self.waiting).inventory.is_empty()
    }

    pub(crate) fn progress(&self, key: Key, progress: v1::Progress) {
        lock(&self.waiting).progress.entry(key).or_default().waiting = Some(progress);
        self.wake.notify_one();
    }

    pub(crate) fn has_log_room(&self, bytes: usize) -> bool {
        lock(&self.waiting).log_bytes + bytes <= LOG_BYTES_QUEUED_MAX
    }

    /// Waits for room for so much output, or for the connection to be gone.
    pub(crate) async fn log_room(&self, bytes: usize) {
        loop {
            let changed = self.room.notified();
            tokio::pin!(changed);
            // Registered before the look, so that no change in between is missed.
            changed.as_mut().enable();
            if !lock(&self.waiting).is_connected || self.has_log_room(bytes) {
                return;
            }
            changed.await;
        }
    }

    pub(crate) fn log(&self, chunk: v1::LogChunk) {
        let mut waiting = lock(&self.waiting);
        waiting.log_bytes += chunk.bytes.len();
        waiting.logs_in += 1;
        waiting.logs.push_back(chunk);
        drop(waiting);
        self.wake.notify_one();
    }

    /// An attempt ended: its completion is sent until it is acknowledged.
    pub(crate) fn complete(&self, key: Key, complete: v1::Complete) {
        let mut waiting = lock(&self.waiting);
        let after_logs = waiting.logs_in;
        waiting.completions.insert(key, complete, after_logs);
        drop(waiting);
        self.wake.notify_one();
    }

    /// The server has the completion, or does not want it. `false`: there was none.
    pub(crate) fn forget(&self, key: Key) -> bool {
        let mut waiting = lock(&self.waiting);
        let was_kept = waiting.completions.forget(key);
        waiting.progress.remove(&key);
        drop(waiting);
        self.acked.notify_waiters();
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

    /// Sends again what was sent so long ago and is not acknowledged.
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
            // Registered before the look, so that none in between is missed.
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

    /// Once everything else is sent, say goodbye.
    pub(crate) fn goodbye(&self) {
        lock(&self.waiting).says_goodbye = true;
        self.wake.notify_one();
    }

    /// Takes out what goes into the next batch.
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
        waiting.log_bytes = 0;
        waiting.logs_out = waiting.logs_in;
        waiting.logs.drain(..).collect()
    }
}

impl Waiting {
    /// In the order of urgency: the heartbeat first, and what an attempt said before its end.
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
            && let Some(chunk) = self.logs.pop_front()
        {
            bytes += chunk.bytes.len();
            self.log_bytes -= chunk.bytes.len();
            self.logs_out += 1;
            messages.push(Message::Log(chunk));
        }
        let (room, moment) = ((bytes, BATCH_BYTES_MAX), (self.logs_out, now));
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

    /// Progress that is due, and when the next is. An attempt that ended does not wait.
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

/// The attempts whose ends say that they were begun, in order.
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

/// Whether this says that one of these was begun, which its end says in the same batch.
fn is_accept_of(answer: &Message, begun: &[Key]) -> bool {
    let Message::Accept(v1::Accept { attempt: Some(attempt) }) = answer else { return false };
    begun.binary_search(&Key::from(*attempt)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { job: 7, attempt: 1 };

    fn log(bytes: usize) -> v1::LogChunk {
        v1::LogChunk { bytes: vec![0; bytes], ..v1::LogChunk::default() }
    }

    fn kinds(parcel: &Parcel) -> String {
        let kind = |message: &v1::WorkerMessage| match message.message {
            Some(Message::Heartbeat(_)) => 'h',
            Some(Message::Accept(_)) => 'a',
            Some(Message::Progress(_)) => 'p',
            Some(Message::Log(_)) => 'l',
            Some(Message::Complete(_)) => 'c',
            Some(Message::Goodbye(_)) => 'g',
            _ => '?',
        };
        parcel.messages.iter().map(kind).collect()
    }

    #[test]
    fn the_heartbeat_comes_first_and_the_end_after_what_was_said() {
        let outbox = Outbox::new(1);
        outbox.complete(KEY, v1::Complete::default());
        outbox.log(log(1));
        outbox.progress(KEY, v1::Progress::default());
        assert!(outbox.answer(Message::Accept(v1::Accept::default())));
        outbox.heartbeat(v1::Heartbeat::default());
        outbox.goodbye();
        let parcel = outbox.next(Instant::now());
        assert_eq!((kinds(&parcel).as_str(), parcel.is_last), ("haplcg", true));
    }

    #[test]
    fn an_end_of_its_own_says_that_there_was_a_beginning() {
        let (outbox, now) = (Outbox::new(1), Instant::now());
        let accept = |key: Key| Message::Accept(v1::Accept { attempt: Some(key.into()) });
        let end = |key: Key, ending: v1::Ending| v1::Complete {
            attempt: Some(key.into()),
            ending: ending.into(),
            ..v1::Complete::default()
        };
        let other = Key { job: 8, ..KEY };
        assert!(outbox.answer(accept(KEY)) && outbox.answer(accept(other)));
        outbox.complete(KEY, end(KEY, v1::Ending::Succeeded));
        assert_eq!(kinds(&outbox.next(now)), "ac");
        // Who was stopped may never have begun.
        assert!(outbox.answer(accept(other)));
        outbox.complete(other, end(other, v1::Ending::Cancelled));
        assert_eq!(kinds(&outbox.next(now)), "ac");
        // An end that waits for the output before it says nothing yet.
        let late = Key { job: 9, ..KEY };
        assert!(outbox.answer(accept(late)));
        for _ in 0..3 {
            outbox.log(log(BATCH_BYTES_MAX / 2));
        }
        outbox.complete(late, end(late, v1::Ending::Succeeded));
        assert_eq!(
            (kinds(&outbox.next(now)), kinds(&outbox.next(now))),
            ("all".into(), "lc".into())
        );
    }

    #[test]
    fn a_completion_waits_for_the_output_before_it() {
        let (outbox, now) = (Outbox::new(1), Instant::now());
        for _ in 0..3 {
            outbox.log(log(BATCH_BYTES_MAX / 2));
        }
        outbox.complete(KEY, v1::Complete::default());
        outbox.goodbye();
        let parcel = outbox.next(now);
        assert_eq!((kinds(&parcel).as_str(), parcel.next_at), ("ll", Some(now)));
        assert_eq!(kinds(&outbox.next(now)), "lcg");
    }

    #[test]
    fn progress_is_told_once_a_second_but_the_last_at_once() {
        let (outbox, now) = (Outbox::new(1), Instant::now());
        outbox.progress(KEY, v1::Progress::default());
        outbox.progress(KEY, v1::Progress::default());
        assert_eq!(kinds(&outbox.next(now)), "p");
        outbox.progress(KEY, v1::Progress::default());
        let parcel = outbox.next(now + PROGRESS_EVERY / 2);
        assert_eq!((kinds(&parcel).as_str(), parcel.next_at), ("", Some(now + PROGRESS_EVERY)));
        assert_eq!(kinds(&outbox.next(now + PROGRESS_EVERY)), "p");
        outbox.progress(KEY, v1::Progress::default());
        outbox.complete(KEY, v1::Complete::default());
        assert_eq!(kinds(&outbox.next(now + PROGRESS_EVERY)), "pc");
    }

    #[test]
    fn a_completion_is_sent_once_a_session_until_it_is_old() {
        let (outbox, now) = (Outbox::new(1), Instant::now());
        outbox.complete(KEY, v1::Complete::default());
        assert_eq!(kinds(&outbox.next(now)), "c");
        assert_eq!(kinds(&outbox.next(now)), "");
        outbox.repeat_older_than(Duration::from_hours(1));
        assert_eq!(kinds(&outbox.next(now)), "");
        outbox.repeat_older_than(Duration::ZERO);
        assert_eq!(kinds(&outbox.next(now)), "c");
        outbox.connected();
        assert_eq!(kinds(&outbox.next(now)), "c");
        outbox.forget(KEY);
        outbox.connected();
        assert_eq!(kinds(&outbox.next(now)), "");
    }

    #[test]
    fn too_many_completions_leave_no_room_for_more() {
        let outbox = Outbox::new(1);
        let large = v1::Complete { result: Some(vec![0; 1 << 20]), ..v1::Complete::default() };
        for job in 0..63 {
            outbox.complete(Key { job, attempt: 1 }, large.clone());
        }
        assert!(outbox.has_completion_room());
        outbox.complete(KEY, v1::Complete::default());
        outbox.complete(Key { job: 63, attempt: 1 }, large.clone());
        outbox.complete(Key { job: 64, attempt: 1 }, large);
        assert!(!outbox.has_completion_room());
    }
}
