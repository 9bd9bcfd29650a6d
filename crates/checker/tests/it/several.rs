//! Rules for several schedulers on one store, and the records of the database.

use std::collections::BTreeMap;

use checker::{Fault, Harm, History, Job, Offer, Step};

use crate::sound::{broken, mark, steps};

#[test]
fn exceeded_limit_of_a_type_or_a_resource_is_found() {
    let rules = broken(|history| history.limits.type_jobs = [("exec".to_owned(), 1)].into());
    assert_eq!(rules, ["type-max", "ran-over-type-max"]);
    let rules = broken(|history| {
        history.jobs[..2].iter_mut().for_each(|job| job.resource = Some("r".to_owned()));
    });
    assert_eq!(rules, ["resource-shared", "ran-on-one-resource"]);
}

/// Only the processes violate the limits: each claim ends before the next begins. Jobs 1 and 4 need
/// the same resource. `last` is the last record of job 1's process with its time, and `ending` is
/// the ending of its attempt at 1,200.
fn shared(last: (&str, i64), ending: &str, change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    let rules = broken(|history| {
        for job in [0, 3] {
            history.jobs[job].resource = Some("r".to_owned());
        }
        history.attempts[4].claimed_ms = 1_201;
        history.marks.retain(|mark| (mark.job, mark.attempt) != (4, 1));
        history.marks.extend([mark("start", 4, 1, 1_202), mark("fail", 4, 1, 1_207)]);
        history.marks.retain(|mark| (mark.job, mark.what.as_str()) != (1, "end"));
        history.marks.push(mark(last.0, 1, 1, last.1));
        ending.clone_into(&mut history.attempts[0].ending);
        change(history);
    });
    rules.into_iter().filter(|rule| *rule == "ran-on-one-resource").collect()
}

fn suspended(history: &mut History) {
    for (at_ms, harm) in [(1_120, Harm::Stop), (2_480, Harm::Continue)] {
        history.faults.push(Fault { at_ms, harm, who: "w1".to_owned() });
    }
}

#[test]
fn short_runs_that_overlap_by_a_millisecond_are_found() {
    assert_eq!(shared(("end", 1_202), "succeeded", |_| ()), [""; 0]);
    assert_eq!(shared(("end", 1_203), "succeeded", |_| ()), ["ran-on-one-resource"]);
    assert_eq!(shared(("fail", 1_203), "permanent", |_| ()), ["ran-on-one-resource"]);
    // The process reported its end, so the suspension of its worker is no excuse.
    assert_eq!(shared(("end", 1_203), "succeeded", suspended), ["ran-on-one-resource"]);
}

#[test]
fn stopped_run_may_continue_for_a_short_time() {
    assert_eq!(shared(("stop", 1_700), "lost", |_| ()), [""; 0]);
    assert_eq!(shared(("stop", 1_701), "lost", |_| ()), ["ran-on-one-resource"]);
    assert_eq!(shared(("end", 1_701), "lost", |_| ()), ["ran-on-one-resource"]);
    assert_eq!(shared(("stop", 1_701), "lost", suspended), [""; 0]);
    // Until its attempt ended, all its usage counts.
    let early = |history: &mut History| history.marks.push(mark("tick", 4, 1, 1_179));
    assert_eq!(shared(("stop", 1_300), "lost", early), ["ran-on-one-resource"]);
    let close = |history: &mut History| history.marks.push(mark("tick", 4, 1, 1_180));
    assert_eq!(shared(("stop", 1_300), "lost", close), [""; 0]);
}

/// The offer of a worker that can run all jobs.
fn offer() -> Offer {
    Offer {
        pool: "default".to_owned(),
        types: ["exec".to_owned()].into(),
        slots: 4,
        ..Offer::default()
    }
}

fn workers(offer: Offer) -> BTreeMap<String, Offer> {
    [("w1".to_owned(), offer)].into()
}

