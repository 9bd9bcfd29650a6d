//! A history without violations.

use checker::{
    Asked, Attempt, History, Job, Key, Limits, Mark, Op, Outcome, Said, Scope, Step, check,
};

fn job(id: u64, state: &str) -> Job {
    let is_final = matches!(state, "succeeded" | "failed" | "cancelled");
    Job {
        id,
        tenant: "a".to_owned(),
        kind: "exec".to_owned(),
        state: state.to_owned(),
        slots: 1,
        attempts_max: 2,
        backoff_ms: 60,
        created_ms: 1_000,
        finished_ms: is_final.then_some(2_000),
        ..Job::default()
    }
}

pub(crate) fn attempt(
    job: u64,
    number: u32,
    (claimed_ms, ended_ms): (i64, i64),
    ending: &str,
) -> Attempt {
    Attempt {
        job,
        number,
        worker: "w1".to_owned(),
        claimed_ms,
        ended_ms: Some(ended_ms),
        heard_ms: Some(ended_ms),
        ending: ending.to_owned(),
        error: String::new(),
    }
}

pub(crate) fn mark(what: &str, job: u64, attempt: u32, at_ms: i64) -> Mark {
    Mark { what: what.to_owned(), job, attempt, worker: "w1".to_owned(), at_ms }
}

fn said(op: Op, key: &str, outcome: Outcome, ids: &[u64]) -> Said {
    Said {
        client: 0,
        op,
        key: key.to_owned(),
        sent_ms: 990,
        at_ms: 1_010,
        outcome,
        ids: ids.to_vec(),
        changed: true,
        asked: Vec::new(),
        note: String::new(),
    }
}

pub(crate) fn submitted(key: &str, outcome: Outcome, ids: &[u64]) -> Said {
    let one = Asked { tenant: "a".to_owned(), ..Asked::default() };
    let asked = vec![one; ids.len().max(1)];
    Said { asked, ..said(Op::Submit, key, outcome, ids) }
}

pub(crate) fn key(key: &str, ids: &[u64]) -> Key {
    Key { tenant: "a".to_owned(), key: key.to_owned(), ids: ids.to_vec() }
}

/// Job 1 succeeds at once. Job 2 fails, is lost, and succeeds. Job 3 depends on job 1 and is
/// cancelled. Job 4 fails for good.
pub(crate) fn sound() -> History {
    let mut history = History {
        jobs: ["succeeded", "succeeded", "cancelled", "failed"]
            .into_iter()
            .zip(1..)
            .map(|(state, id)| job(id, state))
            .collect(),
        attempts: vec![
            attempt(1, 1, (1_100, 1_200), "succeeded"),
            attempt(2, 1, (1_100, 1_200), "transient"),
            attempt(2, 2, (1_260, 1_400), "lost"),
            attempt(2, 3, (1_400, 1_500), "succeeded"),
            attempt(4, 1, (1_500, 1_600), "transient"),
            attempt(4, 2, (1_700, 1_800), "transient"),
        ],
        keys: vec![key("k1", &[1]), key("k2", &[2]), key("k3", &[3, 4])],
        n_completed: 2,
        said: vec![
            submitted("k1", Outcome::Unknown, &[]),
            submitted("k1", Outcome::Ok, &[1]),
            submitted("k2", Outcome::Ok, &[2]),
            submitted("k2", Outcome::Ok, &[2]),
            submitted("k3", Outcome::Ok, &[3, 4]),
            submitted("k4", Outcome::Fail, &[]),
            said(Op::Conflict, "k1", Outcome::Fail, &[]),
            said(Op::Cancel, "", Outcome::Ok, &[3]),
        ],
        limits: Limits {
            tenant_slots: [("a".to_owned(), 2)].into(),
            tenant_jobs: [("a".to_owned(), 2)].into(),
            worker_slots: [("w1".to_owned(), 2)].into(),
            losses_max: 3,
            ..Limits::default()
        },
        ..History::default()
    };
    for (index, n_attempts, n_failures, n_losses) in [(0, 1, 0, 0), (1, 3, 1, 1), (3, 2, 2, 0)] {
        let job: &mut Job = &mut history.jobs[index];
        (job.n_attempts, job.n_failures, job.n_losses) = (n_attempts, n_failures, n_losses);
    }
    for job in &mut history.jobs[2..] {
        let cause = if job.state == "failed" { "exhausted" } else { "asked" };
        job.cause = Some(cause.to_owned());
    }
    history.said[4].asked[0].after = vec![1];
    for attempt in &history.attempts {
        history.marks.push(mark("start", attempt.job, attempt.number, attempt.claimed_ms + 10));
        let end = if attempt.ending == "succeeded" { "end" } else { "fail" };
        history.marks.push(mark(end, attempt.job, attempt.number, attempt.claimed_ms + 50));
    }
    history
}

/// The database's records of job 2: two attempts ended, and the third is its last.
pub(crate) fn steps() -> Vec<Step> {
    let states = [
        ("queued", 0),
        ("claimed", 1),
        ("running", 1),
        ("queued", 1),
        ("claimed", 2),
        ("queued", 2),
        ("claimed", 3),
        ("running", 3),
        ("", 3),
    ];
    let step = |(at_ms, (fence, (state, attempt))): (i64, (u64, (&str, u32)))| Step {
        job: 2,
        at_ms,
        state: (!state.is_empty()).then(|| state.to_owned()),
        fence,
        attempt,
        worker: matches!(state, "claimed" | "running").then(|| "w1".to_owned()),
        ready_ms: Some(1_000),
        not_before_ms: None,
    };
    (1_000..).zip((1..).zip(states)).map(step).collect()
}

/// The rules that a changed sound history violates.
pub(crate) fn broken(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let mut history = sound();
    change(&mut history);
    let mut rules: Vec<_> =
        check(&history, Scope::Everything).into_iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}
