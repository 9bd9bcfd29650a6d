//! One simulation run: a time with faults, then a time without.

use checker::{Op, Outcome, Said, Violation};
use futures_util::FutureExt as _;
use model::Millis;
use store::Store as _;

use crate::broken::Broken;
use crate::check::{check, ghosts};
use crate::client::{Ask, Client, request};
use crate::hands::Health;
use crate::history::left;
use crate::line::at_once;
use crate::site::{CLOCKS_MS, Losses, Site};
use crate::trace::Trace;
use crate::wire::Fate;

/// Steps with faults.
const STEPS: u32 = 800;
/// Rounds of all parts after the last fault. The longest wait that a scheduler may set is half a
/// minute.
const ROUNDS_MAX: u32 = 4_000;
/// The time between two rounds.
const ROUND_MS: u64 = 20;

/// The result of a run.
#[derive(Debug)]
pub struct Played {
    /// The seed.
    pub seed: u64,
    /// The violations.
    pub violations: Vec<Violation>,
    /// The trace, in order. Empty if it was not requested.
    pub trace: Vec<String>,
    /// The counts of the run.
    pub counts: Counts,
}

/// The counts of a run, which show that it covered enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs.
    pub jobs: usize,
    /// Attempts.
    pub attempts: usize,
    /// Attempts that were lost with their worker.
    pub lost: usize,
    /// Stale results.
    pub stale: usize,
    /// Killed schedulers.
    pub crashes: usize,
    /// Workers that were killed, suspended or disconnected.
    pub harms: usize,
    /// Lost answers to clients.
    pub unknown: usize,
    /// Runs of jobs that were never stored.
    pub ghosts: usize,
}

impl Counts {
    /// The sum of both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            jobs: self.jobs + other.jobs,
            attempts: self.attempts + other.attempts,
            lost: self.lost + other.lost,
            stale: self.stale + other.stale,
            crashes: self.crashes + other.crashes,
            harms: self.harms + other.harms,
            unknown: self.unknown + other.unknown,
            ghosts: self.ghosts + other.ghosts,
        }
    }
}

/// Whether a trace is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A trace is kept.
    Somebody,
    /// No trace is kept.
    Nobody,
}

/// Runs one seed, with one bug or none.
pub fn play(seed: u64, broken: Option<Broken>, reader: Reader) -> Played {
    let trace = match reader {
        Reader::Somebody => Trace::kept(),
        Reader::Nobody => Trace::default(),
    };
    let mut site = Site::new(seed, broken, trace);
    let mut counts = Counts::default();
    for seat in 0..site.schedulers.len() {
        begin(&mut site, seat);
    }
    for _ in 0..STEPS {
        step(&mut site, &mut counts);
    }
    heal(&mut site);
    let n_rounds = drain(&mut site);
    let keys = keys(&mut site);
    let left = left(&site, keys);
    let mut violations = check(&left, &site.notes);
    if n_rounds == ROUNDS_MAX {
        let what = "not everybody knew what became of their jobs in the end".to_owned();
        violations.push(Violation { rule: "no-progress", what });
    }
    counts.jobs = left.history.jobs.len();
    counts.attempts = left.history.attempts.len();
    counts.lost = left.history.attempts.iter().filter(|one| one.ending == "lost").count();
    counts.stale = site.notes.acks.iter().filter(|ack| ack.is_stale).count();
    let is_unknown = |said: &&Said| said.outcome == Outcome::Unknown;
    counts.unknown = site.notes.said.iter().filter(is_unknown).count();
    counts.ghosts = ghosts(&left.history).len();
    Played { seed, violations, trace: site.wire.trace.lines(), counts }
}

/// Does one random step.
fn step(site: &mut Site, counts: &mut Counts) {
    let n = |n: usize| u64::try_from(n).unwrap_or(0);
    let index = |n: u64| usize::try_from(n).unwrap_or(0);
    let seat = index(site.chance.between(1, n(site.schedulers.len())) - 1);
    let worker = index(site.chance.between(1, n(site.workers.len())) - 1);
    let client = index(site.chance.between(1, n(site.clients.len())) - 1);
    match site.chance.between(0, 99) {
        0..=13 => call(site),
        14..=27 => answer(site),
        28..=42 => turn(site, seat),
        43..=59 => site.act(worker),
        60..=70 => word(site),
        71..=77 => site.ask(client, Losses::Some),
        78..=81 => site.hear(seat),
        82..=84 => site.echo(),
        85 => site.see(client),
        86..=93 => pass(site),
        94 | 95 => begin(site, seat),
        96 => {
            if site.chance.is_one_in(2) {
                counts.crashes += usize::from(site.schedulers[seat].is_up());
                site.crash(seat);
            }
        }
        _ => {
            counts.harms += 1;
            harm(site, worker, seat);
        }
    }
}

