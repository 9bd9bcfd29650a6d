//! What only those can get wrong who share a store, and what the database itself wrote down.

use faults::{Fault, Harm, History, Step};

use crate::sound::{broken, mark, steps};

#[test]
fn a_limit_of_a_type_or_a_resource_that_does_not_hold_is_found() {
    let rules = broken(|history| history.limits.type_jobs = [("exec".to_owned(), 1)].into());
    assert_eq!(rules, ["type-max"]);
    let rules = broken(|history| {
        history.jobs[..2].iter_mut().for_each(|job| job.resource = Some("r".to_owned()));
    });
    assert_eq!(rules, ["resource-shared"]);
}

#[test]
fn what_really_ran_at_once_is_held_to_the_limits_unless_a_worker_was_suspended() {
    // Attempt 1 of job 1 goes on long after its end.
    let late = |history: &mut History| {
        history.marks.push(mark("tick", 1, 1, 2_500));
        history.limits.tenant_slots.clear();
        history.limits.tenant_jobs.clear();
    };
    let rules = broken(|history| {
        late(history);
        history.limits.tenant_jobs = [("a".to_owned(), 2)].into();
        history.marks.push(mark("tick", 2, 1, 1_950));
        history.marks.retain(|mark| (mark.job, mark.attempt) != (2, 2));
        history.marks.push(mark("tick", 2, 3, 2_200));
    });
    assert_eq!(rules, ["side-by-side", "ran-over-jobs-max"]);
    let rules = broken(|history| {
        late(history);
        history.jobs[0].resource = Some("r".to_owned());
        history.jobs[3].resource = Some("r".to_owned());
        history.marks.push(mark("tick", 4, 1, 2_100));
    });
    assert_eq!(rules, ["ran-on-one-resource"]);
    let rules = broken(|history| {
        late(history);
        history.jobs[0].resource = Some("r".to_owned());
        history.jobs[3].resource = Some("r".to_owned());
        history.marks.push(mark("tick", 4, 1, 2_100));
        for (at_ms, harm) in [(1_120, Harm::Stop), (2_480, Harm::Continue)] {
            history.faults.push(Fault { at_ms, harm, who: "w1".to_owned() });
        }
    });
    assert_eq!(rules, Vec::<&str>::new());
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
    // It is claimed twice in a row; it comes back after its end; a token is skipped, or used twice.
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
fn what_others_read_and_what_is_counted_is_compared() {
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
