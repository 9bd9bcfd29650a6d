//! A worker. It accepts offers, runs attempts by its own clock, and stops them when its lease may
//! have run out.
//!
//! **Invariant:** the lease counts from when the acknowledged heartbeat was sent, and the worker
//! stops after nine tenths of it. These are the rules of the real worker.

use std::collections::{BTreeMap, VecDeque};

use checker::Mark;
use faults::Chance;
use model::Ending;
use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use server::Words;

use crate::notes::{Ack, Notes};

/// The state of a worker's process.
pub(crate) struct Hands {
    pub(crate) name: String,
    pub(crate) slots: u32,
    pub(crate) health: Health,
    pub(crate) stream: Option<Stream>,
    /// Messages to put on its stream.
    pub(crate) words: Vec<v1::WorkerMessage>,
    /// It continues after its lease.
    pub(crate) overstays: bool,
    clock: Clock,
    instance: u32,
    runs: BTreeMap<Token, Run>,
    /// All results that it ever had.
    results: BTreeMap<Token, Ending>,
    over_at: Option<i64>,
    lease_ms: i64,
    heartbeat_ms: i64,
    sent: VecDeque<(u64, i64)>,
    n_beats: u64,
    beat_at: i64,
}

/// The condition of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// It does nothing, and does not notice the time.
    Suspended,
    Dead,
}

/// A clock with an offset and a wrong rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) ahead_ms: i64,
    /// Thousandths of a second that it shows for each second.
    pub(crate) rate: i64,
}

/// One connection.
pub(crate) struct Stream {
    pub(crate) number: u64,
    words: Words,
    hello_at: i64,
    is_welcome: bool,
}

/// A job and the number of the attempt.
pub(crate) type Token = (u64, u32);

enum Run {
    Runs {
        slots: u32,
        ends_at: i64,
        ending: Ending,
    },
    /// A report that is not acknowledged.
    Ended(Ending),
}

impl Hands {
    pub(crate) fn new(name: String, slots: u32, clock: Clock) -> Self {
        Self {
            name,
            slots,
            health: Health::Well,
            stream: None,
            words: Vec::new(),
            overstays: false,
            clock,
            instance: 1,
            runs: BTreeMap::new(),
            results: BTreeMap::new(),
            over_at: None,
            lease_ms: 0,
            heartbeat_ms: 0,
            sent: VecDeque::new(),
            n_beats: 0,
            beat_at: 0,
        }
    }

    /// It is killed, and keeps only its name.
    pub(crate) fn die(&mut self) {
        self.health = Health::Dead;
        self.stream = None;
        self.words.clear();
        self.runs.clear();
        self.sent.clear();
        self.over_at = None;
        self.instance += 1;
    }

    /// Its hello.
    pub(crate) fn hello(&self) -> v1::Hello {
        v1::Hello {
            worker: self.name.clone(),
            instance: format!("{}-{}", self.name, self.instance),
            protocol: proto::PROTOCOL,
            slots: self.slots,
            attempts: self.attempts(),
            ..v1::Hello::default()
        }
    }

    pub(crate) fn connect(&mut self, number: u64, words: Words, now_ms: i64) {
        let hello_at = self.clock.at(now_ms);
        self.words.clear();
        self.stream = Some(Stream { number, words, hello_at, is_welcome: false });
    }

    /// Its connection ends, with the messages on it.
    pub(crate) fn disconnect(&mut self) {
        self.stream = None;
        self.words.clear();
    }

    /// Does its work at this time. `false`: its stream is over.
    pub(crate) fn act(&mut self, now_ms: i64, notes: &mut Notes) -> bool {
        let at = self.clock.at(now_ms);
        if self.over_at.is_some_and(|over_at| over_at <= at) && !self.overstays {
            // Killed without a report. Results from before are reported.
            self.runs.retain(|_, run| matches!(run, Run::Ended(_)));
        }
        self.work((now_ms, at), notes);
        let batch = self.stream.as_mut().map(|stream| stream.words.read());
        match batch {
            Some(Ok(Some(batch))) => {
                for message in batch.messages.into_iter().filter_map(|message| message.message) {
                    self.told(message, (now_ms, at), notes);
                }
            }
            Some(Ok(None)) | None => {}
            Some(Err(_)) => return false,
        }
        if self.stream.as_ref().is_some_and(|stream| stream.is_welcome) && self.beat_at <= at {
            self.beat(at);
        }
        true
    }