/// The store executes a call, or fails to.
fn call(site: &mut Site) {
    for _ in 0..site.chance.between(1, 8) {
        let asked = site.wire.asked();
        let Some(number) = site.chance.pick(&asked).copied() else { return };
        let fate = if site.chance.is_one_in(60) { Fate::Failed } else { Fate::Done };
        site.wire.perform(number, fate);
    }
}

/// A caller receives the store's answer.
fn answer(site: &mut Site) {
    for _ in 0..site.chance.between(1, 8) {
        let done = site.wire.done();
        let Some(number) = site.chance.pick(&done).copied() else { return };
        site.wire.answer(number);
    }
}

/// One scheduler takes a step, or all do.
fn turn(site: &mut Site, seat: usize) {
    if site.chance.is_one_in(3) {
        (0..site.schedulers.len()).for_each(|seat| site.turn(seat));
    } else {
        site.turn(seat);
    }
}

/// Messages of a worker arrive.
fn word(site: &mut Site) {
    let streams: Vec<u64> = site.pipes.keys().copied().collect();
    if let Some(stream) = site.chance.pick(&streams).copied() {
        for _ in 0..site.chance.between(1, 3) {
            site.deliver(stream);
        }
    }
}

/// Usually little time passes, and sometimes more than a lease. Most faults end with it, because a
/// run without traffic would test nothing.
fn pass(site: &mut Site) {
    if site.chance.is_one_in(4) {
        site.clear_up();
    }
    let ms = if site.chance.is_one_in(12) {
        site.chance.between(500, 1_500)
    } else {
        site.chance.between(1, 120)
    };
    site.pass(ms);
}

fn begin(site: &mut Site, seat: usize) {
    let off = i64::try_from(site.chance.between(0, 2 * CLOCKS_MS)).unwrap_or(0);
    site.start(seat, Millis(off - CLOCKS_MS.cast_signed()));
}

fn harm(site: &mut Site, worker: usize, seat: usize) {
    if let Some(life) = site.schedulers[seat].life().filter(|_| site.chance.is_one_in(3)) {
        return site.wire.stall(life);
    }
    match (site.workers[worker].health, site.chance.between(0, 7)) {
        (Health::Well, 0) => site.kill(worker),
        (Health::Well, 1) => site.suspend(worker),
        (Health::Well, 2 | 3) => site.cut(worker),
        (Health::Well, 4) => site.stick(worker),
        (Health::Well, 5..=7) => site.workers[worker].echo(&mut site.chance),
        (Health::Suspended | Health::Dead, 0..=5) => site.revive(worker),
        (Health::Well | Health::Suspended | Health::Dead, _) => {}
    }
}

/// No fault happens from now on. Some killed processes stay down.
fn heal(site: &mut Site) {
    site.wire.tell(|| "from here on nothing goes wrong".to_owned());
    for seat in 0..site.schedulers.len() {
        site.crash(seat);
    }
    for worker in 0..site.workers.len() {
        site.cut(worker);
        let is_needed = worker == 0;
        if is_needed || site.chance.is_one_in(2) {
            site.revive(worker);
        } else {
            site.kill(worker);
        }
    }
    site.start(0, Millis(0));
}

/// All parts work until nothing is left. Returns the number of rounds.
fn drain(site: &mut Site) -> u32 {
    for round in 0..ROUNDS_MAX {
        settle(site);
        let is_over = at_once(site.wire.memory.look(None, 1)).is_empty();
        if is_over && site.clients.iter().all(Client::is_content) {
            return round;
        }
        site.pass(ROUND_MS);
    }
    ROUNDS_MAX
}

fn settle(site: &mut Site) {
    for _ in 0..3 {
        site.turn(0);
        for number in site.wire.asked() {
            site.wire.perform(number, Fate::Done);
        }
        for number in site.wire.done() {
            site.wire.answer(number);
        }
        for worker in 0..site.workers.len() {
            site.act(worker);
        }
        let streams: Vec<u64> = site.pipes.keys().copied().collect();
        for stream in streams {
            site.deliver(stream);
        }
    }
    for client in 0..site.clients.len() {
        site.ask(client, Losses::None);
    }
}

/// The answers to repetitions of all acknowledged submissions.
fn keys(site: &mut Site) -> Vec<(String, Vec<u64>)> {
    let is_ok = |said: &&Said| said.op == Op::Submit && said.outcome == Outcome::Ok;
    let mut keys: Vec<String> =
        site.notes.said.iter().filter(is_ok).map(|said| said.key.clone()).collect();
    keys.sort();
    keys.dedup();
    let mut answers = Vec::new();
    for key in keys {
        let Some(asked) = site.clients.iter().find_map(|client| client.submitted(&key)).cloned()
        else {
            continue;
        };
        let Some(steps) = site.schedulers[0].steps() else { continue };
        let mut answer = request(&Ask::Submit(asked), steps);
        for _ in 0..10 {
            if let Some(told) = answer.as_mut().now_or_never() {
                answers.push((key, told.map(|told| told.ids().to_vec()).unwrap_or_default()));
                break;
            }
            settle(site);
        }
    }
    answers
}
