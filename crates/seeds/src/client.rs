//! A client. It submits jobs with a key and repeats them until it knows the outcome, or submits
//! once without a key. It cancels some jobs, and records the answers.

use std::collections::VecDeque;

use checker::{Asked, Op, Outcome, Said};
use faults::Chance;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use proto::v1;
use server::Steps;
use tonic::{Code, Status};

use crate::hands::{FOR_EVER, payload};
use crate::notes::Notes;

/// Submissions of one client.
const SUBMISSIONS_MAX: u32 = 4;
/// The timeout of a request, in milliseconds.
const PATIENCE_MS: i64 = 1_500;

/// A client.
pub(crate) struct Client {
    number: u32,
    tenant: &'static str,
    n_keys: u32,
    waits: Option<Waits>,
    /// Requests to repeat.
    again: VecDeque<Ask>,
    submitted: Vec<v1::SubmitRequest>,
    /// Its own jobs, as far as it knows.
    pub(crate) jobs: Vec<u64>,
    /// Requests that continue after their timeout.
    abandoned: Vec<BoxFuture<'static, Result<Told, Status>>>,
}

/// A request.
#[derive(Clone)]
pub(crate) enum Ask {
    Submit(v1::SubmitRequest),
    Cancel(u64),
}

impl Ask {
    /// Whether a repetition has no effect.
    pub(crate) fn may_come_again(&self) -> bool {
        match self {
            Self::Submit(request) => !request.idempotency_key.is_empty(),
            Self::Cancel(_) => true,
        }
    }
}

struct Waits {
    ask: Ask,
    sent_ms: i64,
    answer: BoxFuture<'static, Result<Told, Status>>,
}

/// An answer.
#[derive(Default)]
pub(crate) struct Told {
    ids: Vec<u64>,
    changed: bool,
    note: String,
}

impl Client {
    pub(crate) fn new(number: u32, tenant: &'static str) -> Self {
        Self {
            number,
            tenant,
            n_keys: 0,
            waits: None,
            again: VecDeque::new(),
            submitted: Vec::new(),
            jobs: Vec::new(),
            abandoned: Vec::new(),
        }
    }

    /// Whether all outcomes are known.
    pub(crate) fn is_content(&self) -> bool {
        self.waits.is_none() && self.again.is_empty()
    }

    pub(crate) const fn waits(&self) -> bool {
        self.waits.is_some()
    }

    /// Its next request.
    pub(crate) fn next(&mut self, chance: &mut Chance) -> Option<Ask> {
        if let Some(ask) = self.again.pop_front() {
            return Some(ask);
        }
        if chance.is_one_in(4) {
            return chance.pick(&self.jobs).copied().map(Ask::Cancel);
        }
        if self.n_keys == SUBMISSIONS_MAX {
            return None;
        }
        self.n_keys += 1;
        let key = format!("c{}k{}", self.number, self.n_keys);
        let n_jobs = chance.between(1, 3);
        let is_once = chance.is_one_in(3);
        let jobs = (0..n_jobs).map(|index| {
            let spec = self.spec(&key, index, chance);
            if is_once { plain(spec) } else { spec }
        });
        let jobs = jobs.collect();
        let idempotency_key = if is_once { String::new() } else { key };
        let request = v1::SubmitRequest { jobs, idempotency_key, array: 0 };
        self.submitted.push(request.clone());
        Some(Ask::Submit(request))
    }

    /// An earlier submission with a key, for a repetition.
    pub(crate) fn submitted(&self, key: &str) -> Option<&v1::SubmitRequest> {
        self.submitted.iter().find(|request| request.idempotency_key == key)
    }

    /// Sends a request to a scheduler.
    pub(crate) fn ask(&mut self, ask: Ask, scheduler: &Steps, sent_ms: i64) {
        let answer = request(&ask, scheduler);
        self.waits = Some(Waits { ask, sent_ms, answer });
    }

    /// Sends a copy of a request to a different scheduler.
    pub(crate) fn repeat(&mut self, ask: &Ask, scheduler: &Steps) {
        self.abandoned.push(request(ask, scheduler));
    }

    /// A request gets lost.
    pub(crate) fn lose(&mut self, ask: Ask, at_ms: i64, notes: &mut Notes) {
        self.hear(ask, (at_ms, at_ms), Err(Status::unavailable("lost")), notes);
    }

    /// Polls for the answer, which may get lost.
    pub(crate) fn look(&mut self, now_ms: i64, is_lost: bool, notes: &mut Notes) {
        self.abandoned.retain_mut(|answer| answer.as_mut().now_or_never().is_none());
        let Some(mut waits) = self.waits.take() else { return };
        let sent_ms = waits.sent_ms;
        match waits.answer.as_mut().now_or_never() {
            Some(answer) => {
                let answer = if is_lost { Err(Status::unavailable("lost")) } else { answer };
                self.hear(waits.ask, (sent_ms, now_ms), answer, notes);
            }
            None if now_ms - sent_ms > PATIENCE_MS => {
                self.abandoned.push(waits.answer);
                self.hear(waits.ask, (sent_ms, now_ms), Err(Status::unavailable("late")), notes);
            }
            None => self.waits = Some(waits),
        }
    }

