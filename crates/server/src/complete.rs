//! 5. Complete: what workers say about their attempts, and what becomes of the jobs.

use model::{
    Ask, Ended as WorldEnded, Ending, Event, Eviction, Fixed, JobId, Measured, Millis, Name,
    Progress, Record, State, TenantId, Timestamp, WorkerId,
};
use proto::v1;
use proto::v1::server_message::Message;
use store::{End, Ended, Provided, Report, Start};

use crate::fleet::words::Completion;
use crate::scheduler::Scheduler;
use crate::timers::Timer;
use crate::watch::Change;

/// A job that a worker has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct Live {
    /// The number of the attempt: its fencing token.
    pub(crate) number: u32,
    pub(crate) worker: WorkerId,
    pub(crate) tenant: TenantId,
    pub(crate) kind: Name,
    pub(crate) slots: u32,
    pub(crate) pool: Name,
    pub(crate) cost: Fixed,
    pub(crate) holds: Option<Ask>,
    pub(crate) claimed: Timestamp,
    /// The store knows that its worker has it.
    pub(crate) is_written: bool,
    /// It was put on its worker's stream, by this scheduler or by one before it.
    pub(crate) is_offered: bool,
    /// Its worker said that it runs.
    pub(crate) is_started: bool,
    /// Those who watch know that it runs.
    pub(crate) is_start_told: bool,
    /// It has put something out.
    pub(crate) has_output: bool,
    /// Its end is on the way to the store.
    pub(crate) is_ending: bool,
    /// It was told to stop.
    pub(crate) stop: Option<v1::StopReason>,
    pub(crate) run_timeout: Option<Millis>,
    pub(crate) silence_timeout: Option<Millis>,
    /// When it last said something.
    pub(crate) heard: Timestamp,
    /// How far it last said it was.
    pub(crate) progress: Option<Progress>,
    /// When its silence is looked at next.
    pub(crate) silence_at: Option<Timestamp>,
}

impl Live {
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let current = record.current.as_ref()?;
        Some(Self {
            number: record.counts.attempts,
            worker: current.worker.clone(),
            tenant: record.spec.tenant.clone(),
            kind: record.spec.kind.clone(),
            slots: record.spec.slots,
            pool: current.pool.clone(),
            cost: record.spec.cost,
            holds: current.holds.clone(),
            claimed: current.claimed,
            is_written: true,
            is_offered: false,
            is_started: current.started.is_some(),
            is_start_told: current.started.is_some(),
            has_output: false,
            is_ending: false,
            stop: record.cancelling.then_some(v1::StopReason::Cancelled),
            run_timeout: record.spec.run_timeout,
            silence_timeout: record.spec.silence_timeout,
            heard: current.started.unwrap_or(current.claimed),
            progress: current.progress.clone(),
            silence_at: None,
        })
    }

    /// It runs, and is so far.
    fn change(&self, job: &JobId, at: Timestamp, progress: Option<Progress>) -> Change {
        Change {
            job: job.clone(),
            tenant: self.tenant.clone(),
            kind: self.kind.clone(),
            state: State::Running,
            at,
            worker: Some(self.worker.clone()),
            progress,
        }
    }

    /// When it must have ended. Its worker looks at this itself, so it gets a grace on top.
    pub(crate) fn run_deadline(&self, grace: Millis) -> Option<Timestamp> {
        self.run_timeout.map(|timeout| self.claimed + timeout + grace)
    }
}

impl Scheduler {
    /// The job, if this attempt of it is the worker's; otherwise the word is stale, and counted.
    pub(crate) fn current(&mut self, worker: &WorkerId, attempt: v1::AttemptRef) -> Option<JobId> {
        if !self.jobs.is_current(worker, attempt) {
            self.counters.add("stale_words", 1);
            return None;
        }
        Some(JobId::number(attempt.job))
    }

    /// A worker took its job, and runs it.
    pub(crate) fn accept(&mut self, worker: &WorkerId, job: JobId) {
        let now = self.store.now();
        let Some(live) = self.jobs.live_mut(&job) else { return };
        if live.is_started {
            return;
        }
        live.is_started = true;
        live.heard = now;
        self.timers
            .unset(live.claimed + self.config.accept_within(), Timer::Unaccepted(job.clone()));
        live.silence_at =
            live.silence_timeout.map(|timeout| now + timeout + self.config.stop_grace);
        if let Some(at) = live.silence_at {
            self.timers.set(at, Timer::Silence(job.clone()));
        }
        let start = Start { job, attempt: live.number, worker: worker.clone() };
        self.start(start, now);
    }

