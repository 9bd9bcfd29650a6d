//! Random requests to a store. They use few jobs, workers and keys, so that they interact.

use model::{
    Ending, Fixed, IfFailed, JobId, Measured, Millis, Name, Progress, Retry, Spec, TenantId,
    Timestamp, WorkerId,
};
use proptest::prelude::*;
use store::{
    Amend, Claim, End, Error, Filter, Idempotency, LogChunk, NewJob, Note, NotePage, Old, Repeat,
    Report, Session, Setting, SettingKind, Start, Store, Stream, Submission,
};

#[derive(Clone, Debug)]
pub(super) enum Operation {
    Pass(Millis),
    Reopen,
    Tell(Box<Request>),
}

/// A request. Jobs are named by number. Current claims and ends are looked up.
#[derive(Clone, Debug)]
pub(super) enum Request {
    Submit(Submission),
    /// Claims all queued jobs in order, with their current fences.
    ClaimQueued(u8, WorkerId),
    Claim(Vec<Claim>),
    Start(Vec<Start>),
    /// Starts all live attempts, and reports progress.
    StartLive,
    Progress(Vec<Report>),
    Log(Vec<LogChunk>),
    Complete(Vec<End>),
    /// Ends the n-th live attempt.
    EndLive(u8, End),
    Cancel(Vec<JobId>),
    Amend(Vec<JobId>, Amend),
    Revive(Vec<JobId>),
    GiveUp(Vec<JobId>),
    Join(WorkerId),
    Renew(Session),
    RenewAll,
    Leave(Session),
    Set(Vec<Setting>),
    Jobs(Filter),
    Lead(String, String, Millis),
    Keep(String, u64),
    Note(Vec<Note>),
    Notes(NotePage),
    Forget(Millis, usize),
    Notices(usize),
    Told(Vec<u64>),
}

const LEASE: Millis = Millis(3_000);

impl Request {
    /// The answer as text, for comparison.
    pub(super) async fn ask(&self, store: &dyn Store) -> String {
        match self {
            Self::Submit(submission) => shown(store.submit(submission.clone()).await),
            Self::ClaimQueued(max, worker) => {
                let look = store.look(None, usize::MAX).await.unwrap();
                let claim = |record: &model::Record| Claim {
                    limits: Vec::new(),
                    job: record.id.clone(),
                    fence: record.fence,
                    worker: worker.clone(),
                    holds: record.spec.resource.clone(),
                    pool: Name::new("p"),
                    why: "it was queued".to_owned(),
                };
                let queued = look.iter().filter(|record| record.state == model::State::Queued);
                let claims = queued.take(usize::from(*max)).map(claim).collect();
                shown(store.claim(claims).await)
            }
            Self::Claim(claims) => shown(store.claim(claims.clone()).await),
            Self::Start(starts) => shown(store.start(starts.clone()).await),
            Self::StartLive => {
                let starts = live(store).await.into_iter();
                let starts = starts.map(|(job, attempt, worker)| Start { job, attempt, worker });
                shown(store.start(starts.collect()).await)
            }
            Self::Progress(reports) => shown(store.progress(reports.clone()).await),
            Self::Log(chunks) => shown(store.log(chunks.clone()).await),
            Self::Complete(ends) => shown(store.complete(ends.clone()).await),
            Self::EndLive(place, end) => {
                let live = live(store).await;
                let place = usize::from(*place).checked_rem(live.len());
                let ends = place.map(|place| live[place].clone()).into_iter();
                let end = |(job, attempt, worker)| End { job, attempt, worker, ..end.clone() };
                shown(store.complete(ends.map(end).collect()).await)
            }
            Self::Cancel(jobs) => shown(store.cancel(jobs.clone()).await),
            Self::Amend(jobs, amend) => shown(store.amend(jobs.clone(), *amend).await),
            Self::Revive(jobs) => shown(store.revive(jobs.clone()).await),
            Self::GiveUp(jobs) => shown(store.give_up(jobs.clone()).await),
            Self::Join(worker) => shown(store.join(worker.clone(), LEASE).await),
            Self::Renew(session) => shown(store.renew(vec![session.clone()], LEASE).await),
            Self::RenewAll => shown(store.renew_all(LEASE).await),
            Self::Leave(session) => shown(store.leave(session.clone()).await),
            Self::Set(settings) => shown(store.set(settings.clone()).await),
            Self::Jobs(filter) => shown(store.jobs(filter.clone()).await),
            Self::Lead(name, holder, length) => {
                shown(store.lead(name.clone(), holder.clone(), *length).await)
            }
            Self::Keep(name, token) => {
                let kept = shown(store.keep(name.clone(), *token, token.to_string()).await);
                kept + &shown(store.leads(String::new()).await)
            }
            Self::Note(notes) => shown(store.note(notes.clone()).await),
            Self::Notes(page) => shown(store.notes(page.clone()).await),
            Self::Notices(max) => shown(store.notices(Retry::DEFAULT, *max).await),
            Self::Told(notices) => shown(store.told(notices.clone()).await),
            Self::Forget(age, max) => {
                shown(store.forget(Old::from_before(store.now() - *age, *max)).await)
            }
        }
    }
}

