//! The jobs of a group: how many are left, which are called off, and how they ended.

use std::sync::Arc;

use ::detect::{Ends, Status, Sweep};
use futures_util::FutureExt as _;
use model::{JobId, Record, State};
use store::{Cancelled, Error, Filter, Store};

use super::group_of;
use super::note::{Activity, run_note};
use crate::scheduler::{Answer, Scheduler};

/// Jobs that are read, or called off, at a time.
const PAGE: usize = 500;
const WAITING: [State; 2] = [State::Blocked, State::Queued];
const UNFINISHED: [State; 4] = [State::Blocked, State::Queued, State::Claimed, State::Running];

/// What a look at a group found.
#[derive(Debug)]
pub(crate) struct Looked {
    n_unfinished: usize,
    cancelled: Vec<Cancelled>,
}

impl Scheduler {
    /// Counts what is unfinished, and calls off what is to be.
    pub(super) fn look(&mut self, name: &str, sweep: Sweep) {
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        let Some(group) = &led.lane.group else { return };
        led.is_busy = true;
        let (group, lane) = (group_of(&group.run), name.to_owned());
        self.call(|store| {
            async move { Answer::Looked(lane, Box::new(swept(&store, &group, sweep).await)) }
                .boxed()
        });
    }

    /// The store looked, and what it called off is gone or stops.
    pub(crate) fn looked(&mut self, name: &str, answer: Result<Looked, Error>) {
        let answer = self.ok(answer);
        self.detection.is_dirty = true;
        let now = self.store.now();
        if let Some(led) = self.detection.lanes.get_mut(name) {
            led.is_busy = false;
            led.looked_at = now;
            led.n_unfinished = answer.as_ref().map(|looked| looked.n_unfinished);
        }
        let cancelled = answer.map(|looked| looked.cancelled).unwrap_or_default();
        let n_cancelled = cancelled.len();
        for one in cancelled {
            self.called_off(one);
        }
        let led = self.detection.lanes.get(name).filter(|_| n_cancelled > 0);
        if let Some(group) = led.and_then(|led| led.lane.group.as_ref()) {
            let what = format!("called off {n_cancelled} jobs of run {}", group.run);
            let why = if group.error.is_empty() { "its time was out" } else { &group.error };
            let who = self.detection.holder.clone();
            let activity = Activity::new("group", &who, &group.kind, what).because(why);
            self.write_down(&activity);
        }
    }

    fn called_off(&mut self, cancelled: Cancelled) {
        match cancelled {
            Cancelled::Done { record, released, cancelled, changed } => {
                for record in std::iter::once(&*record).chain(&cancelled) {
                    self.withdraw(&record.id);
                    self.changed(record);
                }
                for record in released.iter().chain(&changed) {
                    self.enqueue(record);
                }
            }
            Cancelled::Stopping(record) => self.cancel(&record.id),
            Cancelled::Unchanged(_) | Cancelled::Unknown => {}
        }
    }

    /// The group is done: how did its jobs end?
    pub(super) fn count_ends(&mut self, name: &str) {
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        let Some(group) = &led.lane.group else { return };
        led.is_busy = true;
        let (group, lane) = (group_of(&group.run), name.to_owned());
        self.call(|store| async move { Answer::Counted(lane, ends(&store, &group).await) }.boxed());
    }

    /// A run is over: it is remembered, and its lane is free.
    pub(crate) fn counted(&mut self, name: &str, answer: Result<Ends, Error>) {
        let answer = self.ok(answer);
        self.detection.is_dirty = true;
        let now = self.store.now();
        let Some(led) = self.detection.lanes.get_mut(name) else { return };
        led.is_busy = false;
        let Some(run) = answer.and_then(|ends| led.lane.finish(now, ends)) else { return };
        (led.sieve, led.told, led.n_unfinished) = (None, None, None);
        let examples = String::new();
        let what = format!(
            "run {} of `{}` {}: {} proposed, {} taken; {} jobs succeeded, {} failed, {} cancelled",
            run.run,
            run.kind,
            match run.status {
                Status::Succeeded => "went well",
                Status::Failed => "failed",
                Status::OutOfTime => "ran out of time",
            },
            run.n_proposed,
            run.n_taken,
            run.ends.succeeded,
            run.ends.failed,
            run.ends.cancelled,
        );
        let who = self.detection.holder.clone();
        let refused: Vec<String> =
            run.refused.iter().map(|(reason, n)| format!("{n} {reason}")).collect();
        let mut why = run.error.clone();
        if !refused.is_empty() {
            let lead = if why.is_empty() { "" } else { "; " };
            why = format!("{why}{lead}refused: {}{examples}", refused.join(", "));
        }
        self.counters.add("runs", 1);
        let activity = Activity::new("detection", &who, &run.kind, what).because(&why);
        let notes = vec![run_note(&run), activity.note()];
        self.keep(name, notes);
    }
}

async fn page(
    store: &Arc<dyn Store>,
    group: &str,
    states: &[State],
    before: Option<JobId>,
) -> Result<Vec<Record>, Error> {
    let (group, states) = (Some(group.to_owned()), states.to_vec());
    store.jobs(Filter { group, states, before, max: PAGE, ..Filter::default() }).await
}

async fn swept(store: &Arc<dyn Store>, group: &str, sweep: Sweep) -> Result<Looked, Error> {
    let states: &[State] = match sweep {
        Sweep::Nothing => &[],
        Sweep::Waiting => &WAITING,
        Sweep::All => &UNFINISHED,
    };
    let mut cancelled = Vec::new();
    let mut before = None;
    while !states.is_empty() {
        let records = page(store, group, states, before.take()).await?;
        let Some(last) = records.last() else { break };
        before = Some(last.id.clone());
        let jobs = records.into_iter().filter(|record| !record.cancelling);
        cancelled.extend(store.cancel(jobs.map(|record| record.id).collect()).await?);
    }
    let left = page(store, group, &UNFINISHED, None).await?;
    Ok(Looked { n_unfinished: left.len(), cancelled })
}

async fn ends(store: &Arc<dyn Store>, group: &str) -> Result<Ends, Error> {
    let mut ends = Ends::default();
    let mut before = None;
    loop {
        let records = page(store, group, &[], before.take()).await?;
        let Some(last) = records.last() else { return Ok(ends) };
        before = Some(last.id.clone());
        for record in &records {
            match record.state {
                State::Succeeded => ends.succeeded += 1,
                State::Failed => ends.failed += 1,
                State::Cancelled => ends.cancelled += 1,
                State::Blocked | State::Queued | State::Claimed | State::Running => {}
            }
        }
    }
}
