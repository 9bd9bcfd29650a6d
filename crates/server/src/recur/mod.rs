//! Jobs that recur: one scheduler at a time submits them, and no moment twice.
//!
//! **Invariant:** the job of a moment has a key of its own in the store, so that it is taken in
//! once, whoever submits it and however often.

mod schedule;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::detect::{Due, missed};
use futures_util::FutureExt as _;
use model::{JobId, Millis, Record, Timestamp};
use proto::v1;
use serde::{Deserialize, Serialize};
use store::{Error, Idempotency, Lead, Store, Submission};

use crate::detect::Activity;
use crate::scheduler::{Answer, Scheduler};
use crate::submit::submission;
use crate::timers::Timer;

pub(crate) use schedule::{Beat, Schedule};

/// What is led by whoever submits.
pub(crate) const LEAD: &str = "schedules";
/// A moment that is longer ago was missed.
const GRACE: Millis = Millis::from_secs(60);
/// What was not taken in is tried again after so long.
const AGAIN: Millis = Millis::from_secs(5);

/// All recurring jobs, and whether this scheduler submits them.
#[derive(Debug, Default)]
pub(crate) struct Recurring {
    pub(crate) schedules: BTreeMap<String, (Schedule, Beat)>,
    led: Option<Led>,
    is_asking: bool,
    pub(crate) is_dirty: bool,
    /// Nothing is submitted before this moment.
    not_before: Option<Timestamp>,
}

#[derive(Debug)]
struct Led {
    token: u64,
    until: Timestamp,
    kept: Kept,
    is_busy: bool,
}

/// What must outlive the scheduler that submits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    /// The last moment that was dealt with, by schedule.
    pub(crate) done_ms: BTreeMap<String, i64>,
    /// The job of that moment.
    pub(crate) jobs: BTreeMap<String, u64>,
}

/// What became of the jobs of some moments.
#[derive(Debug)]
pub(crate) struct Recurred {
    /// Jobs that were taken in, by schedule.
    taken: Vec<(String, Record)>,
    refused: Vec<(String, String)>,
    skipped: Vec<(String, usize)>,
    kept: Kept,
    is_kept: bool,
}

impl Recurring {
    /// This scheduler submits no more; what it led, if it did.
    pub(crate) fn let_go(&mut self) -> Option<&'static str> {
        self.led.take().map(|_| LEAD)
    }
}

impl Scheduler {
    /// A schedule was set, or removed.
    pub(crate) fn set_schedule(&mut self, name: String, schedule: Option<Schedule>) {
        let beat = schedule.as_ref().and_then(|schedule| schedule.beat().ok());
        match schedule.zip(beat) {
            Some(both) => drop(self.recurring.schedules.insert(name, both)),
            None => drop(self.recurring.schedules.remove(&name)),
        }
        self.recurring.is_dirty = true;
    }

    /// Asks for the lead, or prolongs it.
    pub(crate) fn lead_schedules(&mut self) {
        if self.recurring.schedules.is_empty() || self.recurring.is_asking {
            return;
        }
        self.recurring.is_asking = true;
        let (holder, length) = (self.detection.holder.clone(), self.config.lease);
        self.call(|store| {
            async move { Answer::LeadSchedules(store.lead(LEAD.to_owned(), holder, length).await) }
                .boxed()
        });
    }

    /// The store says who submits.
    pub(crate) fn schedules_led(&mut self, answer: Result<Option<Lead>, Error>) {
        self.recurring.is_asking = false;
        let Some(lead) = self.ok(answer) else { return };
        let Some(lead) = lead else {
            self.recurring.led = None;
            return;
        };
        self.recurring.is_dirty = true;
        match &mut self.recurring.led {
            Some(led) if led.token == lead.token => led.until = lead.until,
            led => {
                let kept = serde_json::from_str(&lead.document).unwrap_or_default();
                let (token, until) = (lead.token, lead.until);
                *led = Some(Led { token, until, kept, is_busy: false });
            }
        }
    }

