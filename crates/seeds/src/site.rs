//! All parts of a run, and each step that can happen to them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use faults::Chance;
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use model::{JobId, Millis, Record};
use proto::v1;
use server::{Config, Steps};
use store::conformance::Time;
use store::{Memory, News, Options, Setting, SettingKind, Store as _};

use crate::broken::Broken;
use crate::client::Client;
use crate::hands::{Clock, Hands, Health};
use crate::line::{Line, at_once};
use crate::notes::Notes;
use crate::trace::Trace;
use crate::wire::{Fate, Life, Wire};

/// The limit of slots of tenant `a`.
pub(crate) const QUOTA: u32 = 3;
/// The limit of live attempts of tenant `b`.
pub(crate) const JOBS_MAX: u32 = 2;
/// The limit of live attempts of the narrow type.
pub(crate) const NARROW_MAX: u32 = 1;
/// The largest difference between a scheduler's clock and the store's.
pub(crate) const CLOCKS_MS: u64 = 20;

/// More jobs than any run has.
pub(crate) const MANY: usize = 10_000;

/// All parts of a run.
pub(crate) struct Site {
    pub(crate) chance: Chance,
    pub(crate) wire: Arc<Wire>,
    pub(crate) schedulers: Vec<Seat>,
    pub(crate) workers: Vec<Hands>,
    pub(crate) clients: Vec<Client>,
    pub(crate) notes: Notes,
    /// Streams of workers, by number, with the messages on their way.
    pub(crate) pipes: BTreeMap<u64, Pipe>,
    n_lives: Life,
    n_streams: u64,
}

/// The state of one scheduler.
pub(crate) enum Seat {
    Empty,
    Starting(Life, LocalBoxFuture<'static, Result<Steps, server::Error>>),
    Up(Life, Box<Steps>),
}

/// The messages of a worker on one stream.
pub(crate) struct Pipe {
    to: Life,
    words: VecDeque<v1::WorkerMessage>,
    /// The worker disconnected. Earlier messages may still arrive.
    is_cut: bool,
    /// No message arrives for now.
    pub(crate) is_stuck: bool,
}

impl Site {
    pub(crate) fn new(seed: u64, broken: Option<Broken>, trace: Trace) -> Self {
        let mut chance = Chance::new(seed);
        let time = Time::new();
        let options = Options { clock: Some(time.clock()), ..Options::default() };
        let memory = Memory::new(options);
        at_once(memory.set(settings()));
        let wire = Wire::new(memory, time, broken, trace);
        // Even seeds have one scheduler at a time, on a store of its own.
        let (wire, n_seats) =
            if seed.is_multiple_of(2) { (wire, 1) } else { (wire.shared(), chance.between(2, 3)) };
        let wire = Arc::new(wire);
        let schedulers = (0..n_seats).map(|_| Seat::Empty).collect();
        let n_workers = chance.between(2, 4);
        let mut workers: Vec<Hands> = (1..=n_workers).map(|n| worker(n, &mut chance)).collect();
        for worker in &mut workers {
            worker.overstays = broken == Some(Broken::Overstay);
        }
        let clients = vec![Client::new(1, "a"), Client::new(2, "b"), Client::new(3, "a")];
        let (notes, pipes) = (Notes::default(), BTreeMap::new());
        Self { chance, wire, schedulers, workers, clients, notes, pipes, n_lives: 0, n_streams: 0 }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.wire.time.now().0
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.wire.time.pass(Millis(i64::try_from(ms).unwrap_or(0)));
    }

    /// A scheduler starts. Its estimate of the store's time may be wrong.
    pub(crate) fn start(&mut self, seat: usize, skew: Millis) {
        if !matches!(self.schedulers[seat], Seat::Empty) {
            return;
        }
        self.n_lives += 1;
        let life = self.n_lives;
        self.wire.begin(life);
        self.wire.tell(|| format!("s{life} starts, its clock {} ms ahead", skew.0));
        let line = Arc::new(Line::new(Arc::clone(&self.wire), life, skew));
        let steps = Steps::recover(config(life), line);
        self.schedulers[seat] = Seat::Starting(life, steps.boxed_local());
    }

    /// A scheduler is killed. Some of its last calls are executed anyway.
    pub(crate) fn crash(&mut self, seat: usize) {
        let Some(life) = self.schedulers[seat].life() else { return };
        while let Some(call) = self.wire.asked_by(life).filter(|_| self.chance.is_one_in(2)) {
            self.wire.perform(call, Fate::Done);
        }
        self.wire.tell(|| format!("s{life} dies"));
        self.schedulers[seat] = Seat::Empty;
        self.wire.end(life);
        self.pipes.retain(|_, pipe| pipe.to != life);
    }