    /// The store knows that they run.
    pub(crate) fn started(&mut self, starts: Vec<Start>, answer: Result<Vec<bool>, store::Error>) {
        self.outgoing.is_starting = false;
        let Some(answers) = self.ok(answer) else {
            // Their moment has come: they stand before those whose moment has not.
            let due = starts.into_iter().map(|start| (Timestamp(0), start));
            self.outgoing.starts.splice(..0, due);
            return;
        };
        let at = self.store.now();
        for (start, is_current) in starts.into_iter().zip(answers) {
            if !is_current {
                self.not_current(&start);
            } else if let Some(live) = self.jobs.live_mut(&start.job) {
                live.is_start_told = true;
                self.changes.push(live.change(&start.job, at, None));
            }
        }
    }

    /// Another scheduler gave it up before it was known to run.
    fn not_current(&mut self, start: &Start) {
        let live = self.jobs.live(&start.job);
        if live.is_some_and(|live| live.number == start.attempt && !live.is_ending) {
            self.stop(&start.job, v1::StopReason::Stale);
            self.drop_live(&start.job, start.attempt);
            self.refetch.insert(start.job.clone());
        }
    }

    /// An attempt says how far it is: kept, and told to those who watch.
    pub(crate) fn progressed(&mut self, job: JobId, progress: Progress) {
        let at = self.store.now();
        // What is said before the store knows of it is said again with the next heartbeat.
        let Some(live) = self.jobs.live_mut(&job).filter(|live| live.is_written) else { return };
        live.progress = Some(progress.clone());
        self.changes.push(live.change(&job, at, live.progress.clone()));
        let (attempt, worker) = (live.number, live.worker.clone());
        self.outgoing.reports.push(Report { job, attempt, worker, progress });
    }

    pub(crate) fn noted(&mut self, answer: Result<Vec<bool>, store::Error>) {
        if let Some(answers) = self.ok(answer) {
            let n_refused = answers.iter().filter(|is_kept| !**is_kept).count();
            self.counters.add("words_refused", n_refused);
        }
    }

    /// A worker says that an attempt ended, and how.
    pub(crate) fn finish(&mut self, worker: &WorkerId, job: &JobId, completion: Completion) {
        let Some(live) = self.jobs.live_mut(job) else { return };
        if live.is_ending {
            return;
        }
        live.is_ending = true;
        let end = end_of((job, live.number), worker, completion);
        live.is_started |= end.has_started;
        // Output that is on its way to the store is not known there yet.
        let is_forgetful = self.types.borrow().get(&live.kind).is_some_and(|kind| kind.forget);
        let forget = is_forgetful && !live.has_output;
        self.outgoing.ends.push(End { has_started: live.is_started, forget, ..end });
    }

    /// Ends it silently, unless `provided` does not hold any more when that is written down.
    pub(crate) fn end_provided(
        &mut self,
        job: &JobId,
        (ending, provided): (Ending, Provided),
        error: &str,
    ) {
        let is_ending = self.jobs.live(job).is_none_or(|live| live.is_ending);
        self.end_silently(job, ending, error);
        if let Some(end) = self.outgoing.ends.last_mut().filter(|_| !is_ending) {
            end.provided = provided;
        }
    }

    /// An attempt ends without a word of its worker.
    pub(crate) fn end_silently(&mut self, job: &JobId, ending: Ending, error: &str) {
        let Some(live) = self.jobs.live(job) else { return };
        let worker = live.worker.clone();
        self.counters.add("attempts_ended_silently", 1);
        let completion = Completion {
            ending,
            error: Some(error.to_owned()),
            result: None,
            exit_code: None,
            measured: Measured::default(),
            cost: None,
            fetched: None,
            is_silent: true,
        };
        self.finish(&worker, job, completion);
    }

    /// The store knows how they ended, or refused to hear it.
    pub(crate) fn completed(&mut self, ends: Vec<End>, answer: Result<Vec<Ended>, store::Error>) {
        self.n_ending -= 1;
        let Some(answers) = self.ok(answer) else {
            // Nothing was told to the workers: the same is tried again, one by one, so that none
            // stands in the way of the others.
            self.in_doubt.extend(ends.iter().map(|end| end.job.clone()));
            self.outgoing.ends_alone.extend(ends);
            return;
        };
        let at = self.store.now();
        for (end, answer) in ends.into_iter().zip(answers) {
            let is_stale = matches!(answer, Ended::Stale);
            let is_accepted = matches!(answer, Ended::Accepted { .. });
            match answer {
                Ended::Accepted { record, charged, run, released, cancelled, changed } => {
                    self.in_doubt.remove(&end.job);
                    self.minute.ended(end.ending);
                    if let Some(run) = run {
                        self.learn(&run, &record);
                        self.pairs.ended(&run);
                    }
                    self.settle(&end, &record, (charged, at));
                    for record in released.iter().chain(&changed) {
                        self.enqueue(record);
                    }
                    for record in released.iter().chain(&cancelled) {
                        self.changed(record);
                    }
                }
                // The record says what it is now; ours was wrong.
                Ended::Repeated | Ended::Stale => {
                    self.counters.add("stale_results", usize::from(is_stale));
                    let may_go_on = is_stale && end.provided != Provided::Nothing;
                    if may_go_on && self.is_known_here(&end.worker) {
                        self.goes_on(&end);
                    } else {
                        self.drop_live(&end.job, end.attempt);
                    }
                    self.refetch.insert(end.job.clone());
                }
            }
            // Who gave it up wrongly knows nothing of what its worker says: it will be said again.
            // Who gave it up rightly knows that whatever its worker says is too late.
            if is_accepted || !end.is_silent {
                let is_late = is_stale || end.is_silent;
                self.acknowledge(&end.worker, &end.job, end.attempt, is_late);
            }
        }
    }

