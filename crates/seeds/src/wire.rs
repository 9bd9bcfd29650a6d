//! The calls between schedulers and the store. The run selects when a call is executed, and when it
//! is answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use store::Memory;
use store::conformance::Time;

use crate::broken::Broken;
use crate::share::Shares;
use crate::trace::Trace;

/// One life of a scheduler: a new number after every start.
pub(crate) type Life = u64;

/// The store, and all open calls.
pub(crate) struct Wire {
    pub(crate) memory: Memory,
    pub(crate) time: Time,
    pub(crate) broken: Option<Broken>,
    pub(crate) trace: Trace,
    pub(crate) shares: Shares,
    /// Several schedulers share the store.
    pub(crate) is_shared: bool,
    calls: Mutex<Calls>,
}

#[derive(Default)]
struct Calls {
    n_asked: u64,
    under_way: BTreeMap<u64, Call>,
    alive: BTreeSet<Life>,
    /// Schedulers with a stopped connection: none of their calls is executed.
    stalled: BTreeSet<Life>,
}

struct Call {
    from: Life,
    what: &'static str,
    order: Order,
    stage: Stage,
}

/// Which calls of one scheduler may overtake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Executed in the order of the calls, as writers do.
    Write,
    /// Executed at any time.
    Read,
}

enum Stage {
    Asked(Work),
    Done(Answer),
}

/// Executes a call or fails it, and returns how to answer.
pub(crate) type Work = Box<dyn FnOnce(&Wire, Fate) -> Answer + Send>;
/// Answers the caller.
pub(crate) type Answer = Box<dyn FnOnce() + Send>;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is executed.
    Done,
    /// It changes nothing, and fails.
    Failed,
}

impl Wire {
    /// A store of one scheduler.
    pub(crate) fn new(memory: Memory, time: Time, broken: Option<Broken>, trace: Trace) -> Self {
        let (shares, calls) = (Shares::default(), Mutex::default());
        Self { memory, time, broken, trace, shares, is_shared: false, calls }
    }

    /// The same for several schedulers.
    pub(crate) fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Adds a line with the time to the trace.
    pub(crate) fn tell(&self, words: impl FnOnce() -> String) {
        self.trace.tell(|| format!("{:>7} {}", self.time.now().0 - START_MS, words()));
    }

    pub(crate) fn is_broken(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    /// A scheduler starts.
    pub(crate) fn begin(&self, life: Life) {
        self.calls().alive.insert(life);
    }

    /// A scheduler is killed: none of its calls is answered any more.
    pub(crate) fn end(&self, life: Life) {
        let dropped: Vec<Call> = {
            let mut calls = self.calls();
            calls.alive.remove(&life);
            calls.stalled.remove(&life);
            let of_life: Vec<u64> = calls.of(life);
            of_life.iter().filter_map(|number| calls.under_way.remove(number)).collect()
        };
        // The drop wakes their callers, which may make further calls, so it is not under the lock.
        drop(dropped);
    }

    /// A scheduler's connection is stopped, or continues.
    pub(crate) fn stall(&self, life: Life) {
        let is_stuck = {
            let mut calls = self.calls();
            let was_stuck = calls.stalled.remove(&life);
            was_stuck || !calls.stalled.insert(life)
        };
        let how = if is_stuck { "goes on" } else { "is stuck" };
        self.tell(|| format!("the line of s{life} {how}"));
    }

    /// All connections continue.
    pub(crate) fn go_on(&self) {
        self.calls().stalled.clear();
    }

    /// A scheduler makes a call. A call of a killed scheduler is dropped.
    pub(crate) fn put(&self, from: Life, what: &'static str, order: Order, work: Work) {
        let mut calls = self.calls();
        if calls.alive.contains(&from) {
            calls.n_asked += 1;
            let (number, stage) = (calls.n_asked, Stage::Asked(work));
            calls.under_way.insert(number, Call { from, what, order, stage });
        }
    }

    /// Calls that may be executed now.
    pub(crate) fn asked(&self) -> Vec<u64> {
        let calls = self.calls();
        let mut writers = BTreeSet::new();
        let is_next = |(number, call): (&u64, &Call)| match (&call.stage, call.order) {
            (Stage::Asked(_), _) if calls.stalled.contains(&call.from) => None,
            (Stage::Done(_), _) => None,
            (Stage::Asked(_), Order::Read) => Some(*number),
            (Stage::Asked(_), Order::Write) => writers.insert(call.from).then_some(*number),
        };
        calls.under_way.iter().filter_map(is_next).collect()
    }

    /// The first call of one scheduler that may be executed now.
    pub(crate) fn asked_by(&self, life: Life) -> Option<u64> {
        let asked = self.asked();
        let calls = self.calls();
        asked.into_iter().find(|number| calls.under_way[number].from == life)
    }

    /// Calls that are executed and not answered.
    pub(crate) fn done(&self) -> Vec<u64> {
        let calls = self.calls();
        let is_done = |(_, call): &(&u64, &Call)| matches!(call.stage, Stage::Done(_));
        calls.under_way.iter().filter(is_done).map(|(number, _)| *number).collect()
    }

    /// Executes a call.
    pub(crate) fn perform(&self, number: u64, fate: Fate) {
        let Some(Call { from, what, order, stage }) = self.calls().under_way.remove(&number) else {
            return;
        };
        let stage = match stage {
            Stage::Asked(work) => {
                if fate == Fate::Failed {
                    self.tell(|| format!("store    {what} of s{from} fails"));
                }
                Stage::Done(work(self, fate))
            }
            Stage::Done(answer) => Stage::Done(answer),
        };
        self.calls().under_way.insert(number, Call { from, what, order, stage });
    }

    /// Answers a call.
    pub(crate) fn answer(&self, number: u64) {
        let call = self.calls().under_way.remove(&number);
        if let Some(Call { stage: Stage::Done(answer), .. }) = call {
            answer();
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn of(&self, life: Life) -> Vec<u64> {
        let of_life = self.under_way.iter().filter(|(_, call)| call.from == life);
        of_life.map(|(number, _)| *number).collect()
    }
}

/// The time at the start of a run.
const START_MS: i64 = 1_800_000_000_123;