    /// A scheduler takes a step.
    pub(crate) fn turn(&mut self, seat: usize) {
        match &mut self.schedulers[seat] {
            Seat::Empty => {}
            Seat::Up(_, steps) => steps.turn(),
            Seat::Starting(life, steps) => {
                let life = *life;
                match steps.as_mut().now_or_never() {
                    None => {}
                    Some(Ok(steps)) => self.schedulers[seat] = Seat::Up(life, Box::new(steps)),
                    Some(Err(_)) => {
                        self.schedulers[seat] = Seat::Empty;
                        self.wire.end(life);
                    }
                }
            }
        }
    }

    /// A scheduler receives a notification, which may be old or wrong.
    pub(crate) fn hear(&mut self, seat: usize) {
        let news = [News::Work, News::Work, News::Listening, News::Peers, News::Settings];
        let news = self.chance.pick(&news).cloned().unwrap_or(News::Work);
        if let (Seat::Up(_, steps), true) = (&mut self.schedulers[seat], self.wire.is_shared) {
            steps.news(news);
        }
    }

    /// A worker does its work, and connects if it is disconnected.
    pub(crate) fn act(&mut self, worker: usize) {
        let now_ms = self.now_ms();
        let hands = &mut self.workers[worker];
        if hands.health != Health::Well {
            return;
        }
        if !hands.act(now_ms, &mut self.notes) {
            self.cut(worker);
        }
        let hands = &mut self.workers[worker];
        match &hands.stream {
            None => self.connect(worker),
            Some(stream) => {
                if let Some(pipe) = self.pipes.get_mut(&stream.number) {
                    pipe.words.extend(hands.words.drain(..));
                }
            }
        }
    }

    fn connect(&mut self, worker: usize) {
        let now_ms = self.now_ms();
        let up: Vec<usize> =
            (0..self.schedulers.len()).filter(|seat| self.schedulers[*seat].is_up()).collect();
        let Some(seat) = self.chance.pick(&up).copied() else { return };
        let Seat::Up(life, steps) = &mut self.schedulers[seat] else { return };
        self.n_streams += 1;
        let (number, hands) = (self.n_streams, &mut self.workers[worker]);
        let words = steps.hello(number, hands.hello()).expect("a worker's hello is in order");
        hands.connect(number, words, now_ms);
        let (to, name) = (*life, hands.name.clone());
        self.pipes
            .insert(number, Pipe { to, words: VecDeque::new(), is_cut: false, is_stuck: false });
        self.wire.tell(|| format!("{name} connects to s{to} by stream {number}"));
    }

    /// A worker's connection breaks: the worker notices at once, the scheduler later.
    pub(crate) fn cut(&mut self, worker: usize) {
        let hands = &mut self.workers[worker];
        let Some(stream) = hands.stream.take() else { return };
        hands.disconnect();
        if let Some(pipe) = self.pipes.get_mut(&stream.number) {
            pipe.is_cut = true;
        }
        let (name, number) = (&hands.name, stream.number);
        self.wire.tell(|| format!("{name} loses stream {number}"));
    }

    /// The next message on a stream arrives, or its end.
    pub(crate) fn deliver(&mut self, stream: u64) {
        let pipe = self.pipes.get_mut(&stream).filter(|pipe| !pipe.is_stuck);
        let Some(pipe) = pipe else { return };
        let (word, to) = (pipe.words.pop_front(), pipe.to);
        let is_over = word.is_none() && pipe.is_cut;
        let of_life = |seat: &&mut Seat| seat.life() == Some(to);
        let seat = self.schedulers.iter_mut().find(of_life);
        if let Some(Seat::Up(_, steps)) = seat {
            match word {
                Some(word) => steps.hear(stream, word).expect("a worker's words are in order"),
                None if is_over => steps.part(stream),
                None => {}
            }
        }
        if is_over {
            self.pipes.remove(&stream);
        }
    }

    pub(crate) fn suspend(&mut self, worker: usize) {
        let hands = &mut self.workers[worker];
        if hands.health == Health::Well {
            hands.health = Health::Suspended;
            self.wire.tell(|| format!("{} is suspended", self.workers[worker].name));
        }
    }

    /// A worker is killed with its runs.
    pub(crate) fn kill(&mut self, worker: usize) {
        self.cut(worker);
        self.workers[worker].die();
        self.wire.tell(|| format!("{} dies", self.workers[worker].name));
    }

    /// A worker continues, or starts again.
    pub(crate) fn revive(&mut self, worker: usize) {
        self.workers[worker].health = Health::Well;
        self.wire.tell(|| format!("{} is well", self.workers[worker].name));
    }

    /// A worker with an old attempt repeats its result while a later attempt is live.
    pub(crate) fn echo(&mut self) {
        let is_again = |record: &Record| record.current.is_some() && record.counts.attempts > 1;
        let all = at_once(self.wire.memory.look(None, MANY));
        let again: Vec<Record> = all.into_iter().filter(is_again).collect();
        let Some(record) = self.chance.pick(&again) else { return };
        let job = record.id.as_number().unwrap_or(0);
        for attempt in 1..record.counts.attempts {
            for hands in self.workers.iter_mut().filter(|hands| hands.health == Health::Well) {
                hands.repeat((job, attempt));
            }
        }
    }