    /// Submits the jobs of every moment that is due.
    pub(crate) fn drive_schedules(&mut self, now: Timestamp) {
        self.recurring.is_dirty = false;
        if self.recurring.led.is_none() {
            self.lead_schedules();
        }
        let types = self.types.borrow().clone();
        let recurring = &mut self.recurring;
        let Some(led) = recurring.led.as_mut().filter(|led| !led.is_busy && now < led.until) else {
            return;
        };
        if let Some(at) = recurring.not_before.filter(|at| *at > now) {
            self.timers.set(at, Timer::Schedules);
            return;
        }
        let mut next: Option<Timestamp> = None;
        let mut due: Vec<(String, Due, Vec<Submission>)> = Vec::new();
        for (name, (schedule, beat)) in &recurring.schedules {
            let done = led.kept.done_ms.get(name).copied().unwrap_or(i64::MIN);
            let done = Timestamp(done.max(schedule.since_ms));
            if schedule.is_paused {
                continue;
            }
            let n_max = usize::try_from(schedule.catch_up_max).unwrap_or(usize::MAX);
            let some = missed((done, now), GRACE, (schedule.catch_up, n_max), |at| beat.next(at));
            let at = beat.next(some.until);
            next = next.into_iter().chain(at).min();
            if some.until > done {
                let jobs = some.moments.iter().map(|at| job_of(name, schedule, *at, &types));
                let jobs = jobs.flatten().collect();
                due.push((name.clone(), some, jobs));
            }
        }
        if let Some(at) = next {
            self.timers.set(at.max(now + Millis(1)), Timer::Schedules);
        }
        if due.is_empty() {
            return;
        }
        led.is_busy = true;
        let (token, mut kept) = (led.token, led.kept.clone());
        kept.done_ms.retain(|name, _| recurring.schedules.contains_key(name));
        kept.jobs.retain(|name, _| recurring.schedules.contains_key(name));
        self.call(|store| {
            async move { Answer::Recurred(Box::new(submit(&store, token, kept, due).await)) }
                .boxed()
        });
    }

    /// The store has taken them in.
    pub(crate) fn recurred(&mut self, answer: Result<Recurred, Error>) {
        let answer = self.ok(answer);
        let now = self.store.now();
        self.recurring.is_dirty = true;
        if let Some(led) = &mut self.recurring.led {
            led.is_busy = false;
        }
        let Some(recurred) = answer else {
            self.recurring.not_before = Some(now + AGAIN);
            return;
        };
        if recurred.is_kept {
            if let Some(led) = &mut self.recurring.led {
                led.kept = recurred.kept;
            }
        } else {
            self.recurring.led = None;
        }
        let who = self.detection.holder.clone();
        for (name, record) in &recurred.taken {
            self.counters.add("recurred", 1);
            self.changed(record);
            self.told(record);
            let what = format!("submitted job {}", record.id);
            self.write_down(&Activity::new("schedule", &who, name, what));
        }
        for (name, n_skipped) in &recurred.skipped {
            let what = format!("passed over {n_skipped} moments");
            let activity = Activity::new("schedule", &who, name, what);
            self.write_down(&activity.because("nobody was there to see them"));
        }
        self.recurring.not_before = (!recurred.refused.is_empty()).then_some(now + AGAIN);
        for (name, problem) in &recurred.refused {
            let activity = Activity::new("schedule", &who, name, "was not taken in".to_owned());
            self.write_down(&activity.because(problem));
        }
    }
}

/// The submission of a moment.
fn job_of(
    name: &str,
    schedule: &Schedule,
    due: Timestamp,
    types: &crate::settings::Types,
) -> Option<Submission> {
    let request = v1::SubmitRequest { jobs: vec![schedule.spec(name, due)], ..Default::default() };
    let mut submission = submission(request, types).ok()?;
    let key = format!("{LEAD}/{name}@{}", due.0);
    for job in &mut submission.jobs {
        job.spec.dedupe_key.get_or_insert_with(|| key.clone());
    }
    // The moment alone is what counts, whatever the job looks like by now.
    submission.idempotency = Some(Idempotency { key, body: [0; 32] });
    Some(submission)
}

async fn submit(
    store: &Arc<dyn Store>,
    token: u64,
    mut kept: Kept,
    due: Vec<(String, Due, Vec<Submission>)>,
) -> Result<Recurred, Error> {
    let (mut taken, mut refused, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for (name, due, submissions) in due {
        let mut is_refused = false;
        for submission in submissions {
            match store.submit(submission).await? {
                Ok(submitted) => {
                    let number = submitted.jobs.first().map(|record| &record.id);
                    let number = number.and_then(JobId::as_number);
                    kept.jobs.extend(number.map(|number| (name.clone(), number)));
                    let new = submitted.jobs.into_iter().zip(submitted.is_new);
                    let new = new.filter(|(_, is_new)| *is_new);
                    taken.extend(new.map(|(record, _)| (name.clone(), record)));
                }
                Err(refusal) => {
                    is_refused = true;
                    refused.push((name.clone(), refusal.to_string()));
                    break;
                }
            }
        }
        if due.n_skipped > 0 && !is_refused {
            skipped.push((name.clone(), due.n_skipped));
        }
        if !is_refused {
            kept.done_ms.insert(name, due.until.0);
        }
    }
    let document = serde_json::to_string(&kept).expect("its names are strings");
    let is_kept = store.keep(LEAD.to_owned(), token, document).await?;
    Ok(Recurred { taken, refused, skipped, kept, is_kept })
}
