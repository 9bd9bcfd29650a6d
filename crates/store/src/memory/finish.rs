//! Attempts end, jobs are cancelled, and their dependents are released or cancelled.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use model::{Cause, Ending, IfFailed, JobId, Record, State, Timestamp};

use super::World;
use crate::transition::{self, After, Off};
use crate::{Cancelled, End, Ended, Provided, Revived, minute};

/// Other jobs that changed when a job became final, each list by id.
#[derive(Default)]
struct Settled {
    released: Vec<Record>,
    cancelled: Vec<Record>,
    changed: Vec<Record>,
}

impl World {
    pub(super) fn complete(&mut self, end: &End, now: Timestamp) -> Ended {
        let patience = self.options.patience;
        let Some((number, record)) = self.job_mut(&end.job) else {
            return Ended::Stale;
        };
        if !transition::is_current(record, end.attempt, &end.worker) {
            return match self.pasts.get(&(number, end.attempt)) {
                Some(past) if past.worker == end.worker && past.ending == end.ending => {
                    Ended::Repeated
                }
                Some(_) | None => Ended::Stale,
            };
        }
        if end.provided == Provided::Silence && !self.is_silent(&end.worker, now) {
            return Ended::Stale;
        }
        let has_more = self.has_output(number) || self.keyed.contains(&number);
        let record = self.known(number);
        let is_forgotten = !has_more && transition::is_forgotten(record, end);
        let Some(after) = transition::end(record, end, &patience, now) else {
            return Ended::Stale;
        };
        let record = record.clone();
        if end.provided == Provided::Silence {
            self.close(&end.worker);
        }
        self.pasts.insert((number, end.attempt), after.past);
        self.runs.extend(after.run.as_deref().cloned());
        let key = (minute::of(now), record.spec.tenant.clone());
        let usage = self.usage.entry(key).or_default();
        usage.0 += after.charged;
        usage.1 += u64::from(end.ending == Ending::Succeeded);
        self.note(number);
        let Settled { released, cancelled, changed } = self.settle(number, now);
        if is_forgotten {
            self.jobs.remove(&number);
            self.pasts.remove(&(number, end.attempt));
        }
        let record = Arc::new(record);
        let After { charged, run, .. } = after;
        Ended::Accepted { record, charged, run, released, cancelled, changed }
    }

    fn has_output(&self, number: i64) -> bool {
        self.logs.range((number, 0, 0)..(number + 1, 0, 0)).next().is_some()
    }

    pub(super) fn cancel(&mut self, id: &JobId, now: Timestamp) -> Cancelled {
        let Some((number, record)) = self.job_mut(id) else {
            return Cancelled::Unknown;
        };
        let off = transition::cancel(record, now);
        let record = Box::new(record.clone());
        match off {
            Off::Final => self.done(number, record, now),
            Off::Stopping | Off::StoppingAlready => Cancelled::Stopping(record),
            Off::Before => Cancelled::Unchanged(record),
        }
    }

    pub(super) fn give_up(&mut self, id: &JobId, now: Timestamp) -> Cancelled {
        let Some((number, record)) = self.job_mut(id) else {
            return Cancelled::Unknown;
        };
        let is_late = transition::give_up(record, now);
        let record = Box::new(record.clone());
        if is_late { self.done(number, record, now) } else { Cancelled::Unchanged(record) }
    }

    pub(super) fn revive(&mut self, id: &JobId, now: Timestamp) -> Revived {
        let Some((number, record)) = self.job(id) else {
            return Revived::Unknown;
        };
        if !matches!(record.state, State::Failed | State::Cancelled) {
            return Revived::NotFinished(record.state);
        }
        let spec = &record.spec;
        if let Some(key) = spec.dedupe_key.clone()
            && let Some(holder) = self.dedupe.get(&(spec.tenant.clone(), spec.kind.clone(), key))
        {
            return Revived::Taken(crate::number::id(*holder));
        }
        if let Err(refusal) = self.check_room(&spec.tenant.clone(), 1) {
            return Revived::Full(refusal);
        }
        let record = self.known(number);
        transition::revive(record, now);
        let record = Box::new(record.clone());
        self.list(number);
        Revived::Done(record)
    }

    fn done(&mut self, number: i64, record: Box<Record>, now: Timestamp) -> Cancelled {
        self.note(number);
        let Settled { released, cancelled, changed } = self.settle(number, now);
        Cancelled::Done { record, released, cancelled, changed }
    }

    /// If this job is final, removes its edges and settles its dependents.
    fn settle(&mut self, number: i64, now: Timestamp) -> Settled {
        let is_end = |edge: &(i64, i64)| edge.0 == number || edge.1 == number;
        if !self.waits.iter().any(is_end) {
            self.list(number);
            return Settled::default();
        }
        let before: BTreeMap<i64, (u64, State)> = self
            .unfinished
            .iter()
            .filter(|id| **id != number)
            .map(|id| (*id, (self.jobs[id].fence, self.jobs[id].state)))
            .collect();
        let mut open = VecDeque::from([number]);
        while let Some(number) = open.pop_front() {
            let state = self.known(number).state;
            if !state.is_terminal() {
                break;
            }
            self.list(number);
            self.leave_queue(number);
            for waiter in self.waiters(number) {
                self.waits.remove(&(number, waiter));
                let record = self.known(waiter);
                if state == State::Succeeded || record.spec.if_failed == IfFailed::Run {
                    transition::unblock(record, now);
                } else if !record.state.is_terminal() {
                    let cause = Some(Cause::Dependency);
                    transition::finish(record, State::Cancelled, cause, now);
                    self.note(waiter);
                    open.push_back(waiter);
                }
            }
        }
        self.compare(&before)
    }

    /// Removes a final job from the dependents of its blockers. Blockers that are final themselves
    /// have no count.
    fn leave_queue(&mut self, number: i64) {
        let edges: Vec<(i64, i64)> =
            self.waits.iter().copied().filter(|(_, waiter)| *waiter == number).collect();
        for (blocker, waiter) in edges {
            let record = self.known(blocker);
            if !record.state.is_terminal() {
                transition::remove_dependent(record);
                self.waits.remove(&(blocker, waiter));
            }
        }
    }

    fn waiters(&self, blocker: i64) -> Vec<i64> {
        let edges = self.waits.range((blocker, i64::MIN)..=(blocker, i64::MAX));
        edges.map(|(_, waiter)| *waiter).collect()
    }

    fn compare(&self, before: &BTreeMap<i64, (u64, State)>) -> Settled {
        let mut settled = Settled::default();
        for (id, (fence, state)) in before {
            let record = &self.jobs[id];
            let list = match record.state {
                _ if record.fence == *fence => continue,
                State::Cancelled => &mut settled.cancelled,
                State::Queued if *state == State::Blocked => &mut settled.released,
                State::Blocked
                | State::Queued
                | State::Claimed
                | State::Running
                | State::Succeeded
                | State::Failed => &mut settled.changed,
            };
            list.push(record.clone());
        }
        settled
    }
}