#[test]
fn a_job_on_a_worker_that_does_not_fit_is_found() {
    let given = |offer: Offer, change: fn(&mut Job)| {
        broken(|history| {
            history.workers = workers(offer);
            change(&mut history.jobs[0]);
        })
    };
    assert_eq!(given(offer(), |_| ()), [""; 0]);
    let other = Offer { types: ["other".to_owned()].into(), ..offer() };
    assert_eq!(given(other, |_| ()), ["misfit"]);
    assert_eq!(given(offer(), |job| job.pool = Some("default".to_owned())), [""; 0]);
    assert_eq!(given(offer(), |job| job.pool = Some("gpu".to_owned())), ["misfit"]);
    let needs = |job: &mut Job| {
        job.needs = [("os".to_owned(), vec!["mac".to_owned(), "linux".to_owned()])].into();
    };
    let has = |key: &str, value: &str| {
        let has = [(key.to_owned(), [value.to_owned()].into())].into();
        Offer { has, ..offer() }
    };
    assert_eq!(given(has("os", "linux"), needs), [""; 0]);
    assert_eq!(given(has("os", "bsd"), needs), ["misfit"]);
    assert_eq!(given(has("arch", "linux"), needs), ["misfit"]);
    let takes = |job: &mut Job| job.amounts = [("ram".to_owned(), 3)].into();
    let amount = |n: u64| Offer { amounts: [("ram".to_owned(), n)].into(), ..offer() };
    assert_eq!(given(amount(3), takes), [""; 0]);
    assert_eq!(given(amount(2), takes), ["misfit", "ran-over-amounts"]);
    assert_eq!(given(offer(), takes), ["misfit"]);
    let rules = broken(|history| {
        history.workers = [("w2".to_owned(), offer())].into();
        history.jobs[0].slots = 2;
    });
    assert!(rules.contains(&"misfit"), "{rules:?}");
    // Each job fits, and both together do not.
    let rules = broken(|history| {
        history.workers = workers(amount(3));
        history.jobs.iter_mut().for_each(takes);
    });
    assert_eq!(rules, ["ran-over-amounts"]);
}

#[test]
fn processes_are_checked_against_every_limit() {
    // Attempt 1 of job 1 and attempt 1 of job 2 overlap from 1,110 to 1,150.
    let max = |n: u32| [("a".to_owned(), n)].into();
    for n in [1, 2] {
        let rules: &[&str] = if n == 1 { &["jobs-max", "ran-over-jobs-max"] } else { &[] };
        assert_eq!(broken(|history| history.limits.tenant_jobs = max(n)), rules);
        let rules: &[&str] = if n == 1 { &["quota", "ran-over-quota"] } else { &[] };
        assert_eq!(broken(|history| history.limits.tenant_slots = max(n)), rules);
    }
    let slots = |slots: u32| workers(Offer { slots, ..offer() });
    assert_eq!(broken(|history| history.workers = slots(2)), [""; 0]);
    assert_eq!(broken(|history| history.workers = slots(1)), ["ran-over-slots"]);
    // A worker knows its own attempts, also after a suspension, and has not released the lost one.
    let rules = broken(|history| {
        history.workers = slots(1);
        suspended(history);
        history.attempts.iter_mut().for_each(|attempt| attempt.ending = "lost".to_owned());
    });
    assert!(rules.contains(&"ran-over-slots"), "{rules:?}");
}

#[test]
fn a_result_of_another_token_is_found() {
    let with = |result: &str| broken(|history| history.jobs[1].result = Some(result.to_owned()));
    assert_eq!(with("2 3 w1"), Vec::<&str>::new());
    assert_eq!(with("2 2 w1"), ["wrong-result"]);
    assert_eq!(with("2 3 w2"), ["wrong-result"]);
}

#[test]
fn a_step_that_may_not_follow_is_found() {
    assert_eq!(broken(|history| history.steps = steps()), Vec::<&str>::new());
    let doctored = |change: fn(&mut Vec<Step>)| {
        broken(|history| {
            history.steps = steps();
            change(&mut history.steps);
        })
    };
    // Two claims in a row, a state after the end, a skipped token, and a repeated token.
    assert_eq!(doctored(|steps| drop(steps.remove(5))), ["wrong-step"]);
    assert_eq!(
        doctored(|steps| {
            let again = Step { fence: 20, ..steps[0].clone() };
            steps.push(again);
        }),
        ["wrong-step"]
    );
    assert_eq!(doctored(|steps| steps[4].attempt = 3), ["token-order"]);
    assert_eq!(doctored(|steps| steps[4].attempt = 1), ["token-order"]);
    assert_eq!(doctored(|steps| steps[4].fence = 3), ["fence-order"]);
    assert_eq!(doctored(|steps| steps[2].worker = Some("w2".to_owned())), ["wrong-owner"]);
}

#[test]
fn completions_and_usage_are_compared() {
    let told =
        |history: &History| history.jobs.iter().map(|job| (job.id, job.state.clone())).collect();
    let rules = broken(|history| history.completions = Some(told(history)));
    assert_eq!(rules, Vec::<&str>::new());
    let rules = broken(|history| {
        history.completions = Some(told(history));
        history.completions.as_mut().map(|told| told.remove(&2));
    });
    assert_eq!(rules, ["completions"]);
    assert_eq!(broken(|history| history.held = [("jobs a".to_owned(), 1)].into()), ["held"]);
    assert_eq!(broken(|history| history.seen.push("2 and 3".to_owned())), ["out-of-balance"]);
}
