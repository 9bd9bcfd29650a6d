//! The owner of the world: takes messages, decides, asks the store, tells the workers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use decide::World;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use model::{Fixed, JobId, Millis, Record, State, TenantId, Timestamp};
use store::{Run, Store};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::averages::{Samples, UsageAsked};
use crate::config::Config;
use crate::counters::Counters;
use crate::detect::Detection;
use crate::dispatch::Outgoing;
use crate::fleet::Fleet;
use crate::fleet::inventory::Inventories;
use crate::fleet::words::{Heard, StreamId};
use crate::health::Health;
use crate::history::Histories;
use crate::inbox::Envelope;
use crate::meters::Pairs;
use crate::quota::Quotas;
use crate::recur::Recurring;
use crate::series::Counts;
use crate::settings::{Closed, Types};
use crate::share::Sharing;
use crate::timers::{Timer, Timers};
use crate::watch::{Change, Hub};
use crate::whereabouts::Jobs;

pub(crate) use crate::message::{Answer, Message};

/// Messages that are taken in before the next round at the latest.
const TURN_MAX: usize = 4_096;
/// Jobs that are answered about in one turn, or a few more.
const ANSWERS_MAX: usize = 256;

/// The world, and what surrounds it.
pub(crate) struct Scheduler {
    pub(crate) config: Arc<Config>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) world: World,
    /// Where each job is.
    pub(crate) jobs: Jobs,
    pub(crate) fleet: Fleet,
    /// Streams whose session the store has not given yet, with what they said meanwhile.
    pub(crate) joining: BTreeMap<StreamId, Vec<Heard>>,
    pub(crate) closed: Closed,
    pub(crate) inventories: Inventories,
    /// Work that workers find.
    pub(crate) detection: Detection,
    pub(crate) recurring: Recurring,
    pub(crate) histories: Histories,
    pub(crate) samples: Samples,
    /// Counts of the minute that is under way.
    pub(crate) minute: Counts,
    pub(crate) timers: Timers,
    /// What goes to the store and to workers at the end of this turn.
    pub(crate) outgoing: Outgoing,
    pub(crate) calls: FuturesUnordered<BoxFuture<'static, Answer>>,
    /// What the store has answered, and nobody has heard yet.
    answers: VecDeque<Answer>,
    /// Jobs whose record has to be read again, because what became of a request is not known.
    pub(crate) refetch: BTreeSet<JobId>,
    /// Jobs whose end may be done or not: the store did not say.
    pub(crate) in_doubt: BTreeSet<JobId>,
    /// What is known of others that share the store; `None`: nobody does.
    pub(crate) sharing: Option<Sharing>,
    /// What types say, for those who take in jobs.
    pub(crate) types: watch::Sender<Arc<Types>>,
    /// What tenants and types may use.
    pub(crate) quotas: Quotas,
    pub(crate) budget_limit: Option<Fixed>,
    /// What tenants were charged, and how many jobs they completed, since the store was last asked
    /// what they used.
    pub(crate) settled: BTreeMap<TenantId, (Fixed, u64)>,
    pub(crate) hub: Hub,
    pub(crate) health: Health,
    pub(crate) changes: Vec<Change>,
    pub(crate) counters: Counters,
    /// How long attempts waited and ran.
    pub(crate) pairs: Pairs,
    pub(crate) started: Timestamp,
    /// Names in use when they were last counted.
    pub(crate) n_names_used: usize,
    /// Calls by which jobs are claimed, and by which attempts end, that are on their way.
    pub(crate) n_claiming: usize,
    pub(crate) n_ending: usize,
    pub(crate) usage_asked: Option<UsageAsked>,
    /// What is known of what tenants used was so at this moment.
    pub(crate) usage_from: Timestamp,
    /// No lease is judged before this moment: leases could not be renewed for a while.
    pub(crate) leases_from: Timestamp,
    /// Leases in the store are older than they should be.
    pub(crate) are_leases_old: bool,
    /// Something happened since the last round.
    pub(crate) is_dirty: bool,
    /// It was told to stop: nothing more is placed.
    pub(crate) is_stopping: bool,
    /// Nothing is asked of the store before this moment.
    pub(crate) paused_until: Option<Timestamp>,
    /// The store is broken: this was its last word.
    pub(crate) fatal: Option<store::Error>,
}