    /// Its worker was heard in the last moment. It is under way as before, unless the record that
    /// is read again says otherwise: until then, what its worker says must not be passed over.
    fn goes_on(&mut self, end: &End) {
        if let Some(live) = self.jobs.live_mut(&end.job).filter(|live| live.number == end.attempt) {
            live.is_ending = false;
            if live.stop == Some(v1::StopReason::Stale) {
                live.stop = None;
            }
        }
    }

    /// Whether what becomes of a worker's attempts is heard here. A worker that has moved to
    /// another scheduler has taken them along.
    fn is_known_here(&self, worker: &WorkerId) -> bool {
        !self.is_shared() || self.fleet.seats.contains_key(worker)
    }

    fn settle(&mut self, end: &End, record: &Record, (charged, at): (Fixed, Timestamp)) {
        if let Some(live) = self.remove_live(&end.job).filter(|live| live.is_started) {
            let told = (!live.is_start_told).then(|| live.change(&end.job, at, None));
            self.changes.extend(told);
        }
        let completed = record.state == State::Succeeded;
        let ended = WorldEnded { job: end.job.clone(), cost: charged, completed, at };
        self.world.apply(Event::Ended(ended));
        self.settled(&record.spec.tenant, charged, completed);
        if end.ending == Ending::Preempted {
            self.evicted(record, &end.worker, at);
        }
        if completed && let Some(hint) = &record.spec.hint {
            self.learn_hint(&end.worker, hint);
        }
        self.changed(record);
        self.enqueue(record);
        if record.state.is_terminal() {
            self.group_job_ended(record);
        }
    }

    fn evicted(&mut self, record: &Record, worker: &WorkerId, at: Timestamp) {
        let pool = self.fleet.pool_of(worker);
        let tenant = record.spec.tenant.clone();
        self.world.apply(Event::Evicted(Eviction { at, tenant, pool }));
    }

    fn remove_live(&mut self, job: &JobId) -> Option<Live> {
        let live = self.jobs.take(job)?;
        if let Some(at) = live.run_deadline(self.config.stop_grace) {
            self.timers.unset(at, Timer::RunTimeout(job.clone()));
        }
        if let Some(at) = live.silence_at {
            self.timers.unset(at, Timer::Silence(job.clone()));
        }
        self.timers
            .unset(live.claimed + self.config.accept_within(), Timer::Unaccepted(job.clone()));
        Some(live)
    }

    /// Forgets an attempt that the store does not know as current.
    pub(crate) fn drop_live(&mut self, job: &JobId, number: u32) {
        if self.jobs.live(job).is_none_or(|live| live.number != number) {
            return;
        }
        self.remove_live(job);
        let (cost, at) = (Fixed::ZERO, self.store.now());
        let ended = WorldEnded { job: job.clone(), cost, completed: false, at };
        self.world.apply(Event::Ended(ended));
    }

    /// The worker may forget the attempt.
    pub(crate) fn acknowledge(&mut self, worker: &WorkerId, job: &JobId, number: u32, stale: bool) {
        let Some(stream) = self.fleet.stream_of(worker) else { return };
        let attempt = Some(v1::AttemptRef::new(job, number));
        self.send(stream, Message::CompleteAck(v1::CompleteAck { attempt, stale }));
    }
}

/// What the store is told about the end of an attempt. One that came to its own end has begun, even
/// if its worker did not say so before.
pub(crate) fn end_of(
    (job, attempt): (&JobId, u32),
    worker: &WorkerId,
    completion: Completion,
) -> End {
    End {
        has_started: !completion.is_silent && completion.ending.is_own(),
        error: completion.error,
        result: completion.result,
        exit_code: completion.exit_code,
        measured: completion.measured,
        cost: completion.cost,
        fetched: completion.fetched,
        is_silent: completion.is_silent,
        draw: draw(job, attempt),
        ..End::new(job.clone(), attempt, worker.clone(), completion.ending)
    }
}

/// A number that differs between attempts and is the same whenever it is asked for.
fn draw(job: &JobId, number: u32) -> u64 {
    let mixed = job.as_number().unwrap_or(0) ^ (u64::from(number) << 48);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests;