fn shown(answer: Result<impl std::fmt::Debug, Error>) -> String {
    format!("{:#?}", answer.unwrap())
}

async fn live(store: &dyn Store) -> Vec<(JobId, u32, WorkerId)> {
    let look = store.look(None, usize::MAX).await.unwrap().into_iter();
    let live = look.filter_map(|record| {
        let current = record.current?;
        Some((record.id, record.counts.attempts, current.worker))
    });
    live.collect()
}

pub(super) fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (1..5_000_i64).prop_map(|ms| Operation::Pass(Millis(ms))),
        1 => Just(Operation::Reopen),
        20 => request().prop_map(|request| Operation::Tell(Box::new(request))),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => submission().prop_map(Request::Submit),
        6 => (1..4_u8, worker()).prop_map(|(max, worker)| Request::ClaimQueued(max, worker)),
        1 => prop::collection::vec(claim(), 1..3).prop_map(Request::Claim),
        1 => prop::collection::vec(start(), 1..3).prop_map(Request::Start),
        2 => Just(Request::StartLive),
        1 => prop::collection::vec(report(), 1..3).prop_map(Request::Progress),
        2 => prop::collection::vec(chunk(), 1..4).prop_map(Request::Log),
        2 => prop::collection::vec(end(), 1..4).prop_map(Request::Complete),
        6 => (any::<u8>(), end()).prop_map(|(place, end)| Request::EndLive(place, end)),
        3 => jobs().prop_map(Request::Cancel),
        2 => (jobs(), amend()).prop_map(|(jobs, amend)| Request::Amend(jobs, amend)),
        2 => jobs().prop_map(Request::Revive),
        1 => jobs().prop_map(Request::GiveUp),
        9 => rest(),
    ]
}

fn rest() -> impl Strategy<Value = Request> {
    prop_oneof![
        2 => worker().prop_map(Request::Join),
        2 => session().prop_map(Request::Renew),
        1 => Just(Request::RenewAll),
        1 => session().prop_map(Request::Leave),
        1 => prop::collection::vec(setting(), 1..3).prop_map(Request::Set),
        1 => filter().prop_map(Request::Jobs),
        1 => (word(), word(), 0..4_000_i64).prop_map(|(name, holder, ms)| {
            Request::Lead(name, holder, Millis(ms))
        }),
        1 => (word(), 0..4_u64).prop_map(|(name, token)| Request::Keep(name, token)),
        1 => prop::collection::vec(note(), 1..4).prop_map(Request::Note),
        1 => (word(), key(), 0..4_usize).prop_map(|(topic, kind, max)| {
            Request::Notes(NotePage { topic, kind, before: None, max })
        }),
        2 => (0..9_000_i64, 0..5_usize).prop_map(|(ms, max)| Request::Forget(Millis(ms), max)),
        2 => (0..4_usize).prop_map(Request::Notices),
        1 => prop::collection::vec(0..12_u64, 0..3).prop_map(Request::Told),
    ]
}