    /// Continues its runs, some of which end.
    fn work(&mut self, (now_ms, at): (i64, i64), notes: &mut Notes) {
        let mut ended = Vec::new();
        for (token, run) in &mut self.runs {
            let Run::Runs { ends_at, ending, .. } = run else { continue };
            let is_over = *ends_at <= at;
            let what = match (is_over, *ending == Ending::Succeeded) {
                (false, _) => "tick",
                (true, true) => "end",
                (true, false) => "fail",
            };
            notes.marks.push(mark(what, *token, &self.name, now_ms));
            if is_over {
                let ending = *ending;
                *run = Run::Ended(ending);
                ended.push((*token, ending));
            }
        }
        for (token, ending) in ended {
            self.report(token, ending);
        }
    }

    fn told(&mut self, message: Theirs, (now_ms, at): (i64, i64), notes: &mut Notes) {
        match message {
            Theirs::Welcome(welcome) => self.welcomed(&welcome, at),
            Theirs::HeartbeatAck(ack) => self.acknowledged(ack.sequence),
            Theirs::Offer(offer) => self.offered(&offer, (now_ms, at), notes),
            Theirs::Stop(stop) => self.stopped(&stop),
            Theirs::CompleteAck(ack) => {
                let token = token(ack.attempt);
                if let Some(ending) = self.results.get(&token).copied() {
                    let ((job, attempt), worker) = (token, self.name.clone());
                    notes.acks.push(Ack { worker, job, attempt, ending, is_stale: ack.stale });
                    self.runs.remove(&token);
                }
            }
            // These workers detect nothing, and their jobs have no output.
            Theirs::Describe(_)
            | Theirs::Configured(_)
            | Theirs::Context(_)
            | Theirs::Detect(_)
            | Theirs::StopDetection(_)
            | Theirs::LogAck(_)
            | Theirs::Drain(_)
            | Theirs::Shutdown(_) => {}
        }
    }

    fn welcomed(&mut self, welcome: &v1::Welcome, at: i64) {
        let Some(stream) = &mut self.stream else { return };
        stream.is_welcome = true;
        let hello_at = stream.hello_at;
        self.lease_ms = i64::try_from(welcome.lease_ms).unwrap_or(0);
        self.heartbeat_ms = i64::try_from(welcome.heartbeat_ms).unwrap_or(0);
        self.sent.clear();
        self.beat_at = at;
        self.prolong(hello_at);
        for attempt in &welcome.stale {
            self.runs.remove(&token(Some(*attempt)));
        }
        let ended = self.runs.iter().filter_map(|(token, run)| match run {
            Run::Runs { .. } => None,
            Run::Ended(ending) => Some((*token, *ending)),
        });
        for (token, ending) in ended.collect::<Vec<_>>() {
            self.report(token, ending);
        }
    }

    fn acknowledged(&mut self, sequence: u64) {
        while let Some((sent, at)) = self.sent.pop_front() {
            if sent == sequence {
                self.prolong(at);
                return;
            }
        }
    }

    fn prolong(&mut self, sent_at: i64) {
        let over_at = sent_at + self.lease_ms * 9 / 10;
        self.over_at = Some(self.over_at.map_or(over_at, |known| known.max(over_at)));
    }

    fn offered(&mut self, offer: &v1::Offer, (now_ms, at): (i64, i64), notes: &mut Notes) {
        let attempt = Some(v1::AttemptRef { job: offer.job, attempt: offer.attempt });
        let token = (offer.job, offer.attempt);
        let spec = offer.spec.as_deref().cloned().unwrap_or_default();
        let slots = spec.slots.max(1);
        let is_over = self.over_at.is_none_or(|over_at| over_at <= at) && !self.overstays;
        if self.runs.contains_key(&token) {
            return;
        }
        if is_over || self.slots_used() + slots > self.slots {
            let reason = "at capacity".to_owned();
            self.say(Ours::Refuse(v1::Refuse { attempt, reason }));
            return;
        }
        let (length_ms, ending) = plan(&spec.payload, offer.failures);
        notes.marks.push(mark("start", token, &self.name, now_ms));
        self.runs.insert(token, Run::Runs { slots, ends_at: at + length_ms, ending });
        self.say(Ours::Accept(v1::Accept { attempt }));
    }

