//! The data that several schedulers share in the store beside its records: the list of schedulers,
//! and the usage of common limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{JobId, Millis, Record, State, Timestamp, WorkerId};
use store::{
    Claim, Claimed, Limit, Meeting, Memory, News, Peer, Reply, Seen, Shared, Store as _, Window,
};
use tokio::sync::mpsc;

use crate::broken::Broken;
use crate::line::{Line, at_once};
use crate::site::MANY;
use crate::wire::{Life, Order, Wire};

/// A scheduler that did not report for this time is gone.
const GONE_AFTER: Millis = Millis(5_000);
/// One of this many schedulers sees its peers.
const HEARS_EVERY: u64 = 3;

/// The shared data.
#[derive(Default)]
pub(crate) struct Shares {
    said: Mutex<BTreeMap<Life, Peer>>,
    /// The usage of attempts, by job and number. Ended attempts use nothing.
    charges: Mutex<BTreeMap<(JobId, u32), Vec<Limit>>>,
}

impl Shares {
    fn said(&self) -> MutexGuard<'_, BTreeMap<Life, Peer>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims jobs one after the other, each if it fits the usage.
    pub(crate) fn claim(&self, wire: &Wire, claims: Vec<Claim>) -> Vec<Claimed> {
        let mut charges = self.charges.lock().unwrap_or_else(PoisonError::into_inner);
        charges.retain(|(job, attempt), _| is_under_way(&wire.memory, job, *attempt));
        let mut answers = Vec::with_capacity(claims.len());
        for claim in claims {
            let in_use = |name: &str| -> i64 {
                let all = charges.values().flatten().filter(|limit| limit.name == name);
                all.map(|limit| limit.amount).sum()
            };
            let over = claim.limits.iter().find(|limit| {
                in_use(&limit.name).saturating_add(limit.amount) > limit.max
                    && !wire.is_broken(Broken::Limit)
            });
            if let Some(limit) = over {
                answers.push(Claimed::Refused(limit.name.clone()));
                continue;
            }
            let limits = claim.limits.clone();
            let answer = at_once(wire.memory.claim(vec![claim])).pop();
            let answer = answer.unwrap_or(Claimed::Lost(None));
            if let Claimed::Won(record) = &answer {
                charges.insert((record.id.clone(), record.counts.attempts), limits);
            }
            answers.push(answer);
        }
        answers
    }
}

fn is_under_way(memory: &Memory, job: &JobId, attempt: u32) -> bool {
    let record = at_once(memory.job(job.clone()));
    record.is_some_and(|one| one.current.is_some() && one.counts.attempts == attempt)
}

impl Shared for Line {
    fn meet(&self, said: String, _: bool) -> Reply<'_, Meeting> {
        let from = self.from;
        self.ask(("meet", Order::Read), move |wire| {
            let at = wire.memory.now();
            let mut all = wire.shares.said();
            all.insert(from, Peer { said, at });
            all.retain(|_, peer| at.since(peer.at) < GONE_AFTER);
            // Shards are only a hint: a scheduler that sees no peers claims all jobs.
            let mut all = all.clone();
            if !from.is_multiple_of(HEARS_EVERY) {
                all.retain(|life, _| *life == from);
            }
            let place = all.keys().position(|life| *life == from).unwrap_or(0);
            Meeting { place, all: all.values().cloned().collect() }
        })
    }

    fn window(&self, ask: Window) -> Reply<'_, Seen> {
        self.ask(("window", Order::Read), move |wire| {
            // Every scan is a full scan.
            window(&wire.memory, ask)
        })
    }

    fn held(&self, worker: WorkerId) -> Reply<'_, Vec<Record>> {
        self.ask(("held", Order::Read), move |wire| {
            let is_its = |record: &Record| {
                record.current.as_ref().is_some_and(|current| current.worker == worker)
            };
            unfinished(&wire.memory).into_iter().filter(is_its).collect()
        })
    }

    fn unstarted(&self, before: Timestamp, max: usize) -> Reply<'_, Vec<Record>> {
        self.ask(("unstarted", Order::Read), move |wire| {
            let is_unstarted = |record: &Record| {
                let current = record.current.as_ref();
                record.state == State::Claimed && current.is_some_and(|one| one.claimed <= before)
            };
            unfinished(&wire.memory).into_iter().filter(is_unstarted).take(max).collect()
        })
    }

    fn called_off(&self, workers: Vec<WorkerId>) -> Reply<'_, Vec<JobId>> {
        self.ask(("called_off", Order::Read), move |wire| {
            let is_called_off = |record: &Record| {
                let current = record.current.as_ref();
                record.cancelling && current.is_some_and(|one| workers.contains(&one.worker))
            };
            let records = unfinished(&wire.memory).into_iter().filter(is_called_off);
            records.map(|record| record.id).collect()
        })
    }

    fn say_changed(&self, _: Vec<JobId>) {}

    fn say_missed(&self) {}

    fn these(&self, jobs: Vec<JobId>) -> Reply<'_, Vec<Record>> {
        self.ask(("these", Order::Read), move |wire| {
            jobs.iter().filter_map(|job| at_once(wire.memory.job(job.clone()))).collect()
        })
    }

    /// There are no notifications: schedulers poll.
    fn listen(&self) -> mpsc::Receiver<News> {
        mpsc::channel(1).1
    }
}

/// By id.
fn unfinished(memory: &Memory) -> Vec<Record> {
    at_once(memory.look(None, MANY))
}

fn window(memory: &Memory, ask: Window) -> Seen {
    let (now, (place, n_all)) = (memory.now(), ask.stripe);
    let number = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let is_own =
        |job: &JobId| job.as_number().is_none_or(|id| id % number(n_all.max(1)) == number(place));
    let mut seen = Seen { is_whole: true, ..Seen::default() };
    let is_waiting = |record: &Record| record.state == State::Queued && !record.on_hold;
    for record in unfinished(memory).into_iter().filter(is_waiting) {
        let due = record.backoff_until.max(record.spec.not_before).filter(|due| *due > now);
        match due {
            Some(due) => seen.next_due = Some(seen.next_due.map_or(due, |next| next.min(due))),
            None if is_own(&record.id) => seen.own.push(Arc::new(record)),
            None => seen.spare.push(Arc::new(record)),
        }
    }
    let order = |record: &Arc<Record>| (-record.priority, record.ready, record.id.clone());
    seen.own.sort_by_key(order);
    seen.spare.sort_by_key(order);
    seen
}
