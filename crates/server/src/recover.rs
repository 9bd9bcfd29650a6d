//! After a start: the world is built from what the store knows, before anything is decided.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use decide::World;
use model::{Attempt, Ending, Event, JobId, Millis, Name, Preset, Record, State, Worker, WorkerId};
use store::{Filter, Provided, SettingKind, Store};

use crate::complete::Live;
use crate::config::Config;
use crate::queue::attempt_of;
use crate::scheduler::Scheduler;
use crate::settings::understand;
use crate::timers::Timer;
use crate::watch::Hub;

/// Records that are read at a time.
const PAGE: usize = 1_000;
/// Runs that predictions and averages are drawn from after a start.
const RUNS_MAX: usize = 200_000;

/// Pages of finished jobs that are looked through for what workers have learned.
const HINT_PAGES_MAX: usize = 2;

/// A scheduler that knows all that the store knows.
pub(crate) async fn recover(
    config: Arc<Config>,
    store: Arc<dyn Store>,
    hub: Hub,
) -> Result<Scheduler, store::Error> {
    let seed = config.seed.unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let world = World::new(Preset::Balanced.policy(), seed);
    let mut scheduler = Scheduler::new(Arc::clone(&config), Arc::clone(&store), world, hub);
    let settings = store.settings().await?;
    scheduler.note_settings(&settings);
    for setting in settings {
        if setting.kind == SettingKind::Token {
            continue;
        }
        let is_policy = setting.kind == SettingKind::Policy;
        match understand(&setting) {
            Ok(understood) => scheduler.set(understood),
            // A policy of another version must not keep the scheduler from starting.
            Err(error) if is_policy => {
                tracing::warn!(%error, "the policy is not understood; `resource-aware` stands in");
                let policy = Preset::ResourceAware.policy();
                scheduler.world.apply(Event::Policy(Box::new(policy)));
            }
            Err(error) => {
                let name = setting.name;
                tracing::warn!(%error, name, "a setting is not understood and does not count");
            }
        }
    }
    let day = Millis::from_secs(24 * 3600);
    let runs = store.runs(store.now() - day, RUNS_MAX).await?;
    runs.iter().rev().for_each(|run| scheduler.remember_run(run));
    scheduler.remember_hints().await?;
    scheduler.count_usage(store.usage(store.now() - config.usage_window).await?);
    if scheduler.is_shared() {
        // Others may be at work: what waits is looked at as a window, what runs comes with its
        // worker, and leases are judged once everybody had the time to renew them here.
        scheduler.renew_later();
        scheduler.begin_sharing(store.now());
    } else {
        scheduler.remember_all(&*store).await?;
        // Nobody could renew while there was no scheduler: silence until now proves nothing.
        match store.renew_all(config.lease).await {
            // Without room on the disk it is done as soon as there is some.
            Err(store::Error::Full { .. }) => scheduler.renew_later(),
            renewed => renewed?,
        }
    }
    tracing::info!(
        waiting = scheduler.world.n_queued(),
        running = scheduler.jobs.len() - scheduler.world.n_queued(),
        "the world is built"
    );
    Ok(scheduler)
}

impl Scheduler {
    /// Workers have the hints of their last successful jobs, as far back as is looked.
    async fn remember_hints(&mut self) -> Result<(), store::Error> {
        let mut filter = Filter { states: vec![State::Succeeded], max: PAGE, ..Filter::default() };
        for _ in 0..HINT_PAGES_MAX {
            let records = self.store.jobs(filter.clone()).await?;
            for record in &records {
                let Some((worker, hint)) =
                    record.last_worker.as_ref().zip(record.spec.hint.as_ref())
                else {
                    continue;
                };
                let hints = self.fleet.remembered.entry(worker.clone()).or_default();
                if hints.len() < self.config.hints_learned {
                    hints.push_front(hint.clone());
                }
            }
            let Some(last) = records.last().filter(|_| records.len() == PAGE) else { break };
            filter.before = Some(last.id.clone());
        }
        Ok(())
    }