impl Scheduler {
    pub(crate) fn new(config: Arc<Config>, store: Arc<dyn Store>, world: World, hub: Hub) -> Self {
        let started = store.now();
        let sharing = store.shared().map(|_| Sharing::new());
        let mut timers = Timers::default();
        let pairs = Pairs::new(config.metrics_pairs_max);
        let minute = Counts::new(started);
        timers.set(minute.ends(), Timer::Minute);
        timers.set(started + config.expire_every, Timer::Expire);
        timers.set(started + config.expire_every, Timer::Stale);
        for timer in [Timer::Averages, Timer::Rescore, Timer::Forget, Timer::Sweep, Timer::Leads] {
            timers.set(started, timer);
        }
        Self {
            detection: Detection::new(),
            recurring: Recurring::default(),
            histories: Histories::default(),
            samples: Samples::default(),
            minute,
            fleet: Fleet::default(),
            joining: BTreeMap::new(),
            closed: Closed::default(),
            inventories: Inventories::default(),
            config,
            store,
            world,
            jobs: Jobs::default(),
            timers,
            outgoing: Outgoing::default(),
            calls: FuturesUnordered::new(),
            answers: VecDeque::new(),
            refetch: BTreeSet::new(),
            in_doubt: BTreeSet::new(),
            sharing,
            types: watch::Sender::new(Arc::default()),
            quotas: Quotas::default(),
            budget_limit: None,
            settled: BTreeMap::new(),
            hub,
            health: Health::default(),
            changes: Vec::new(),
            counters: Counters::default(),
            pairs,
            started,
            n_names_used: 0,
            n_claiming: 0,
            n_ending: 0,
            usage_asked: None,
            usage_from: started,
            leases_from: started,
            are_leases_old: false,
            is_dirty: true,
            is_stopping: false,
            paused_until: None,
            fatal: None,
        }
    }