fn tenant() -> impl Strategy<Value = TenantId> {
    prop::sample::select(vec!["t", "7", "007"]).prop_map(TenantId::new)
}

fn worker() -> impl Strategy<Value = WorkerId> {
    prop::sample::select(vec!["v", "w"]).prop_map(WorkerId::new)
}

fn job() -> impl Strategy<Value = JobId> {
    (0..24_u64).prop_map(JobId::number)
}

fn jobs() -> impl Strategy<Value = Vec<JobId>> {
    prop::collection::vec(job(), 1..4)
}

fn key() -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.3, prop::sample::select(vec!["a".to_owned(), "b".to_owned()]))
}

fn submission() -> impl Strategy<Value = Submission> {
    let idempotency = (key(), 0..2_u8)
        .prop_map(|(key, byte)| key.map(|key| Idempotency { key, body: [byte; 32] }));
    (tenant(), idempotency, prop::collection::vec(new_job(), 1..5)).prop_map(
        |(tenant, idempotency, mut jobs)| {
            // Indexes that are not smaller than the job's own are also tried, but rarely.
            for (index, job) in jobs.iter_mut().enumerate() {
                job.after_indexes.retain(|place| *place < index || *place == 3);
            }
            Submission { idempotency, ..Submission::new(tenant, jobs) }
        },
    )
}

fn new_job() -> impl Strategy<Value = NewJob> {
    let repeat = prop::sample::select(vec![Repeat::Join, Repeat::Drop]);
    let places = prop::collection::vec(0..4_usize, 0..3);
    (spec(), places, repeat, prop::bool::weighted(0.1)).prop_map(
        |(spec, after_indexes, repeat, on_hold)| NewJob { spec, after_indexes, repeat, on_hold },
    )
}

fn spec() -> impl Strategy<Value = Spec> {
    let after = prop::collection::vec((1..16_u64).prop_map(JobId::number), 0..3);
    let after = prop_oneof![2 => Just(Vec::new()), 1 => after];
    let if_failed = prop::sample::select(vec![IfFailed::Cancel, IfFailed::Run]);
    let kind = prop::sample::select(vec!["k", "9"]).prop_map(Name::new);
    let start_before = prop::option::weighted(0.2, 0..9_000_i64);
    let label = prop::option::weighted(0.3, Just(("a".to_owned(), "1".to_owned())));
    let asked = (after, if_failed, key(), key(), kind, -2..3_i32);
    (asked, start_before, 0..3_u32, label).prop_map(|(asked, start_before, attempts_max, label)| {
        let (after, if_failed, dedupe_key, group, kind, priority) = asked;
        let start = Time::default();
        Spec {
            priority,
            after,
            if_failed,
            dedupe_key,
            group,
            start_before: start_before.map(|ms| start.0 + Millis(ms * 10)),
            retry: Retry { attempts_max, ..Retry::DEFAULT },
            labels: label.into_iter().collect(),
            history_key: format!("{attempts_max}"),
            webhook: (priority > 0).then(|| "https://a.example".to_owned()),
            ..Spec::new(TenantId::new("ignored"), kind)
        }
    })
}

/// The start time of the clock of a case.
struct Time(Timestamp);

impl Default for Time {
    fn default() -> Self {
        Self(store::conformance::Time::new().now())
    }
}

fn claim() -> impl Strategy<Value = Claim> {
    (job(), 0..5_u64, worker()).prop_map(|(job, fence, worker)| Claim {
        job,
        fence,
        worker,
        limits: Vec::new(),
        holds: None,
        pool: Name::new("p"),
        why: "a guess".to_owned(),
    })
}