    fn stopped(&mut self, stop: &v1::Stop) {
        let token = token(stop.attempt);
        let Some(Run::Runs { .. }) = self.runs.get(&token) else { return };
        let ending = match stop.reason() {
            v1::StopReason::Cancelled => Ending::Cancelled,
            v1::StopReason::Preempted => Ending::Preempted,
            v1::StopReason::Timeout => Ending::Timeout,
            v1::StopReason::Stale | v1::StopReason::Unspecified => {
                self.runs.remove(&token);
                return;
            }
        };
        self.runs.insert(token, Run::Ended(ending));
        self.report(token, ending);
    }

    fn beat(&mut self, at: i64) {
        self.n_beats += 1;
        self.beat_at = at + self.heartbeat_ms;
        self.sent.push_back((self.n_beats, at));
        let (attempts, slots_used) = (self.attempts(), self.slots_used());
        let sequence = self.n_beats;
        let beat = v1::Heartbeat { sequence, attempts, slots_used, ..v1::Heartbeat::default() };
        self.say(Ours::Heartbeat(beat));
    }

    /// Reports the end of an attempt now, or on the next connection.
    fn report(&mut self, (job, attempt): Token, ending: Ending) {
        self.results.insert((job, attempt), ending);
        if self.stream.as_ref().is_some_and(|stream| stream.is_welcome) {
            let attempt = Some(v1::AttemptRef { job, attempt });
            let ending = v1::Ending::from(ending).into();
            self.say(Ours::Complete(v1::Complete { attempt, ending, ..v1::Complete::default() }));
        }
    }

    /// Repeats an old result, even a stale one.
    pub(crate) fn echo(&mut self, chance: &mut Chance) {
        let all: Vec<Token> = self.results.keys().copied().collect();
        if let Some(token) = chance.pick(&all).copied() {
            self.repeat(token);
        }
    }

    /// Repeats a result, if it had it.
    pub(crate) fn repeat(&mut self, token: Token) {
        if let Some(ending) = self.results.get(&token).copied() {
            self.report(token, ending);
        }
    }

    fn say(&mut self, message: Ours) {
        self.words.push(v1::WorkerMessage { message: Some(message) });
    }

    fn attempts(&self) -> Vec<v1::AttemptRef> {
        self.runs
            .keys()
            .map(|(job, attempt)| v1::AttemptRef { job: *job, attempt: *attempt })
            .collect()
    }

    fn slots_used(&self) -> u32 {
        let slots = self.runs.values().map(|run| match run {
            Run::Runs { slots, .. } => *slots,
            Run::Ended(_) => 0,
        });
        slots.sum()
    }
}

impl Clock {
    fn at(self, now_ms: i64) -> i64 {
        self.ahead_ms + now_ms / 1_000 * self.rate + now_ms % 1_000 * self.rate / 1_000
    }
}

/// The payload of a job: its run time, and the number of its failures before it succeeds.
pub(crate) fn payload(length_ms: u64, n_failures: u32) -> Vec<u8> {
    format!("{length_ms} {n_failures}").into_bytes()
}

/// A number of failures that stands for a permanent failure.
pub(crate) const FOR_EVER: u32 = 9;

fn plan(payload: &[u8], failures: u32) -> (i64, Ending) {
    let text = String::from_utf8_lossy(payload);
    let mut words = text.split(' ');
    let length_ms = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let n_failures: u32 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0);
    let ending = match n_failures {
        FOR_EVER => Ending::Permanent,
        n_failures if failures < n_failures => Ending::Transient,
        _ => Ending::Succeeded,
    };
    (length_ms, ending)
}

fn mark(what: &str, (job, attempt): Token, worker: &str, at_ms: i64) -> Mark {
    Mark { what: what.to_owned(), job, attempt, worker: worker.to_owned(), at_ms }
}

fn token(attempt: Option<v1::AttemptRef>) -> Token {
    attempt.map_or((0, 0), |attempt| (attempt.job, attempt.attempt))
}