    async fn remember_all(&mut self, store: &dyn Store) -> Result<(), store::Error> {
        let mut after: Option<JobId> = None;
        loop {
            let records = store.look(after.take(), PAGE).await?;
            let Some(last) = records.last() else { return Ok(()) };
            after = Some(last.id.clone());
            for record in &records {
                self.remember(record);
            }
        }
    }

    fn remember(&mut self, record: &Record) {
        if record.current.is_some() {
            self.adopt(record);
        } else {
            self.enqueue(record);
        }
    }

    /// Takes in an attempt if it is this scheduler's: where several share a store, its worker is
    /// here.
    pub(crate) fn adopt_if_here(&mut self, record: &Record) {
        let worker = record.current.as_ref().map(|current| &current.worker);
        let is_here = worker.is_some_and(|worker| self.fleet.seats.contains_key(worker));
        if !self.is_shared() {
            self.adopt(record);
        } else if is_here && !self.jobs.is_placed(&record.id) {
            self.adopt(record);
            self.give_back(record);
        } else {
            self.withdraw(&record.id);
        }
    }

    /// The store was lost in the middle of a claim, and gave the job all the same. Its worker may
    /// have been told by whoever claimed it, and have forgotten since: no token is given twice.
    fn give_back(&mut self, record: &Record) {
        if self.jobs.live(&record.id).is_some_and(|live| !live.is_started) {
            let refused = (Ending::Refused, Provided::NoStart);
            self.end_provided(&record.id, refused, "nobody knows whether the worker was told");
        }
    }

    /// Takes in what a worker has that came from another scheduler.
    pub(crate) fn take_over(&mut self, held: &[Record]) {
        for record in held {
            let number = self.jobs.live(&record.id).map(|live| live.number);
            if let Some(number) = number.filter(|number| *number < record.counts.attempts) {
                self.drop_live(&record.id, number);
            }
            self.adopt(record);
        }
    }

    /// Takes in an attempt that the store knows and this scheduler does not.
    pub(crate) fn adopt(&mut self, record: &Record) {
        let job = record.id.clone();
        let is_old = self.jobs.seen(&job).is_some_and(|seen| seen.fence > record.fence);
        if self.jobs.is_placed(&job) || is_old {
            return;
        }
        let Some(attempt) = attempt_of(record, &self.histories, self.store.now()) else { return };
        let Some(mut live) = Live::of(record) else { return };
        // An earlier scheduler offered it, as far as anybody knows.
        live.is_offered = true;
        if let Some(at) = live.run_deadline(self.config.stop_grace) {
            self.timers.set(at, Timer::RunTimeout(job.clone()));
        }
        live.silence_at =
            live.silence_timeout.map(|timeout| live.heard + timeout + self.config.stop_grace);
        if let Some(at) = live.silence_at {
            self.timers.set(at, Timer::Silence(job.clone()));
        }
        self.unsee(&job);
        let worker = live.worker.clone();
        self.jobs.give(job, live);
        if self.fleet.seats.contains_key(&worker) {
            self.world.apply(Event::Started(Box::new(attempt)));
        } else {
            let pool = record.current.as_ref().map(|current| current.pool.clone());
            self.start_on_absent(worker, pool, attempt);
        }
    }

    /// An attempt counts even if its worker is not back yet: its tenant's quota, its resource and
    /// its budget are used, whoever asks for them first.
    fn start_on_absent(&mut self, worker: WorkerId, pool: Option<Name>, attempt: Attempt) {
        let mut absent = Worker { healthy: false, ..Worker::new(worker.clone()) };
        // Where it is now it says itself when it comes; until then, where it was counts.
        absent.pool = pool.unwrap_or(absent.pool);
        self.world.apply(Event::Joined(Box::new(absent)));
        self.world.apply(Event::Started(Box::new(attempt)));
        self.world.apply(Event::Left(worker));
    }
}