    /// Stopped traffic continues, and a worker starts again.
    pub(crate) fn clear_up(&mut self) {
        self.wire.go_on();
        self.pipes.values_mut().for_each(|pipe| pipe.is_stuck = false);
        let is_hurt = |worker: &usize| self.workers[*worker].health != Health::Well;
        let hurt: Vec<usize> = (0..self.workers.len()).filter(is_hurt).collect();
        if let Some(worker) = self.chance.pick(&hurt).copied() {
            self.revive(worker);
        }
    }

    /// A client polls for its answer, or sends a request.
    pub(crate) fn ask(&mut self, client: usize, losses: Losses) {
        let now_ms = self.now_ms();
        let is_lost = losses == Losses::Some && self.chance.is_one_in(8);
        let one = &mut self.clients[client];
        if one.waits() {
            one.look(now_ms, is_lost, &mut self.notes);
            return;
        }
        let up: Vec<&Steps> = self.schedulers.iter().filter_map(Seat::steps).collect();
        if up.is_empty() || (losses == Losses::None && one.is_content()) {
            return;
        }
        let Some(ask) = one.next(&mut self.chance) else { return };
        if is_lost {
            one.lose(ask, now_ms, &mut self.notes);
        } else if let Some(scheduler) = self.chance.pick(&up) {
            let twin = self.chance.pick(&up).filter(|_| losses == Losses::Some);
            if let Some(twin) = twin.filter(|_| self.chance.is_one_in(3) && ask.may_come_again()) {
                one.repeat(&ask, twin);
            }
            one.ask(ask, scheduler, now_ms);
        }
    }

    /// The messages of a worker are stopped, or continue.
    pub(crate) fn stick(&mut self, worker: usize) {
        let stream = self.workers[worker].stream.as_ref();
        if let Some(pipe) = stream.and_then(|stream| self.pipes.get_mut(&stream.number)) {
            pipe.is_stuck = !pipe.is_stuck;
        }
    }

    /// A client reads one of its jobs.
    pub(crate) fn see(&mut self, client: usize) {
        let Some(job) = self.chance.pick(&self.clients[client].jobs).copied() else { return };
        let record = at_once(self.wire.memory.job(JobId::number(job)));
        if let Some(record) = record.filter(|record| record.state.is_terminal()) {
            self.notes.finals.push((job, record.state));
        }
    }
}

/// Whether requests and answers get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Losses {
    /// Some get lost, and clients send new requests.
    Some,
    /// None get lost, and clients only repeat requests with an unknown outcome.
    None,
}

impl Seat {
    pub(crate) const fn life(&self) -> Option<Life> {
        match self {
            Self::Empty => None,
            Self::Starting(life, _) | Self::Up(life, _) => Some(*life),
        }
    }

    pub(crate) const fn is_up(&self) -> bool {
        matches!(self, Self::Up(..))
    }

    pub(crate) fn steps(&self) -> Option<&Steps> {
        match self {
            Self::Empty | Self::Starting(..) => None,
            Self::Up(_, steps) => Some(steps),
        }
    }
}

/// Short durations, so that a run is short.
fn config(life: Life) -> Config {
    Config {
        heartbeat: Millis(200),
        lease: Millis(1_000),
        expire_every: Millis(100),
        stop_grace: Millis(100),
        seed: Some(life),
        ..Config::default()
    }
}

fn settings() -> Vec<Setting> {
    let set = |kind, name: &str, document: String| {
        let (name, document) = (name.to_owned(), Some(document));
        Setting { kind, name, document }
    };
    let quota = format!(r#"{{"quotas": [{{"pool": "default", "max": {QUOTA}}}]}}"#);
    vec![
        set(SettingKind::Tenant, "a", quota),
        set(SettingKind::Tenant, "b", format!(r#"{{"jobs_max": {JOBS_MAX}}}"#)),
        set(SettingKind::Type, "narrow", format!(r#"{{"jobs_max": {NARROW_MAX}}}"#)),
        set(SettingKind::Resource, "disk", "{}".to_owned()),
    ]
}

/// A worker whose clock is up to an hour off, and up to 5 % too fast or too slow.
fn worker(n: u64, chance: &mut Chance) -> Hands {
    let signed = |n: u64| i64::try_from(n).unwrap_or(0);
    let ahead_ms = signed(chance.between(0, 7_200_000)) - 3_600_000;
    let rate = signed(chance.between(950, 1_050));
    let slots = u32::try_from(chance.between(2, 3)).unwrap_or(2);
    Hands::new(format!("w{n}"), slots, Clock { ahead_ms, rate })
}