fn start() -> impl Strategy<Value = Start> {
    (job(), 0..4_u32, worker()).prop_map(|(job, attempt, worker)| Start { job, attempt, worker })
}

fn report() -> impl Strategy<Value = Report> {
    (start(), 0..1_000_i64).prop_map(|(start, thousandths)| Report {
        job: start.job,
        attempt: start.attempt,
        worker: start.worker,
        progress: Progress {
            fraction: Fixed::thousandths(thousandths),
            note: String::new(),
            stage: format!("stage {thousandths}"),
        },
    })
}

fn chunk() -> impl Strategy<Value = LogChunk> {
    (job(), 1..3_u32, prop::sample::select(&Stream::ALL[..]), 0..90_u64, 0..30_u8).prop_map(
        |(job, attempt, stream, offset, n_bytes)| LogChunk {
            job,
            attempt,
            stream,
            offset,
            at: Timestamp(0),
            bytes: (0..n_bytes).collect(),
        },
    )
}

fn end() -> impl Strategy<Value = End> {
    let ending = prop::sample::select(&Ending::ALL[..]);
    let cost = prop::option::weighted(0.3, (0..3_000_i64).prop_map(Fixed::thousandths));
    (start(), ending, cost, any::<(bool, u64)>()).prop_map(
        |(start, ending, cost, (has_started, draw))| End {
            has_started,
            provided: [
                store::Provided::Nothing,
                store::Provided::Silence,
                store::Provided::NoStart,
            ][usize::try_from(draw % 3).unwrap()],
            job: start.job,
            attempt: start.attempt,
            worker: start.worker,
            ending,
            error: draw.is_multiple_of(2).then(|| format!("error {draw}")),
            result: draw.is_multiple_of(6).then(|| draw.to_le_bytes().to_vec()),
            exit_code: i32::try_from(draw % 100).ok(),
            measured: Measured {
                cpu_ms: draw.is_multiple_of(5).then_some(draw % 1_000),
                ..Measured::default()
            },
            cost,
            fetched: draw.is_multiple_of(5).then_some((1, 2)),
            is_silent: false,
            forget: draw % 9 < 5,
            draw,
        },
    )
}

fn amend() -> impl Strategy<Value = Amend> {
    prop_oneof![Just(Amend::Hold), Just(Amend::Release), (-3..4_i32).prop_map(Amend::Priority)]
}

fn session() -> impl Strategy<Value = Session> {
    (worker(), 0..4_u64).prop_map(|(worker, generation)| Session { worker, generation })
}

fn setting() -> impl Strategy<Value = Setting> {
    let kind = prop::sample::select(&SettingKind::ALL[..]);
    (kind, key(), prop::option::of(Just("{}".to_owned()))).prop_map(|(kind, name, document)| {
        Setting { kind, name: name.unwrap_or_default(), document }
    })
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a".to_owned(), "b".to_owned()])
}

fn note() -> impl Strategy<Value = Note> {
    (word(), word(), key(), 1..3_usize, any::<bool>()).prop_map(
        |(topic, kind, key, n_max, ages)| {
            let document = format!("{kind} {n_max}");
            Note { topic, kind, key: key.unwrap_or_default(), document, n_max, ages }
        },
    )
}

fn filter() -> impl Strategy<Value = Filter> {
    let states = prop::sample::subsequence(&model::State::ALL[..], 0..4);
    let cause = prop::option::weighted(0.2, prop::sample::select(&model::Cause::ALL[..]));
    let some = (prop::option::of(tenant()), states, prop::option::of(worker()), cause);
    (some, prop::option::of(job()), key(), 0..9_usize).prop_map(|(some, before, group, max)| {
        let (tenant, states, worker, cause) = some;
        let labels = group.iter().map(|_| ("a".to_owned(), "1".to_owned())).collect();
        let (kind, parent) = (None, None);
        Filter { tenant, states, worker, cause, before, group, parent, labels, max, kind }
    })
}