    /// Takes turns until it is told to stop, or the store breaks.
    pub(crate) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Envelope>,
        stop: CancellationToken,
    ) -> Result<(), store::Error> {
        let mut messages = Vec::new();
        while self.fatal.is_none() && !(stop.is_cancelled() && self.is_answered()) {
            self.is_stopping = stop.is_cancelled();
            let wake = self.wake_in();
            tokio::select! {
                biased;
                n = inbox.recv_many(&mut messages, TURN_MAX) => {
                    if n == 0 {
                        break;
                    }
                    messages.drain(..).for_each(|envelope: Envelope| self.take(envelope.message));
                }
                Some(answer) = self.calls.next(), if !self.calls.is_empty() => {
                    self.answers.push_back(answer);
                }
                () = stop.cancelled(), if !stop.is_cancelled() => {}
                () = std::future::ready(()), if !self.answers.is_empty() => {}
                () = tokio::time::sleep(wake) => {}
            }
            // The store has what workers said while the rest of the turn is thought about.
            if !self.outgoing.ends.is_empty() && !self.is_paused() {
                self.flush_store();
                self.ask();
                tokio::task::yield_now().await;
            }
            self.hear_some();
            if stop.is_cancelled() {
                self.let_leads_go();
                self.flush_submissions();
                self.flush_store();
                self.flush_workers();
            } else {
                self.turn();
            }
            self.ask();
            // The workers' streams and what is asked of the store come before the next turn.
            tokio::task::yield_now().await;
        }
        self.fatal.map_or(Ok(()), Err)
    }

    /// Whether nothing is asked of the store, and all that it answered was heard.
    fn is_answered(&self) -> bool {
        self.calls.is_empty() && self.answers.is_empty()
    }

    /// Lets the store have what it was not asked yet. What it has answered is heard in the next
    /// turn.
    fn ask(&mut self) {
        while let Some(Some(answer)) = self.calls.next().now_or_never() {
            self.answers.push_back(answer);
        }
    }

    /// Hears some of what the store has answered, and not more than a call is about: what comes of
    /// it goes out before the next is heard, so that neither store nor workers wait for all of it.
    fn hear_some(&mut self) {
        let mut n_jobs = 0;
        while n_jobs < ANSWERS_MAX {
            let Some(answer) = self.answers.pop_front() else { return };
            n_jobs += answer.n_jobs();
            self.answered(answer);
        }
    }

    /// Hears all that the store has answered. What was not asked of it yet is asked.
    pub(crate) fn hear_answers(&mut self) {
        while let Some(Some(answer)) = self.calls.next().now_or_never() {
            self.answered(answer);
        }
    }

    /// Does what the time and the messages ask for, once.
    pub(crate) fn turn(&mut self) {
        let now = self.store.now();
        while let Some(timer) = self.timers.due(now) {
            self.fire(timer, now);
        }
        if self.is_paused() {
            self.flush_submissions();
        } else {
            self.paused_until = None;
            self.meet_if_seated();
            self.look_if_wanted();
            self.read_settings_if_wanted(now);
            let is_time = self.world.wake_at().is_some_and(|at| at <= now);
            if (self.is_dirty || is_time) && self.may_claim() {
                self.round(now);
            }
            if self.detection.is_dirty {
                self.drive_lanes(now);
            }
            if self.recurring.is_dirty {
                self.drive_schedules(now);
            }
            self.flush_submissions();
            self.flush_store();
        }
        self.flush_workers();
        self.hub.tell(std::mem::take(&mut self.changes));
    }

    fn wake_in(&self) -> std::time::Duration {
        let now = self.store.now();
        // Who may not claim decides nothing, however much time passes.
        let wake_at = self.world.wake_at().filter(|_| self.may_claim());
        let moments = [self.timers.next(), wake_at, self.paused_until];
        let next = moments.into_iter().flatten().min().unwrap_or(now + Millis::from_secs(1));
        // A moment that is due has been dealt with: what is left of it waits for something else.
        let wait = next.since(now).0.clamp(1, 1_000).unsigned_abs();
        std::time::Duration::from_millis(wait)
    }

    pub(crate) fn take(&mut self, message: Message) {
        self.is_dirty = true;
        match message {
            Message::Submit(taking) => self.take_ahead(*taking),
            Message::Waiting(records) => records.iter().for_each(|record| self.told(record)),
            Message::Gone(jobs) => {
                self.counters.add(State::Cancelled.name(), jobs.len());
                for job in &jobs {
                    self.withdraw(job);
                }
            }
            Message::Cancelling(jobs) => jobs.iter().for_each(|job| self.cancel(job)),
            Message::Set(setting) => self.set(*setting),
            Message::Hello(arrival) => self.hello(arrival),
            Message::Heard(stream, heard) => self.hear(stream, heard),
            Message::Parted(stream) => self.part(stream),
            Message::Ask(question) => self.answer(question),
            Message::News(news) => self.hear_news(news),
        }
    }

    fn answered(&mut self, answer: Answer) {
        self.is_dirty = true;
        match answer {
            Answer::Submitted(written, outcome) => self.submitted(written, outcome),
            Answer::Claimed(claims, answer) => self.claimed(claims, answer),
            Answer::Started(starts, answer) => self.started(starts, answer),
            Answer::Noted(answer) => self.noted(answer),
            Answer::Logged(pieces, answer) => self.logged(pieces, answer),
            Answer::Completed(ends, answer) => self.completed(ends, answer),
            Answer::Joined(arrival, answer) => self.joined(*arrival, answer),
            Answer::Renewed(beats, answer) => self.renewed(&beats, answer),
            Answer::Expired(answer) => self.expired(answer),
            Answer::GivenUp(jobs, answer) => self.given_up(jobs, answer),
            Answer::Fetched(job, answer) => self.fetched(job, answer),
            Answer::Preemptor(room, answer) => self.preemptor_read(room, answer),
            Answer::Used(answer) => self.used(answer),
            Answer::Forgotten(answer) => self.forgotten(answer),
            Answer::Left(answer) => drop(self.ok(answer)),
            Answer::Window(reach, answer) => self.seen(reach, answer),
            Answer::Met(answer) => self.met(answer),
            Answer::CalledOff(answer) => self.calls_off(answer),
            Answer::Unstarted(answer) => self.give_up_unstarted(answer),
            Answer::Settings(answer) => self.read_settings(answer),
            Answer::Lead(lane, answer) => self.lead(&lane, answer),
            Answer::LetGo(lane, answer) => self.let_gone(&lane, answer),
            Answer::Lanes(answer) => self.lanes_seen(answer),
            Answer::Kept(lane, answer) => self.kept(&lane, answer),
            Answer::TakenIn(lane, run, answer) => self.taken_in(&lane, &run, answer),
            Answer::Looked(lane, answer) => self.looked(&lane, *answer),
            Answer::Counted(lane, answer) => self.counted(&lane, answer),
            Answer::Published(what, answer) => self.published(what, answer),
            Answer::LeadSchedules(answer) => self.schedules_led(answer),
            Answer::Recurred(answer) => self.recurred(*answer),
            Answer::Checked(job, answer) => self.checked(&job, answer),
            Answer::Minute(answer) => drop(self.ok_beside(answer)),
            Answer::Written(answer) | Answer::RenewedAll(answer) => drop(self.ok(answer)),
        }
    }

    /// Asks the store without waiting for it.
    pub(crate) fn call(
        &self,
        call: impl FnOnce(Arc<dyn Store>) -> BoxFuture<'static, Answer> + Send,
    ) {
        self.calls.push(call(Arc::clone(&self.store)));
    }

    /// Tells those who watch, at the end of the turn.
    pub(crate) fn changed(&mut self, record: &Record) {
        if record.state.is_terminal() {
            self.counters.add(record.state.name(), 1);
        }
        if !self.hub.is_heard() {
            return;
        }
        let at = self.store.now();
        self.changes.push(Change::of(record, at));
    }

    /// What the run of a job was like, for predictions and averages.
    pub(crate) fn learn(&mut self, run: &Run, record: &Record) {
        self.histories.ended(run, &record.id, &record.spec);
        self.samples.add(run);
    }

    /// The same of a run that the store remembers.
    pub(crate) fn remember_run(&mut self, run: &Run) {
        self.histories.remember(run);
        self.samples.add(run);
        // A peer counts its own attempts.
        if !self.is_shared() {
            self.minute.remember(run);
        }
    }
}