    /// Records an answer, and keeps a request that must be repeated.
    fn hear(
        &mut self,
        ask: Ask,
        (sent_ms, at_ms): (i64, i64),
        answer: Result<Told, Status>,
        notes: &mut Notes,
    ) {
        let (outcome, told) = match answer {
            Ok(told) => (Outcome::Ok, told),
            Err(status) if status.code() == Code::Unavailable => {
                self.again.extend(Some(ask.clone()).filter(Ask::may_come_again));
                (Outcome::Unknown, Told::default())
            }
            Err(_) => (Outcome::Fail, Told::default()),
        };
        let client = self.number;
        let said = Said {
            client,
            op: Op::Cancel,
            key: String::new(),
            sent_ms,
            at_ms,
            outcome,
            ids: told.ids,
            changed: told.changed,
            asked: Vec::new(),
            note: told.note,
        };
        notes.said.push(match ask {
            Ask::Submit(request) => {
                self.jobs.extend(&said.ids);
                let asked = request.jobs.iter().map(asked).collect();
                Said { op: Op::Submit, key: name(&request), asked, ..said }
            }
            Ask::Cancel(_) => said,
        });
    }

    fn spec(&self, key: &str, index: u64, chance: &mut Chance) -> v1::Spec {
        let n_failures = match chance.between(0, 9) {
            0 => FOR_EVER,
            1..=5 => 1,
            _ => 0,
        };
        let some = |is_so: bool, text: &str| if is_so { text.to_owned() } else { String::new() };
        let dedupe = format!("d{}", chance.between(1, 2));
        // A job with a dedupe key that stands for an existing job has the dependencies of that job.
        let is_deduped = chance.is_one_in(5);
        let waits = !is_deduped && chance.is_one_in(3);
        let after = chance.pick(&self.jobs).copied().filter(|_| waits);
        let previous = u32::try_from(index).ok().and_then(|index| index.checked_sub(1));
        v1::Spec {
            tenant: self.tenant.to_owned(),
            r#type: if chance.is_one_in(3) { "narrow" } else { "wide" }.to_owned(),
            payload: payload(chance.between(10, 900), n_failures),
            slots: if chance.is_one_in(5) { 2 } else { 1 },
            resource: some(chance.is_one_in(4), "disk"),
            dedupe_key: some(is_deduped, &dedupe),
            after: after.into_iter().collect(),
            after_indexes: previous.filter(|_| waits).into_iter().collect(),
            run_if_failed: chance.is_one_in(2),
            retry: Some(v1::Retry { attempts_max: 3, backoff_ms: 100, backoff_ms_max: 200 }),
            labels: [("key".to_owned(), key.to_owned())].into(),
            ..v1::Spec::default()
        }
    }
}

/// A job without dependencies, dedupe key, lock and limit.
fn plain(spec: v1::Spec) -> v1::Spec {
    v1::Spec {
        tenant: "c".to_owned(),
        r#type: "wide".to_owned(),
        resource: String::new(),
        dedupe_key: String::new(),
        after: Vec::new(),
        after_indexes: Vec::new(),
        ..spec
    }
}

/// The name of a submission, whether or not that is its key.
fn name(request: &v1::SubmitRequest) -> String {
    let label = request.jobs.first().and_then(|job| job.labels.get("key"));
    label.cloned().unwrap_or_default()
}

/// Sends a request, with one type of answer for both kinds.
pub(crate) fn request(ask: &Ask, scheduler: &Steps) -> BoxFuture<'static, Result<Told, Status>> {
    match ask {
        Ask::Submit(request) => {
            let answer = scheduler.submit(request.clone());
            answer.map(|answer| answer.map(|response| Told::of_submission(&response))).boxed()
        }
        Ask::Cancel(job) => {
            let answer = scheduler.cancel(vec![model::JobId::number(*job)]);
            answer.map(|answer| answer.map(|response| Told::of_change(&response))).boxed()
        }
    }
}

impl Told {
    fn of_submission(response: &v1::SubmitResponse) -> Self {
        let ids = response.jobs.iter().map(|job| job.id).collect();
        Self { ids, changed: true, note: String::new() }
    }

    fn of_change(response: &v1::ChangeResponse) -> Self {
        let Some(change) = response.changes.first() else { return Self::default() };
        let state = change.state().known().map(|state| state.name().to_owned());
        let note = if change.changed { String::new() } else { state.unwrap_or_default() };
        Self { ids: vec![change.id], changed: change.changed, note }
    }

    /// The jobs of a submission.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }
}

fn asked(spec: &v1::Spec) -> Asked {
    let places = spec.after_indexes.iter().filter_map(|at| usize::try_from(*at).ok());
    Asked {
        tenant: spec.tenant.clone(),
        after: spec.after.clone(),
        after_indexes: places.collect(),
        run_if_failed: spec.run_if_failed,
        terms: None,
        label: String::new(),
    }
}
