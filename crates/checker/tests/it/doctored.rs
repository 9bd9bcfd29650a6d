//! Sound histories with one change.

use checker::{Fault, Harm, History, Outcome, Scope, check};

use crate::sound::{attempt, broken, key, mark, sound, submitted};

#[test]
fn sound_history_has_no_violation() {
    assert_eq!(check(&sound(), Scope::Everything), []);
}

#[test]
fn a_lost_acknowledgement_is_found() {
    let rules = broken(|history| history.said.push(submitted("k9", Outcome::Ok, &[9])));
    assert_eq!(rules, ["lost-ack", "key-differs"]);
}

#[test]
fn job_that_differs_from_its_submission_is_found() {
    let asked = |terms: &str| {
        broken(|history| {
            history.jobs[0].terms = Some("gpu 2".to_owned());
            history.said[1].asked[0].terms = Some(terms.to_owned());
        })
    };
    assert_eq!(asked("gpu 2"), [""; 0]);
    assert_eq!(asked("gpu 1"), ["other-terms"]);
    // One answer for all jobs of an array.
    let array = |terms: &str| {
        broken(|history| {
            history.said[4].asked.truncate(1);
            history.said[4].asked[0].terms = Some("any".to_owned());
            history.jobs[2].terms = Some("any".to_owned());
            history.jobs[3].terms = Some(terms.to_owned());
        })
    };
    assert_eq!(array("any"), [""; 0]);
    assert_eq!(array("some"), ["other-terms"]);
}

#[test]
fn a_key_that_stands_for_two_jobs_is_found() {
    let rules = broken(|history| history.said[3].ids = vec![1]);
    assert_eq!(rules, ["key-differs"]);
    let rules = broken(|history| history.keys.push(key("k2", &[2])));
    assert_eq!(rules, ["key-twice"]);
}

#[test]
fn rejected_submission_with_a_job_is_found() {
    let rules = broken(|history| history.keys.push(key("k4", &[4])));
    assert_eq!(rules, ["fail-kept"]);
}

#[test]
fn a_key_that_takes_another_body_is_found() {
    let rules = broken(|history| history.said[6].outcome = Outcome::Ok);
    assert_eq!(rules, ["key-conflict"]);
}

#[test]
fn job_in_two_states_or_without_a_final_one_is_found() {
    let rules = broken(|history| {
        let again = history.jobs[2].clone();
        history.jobs.insert(2, again);
    });
    assert_eq!(rules, ["two-states"]);
    let rules = broken(|history| history.jobs[2].state = "queued".to_owned());
    assert_eq!(rules, ["not-final", "not-cancelled"]);
}

#[test]
fn a_result_that_counts_twice_is_found() {
    let twice = |history: &mut History| {
        history.attempts[2].ending = "succeeded".to_owned();
        history.marks.push(mark("end", 2, 2, 1_310));
        (history.jobs[1].n_losses, history.n_completed) = (0, 3);
    };
    assert_eq!(broken(twice), ["two-results", "result-ignored"]);
    assert_eq!(broken(|history| history.n_completed = 3), ["ledger"]);
}

#[test]
fn a_result_that_is_ignored_or_missing_is_found() {
    let rules = broken(|history| {
        history.jobs[0].state = "failed".to_owned();
        // Job 3 depends on it.
        history.said[4].asked[0].after.clear();
    });
    assert_eq!(rules, ["result-ignored"]);
    let rules = broken(|history| {
        history.attempts[0].ending = "preempted".to_owned();
        (history.jobs[0].n_evictions, history.limits.evictions_max) = (1, 1);
        history.n_completed = 1;
    });
    assert_eq!(rules, ["no-result"]);
}

#[test]
fn attempts_that_overlap_or_are_missing_are_found() {
    assert_eq!(broken(|history| history.attempts[3].claimed_ms = 1_399), ["overlap"]);
    let rules = broken(|history| drop(history.attempts.remove(2)));
    assert_eq!(rules, ["attempt-numbers", "counts", "unknown-run"]);
    let rules = broken(|history| history.attempts.push(attempt(7, 1, (1, 2), "lost")));
    assert_eq!(rules, ["stray-attempt"]);
}

#[test]
fn a_retry_that_does_not_wait_is_found() {
    assert_eq!(broken(|history| history.attempts[2].claimed_ms = 1_229), ["backoff"]);
}

#[test]
fn backoff_counts_from_the_report_of_the_failure() {
    let slow = |history: &mut History| {
        (history.attempts[1].ended_ms, history.attempts[2].claimed_ms) = (Some(1_220), 1_231);
    };
    assert_eq!(broken(slow), [""; 0]);
    assert_eq!(broken(|history| history.attempts[1].heard_ms = Some(1_232)), ["backoff"]);
    assert_eq!(broken(|history| history.attempts[1].heard_ms = Some(600)), ["heard"]);
    assert_eq!(broken(|history| history.attempts[5].heard_ms = Some(2_301)), ["heard"]);
}

#[test]
fn an_attempt_that_outlives_its_job_is_found() {
    assert_eq!(broken(|history| history.jobs[0].finished_ms = Some(1_199)), ["after-the-end"]);
}

#[test]
fn too_many_tries_and_losses_are_found() {
    assert_eq!(
        broken(|history| history.jobs[3].attempts_max = 1),
        ["too-many-tries", "given-up-early"]
    );
    assert_eq!(broken(|history| history.jobs[3].attempts_max = 3), ["given-up-early"]);
    assert_eq!(broken(|history| history.limits.losses_max = 0), ["losses"]);
    assert_eq!(broken(|history| history.jobs[3].cause = Some("poison".to_owned())), ["losses"]);
    assert_eq!(broken(|history| history.jobs[1].n_failures = 2), ["counts"]);
}

#[test]
fn a_breach_of_a_quota_is_found() {
    let rules = broken(|history| history.limits.tenant_slots = [("a".to_owned(), 1)].into());
    assert_eq!(rules, ["quota", "ran-over-quota"]);
    let rules = broken(|history| history.limits.tenant_jobs = [("a".to_owned(), 1)].into());
    assert_eq!(rules, ["jobs-max", "ran-over-jobs-max"]);
    let rules = broken(|history| history.limits.worker_slots = [("w1".to_owned(), 1)].into());
    assert_eq!(rules, ["worker-slots"]);
    let rules = broken(|history| history.jobs[0].slots = 2);
    assert_eq!(rules, ["quota", "worker-slots", "ran-over-quota"]);
}

#[test]
fn two_unfinished_jobs_of_one_dedupe_key_are_found() {
    let dedupe = |history: &mut History| {
        history.jobs[..2].iter_mut().for_each(|job| job.dedupe = Some("d".to_owned()));
    };
    assert_eq!(broken(dedupe), ["dedupe"]);
    let rules = broken(|history| {
        dedupe(history);
        history.jobs[1].created_ms = 2_000;
    });
    assert_eq!(rules, Vec::<&str>::new());
}

#[test]
fn a_dependent_that_starts_too_soon_is_found() {
    let depend = |history: &mut History| history.said[2].asked[0].after = vec![1];
    assert_eq!(broken(depend), ["too-soon"]);
    let rules = broken(|history| {
        depend(history);
        history.jobs[0].finished_ms = Some(1_100 + 100);
        history.attempts[1].claimed_ms = 1_200;
    });
    assert_eq!(rules, Vec::<&str>::new());
    let rules = broken(|history| {
        history.jobs[3].finished_ms = Some(1_000);
        history.attempts.drain(4..);
        history.marks.retain(|mark| mark.job != 4);
        let job = &mut history.jobs[3];
        (job.n_attempts, job.n_failures, job.cause) = (0, 0, Some("too-late".to_owned()));
        history.said[2].asked[0].after = vec![4];
    });
    assert_eq!(rules, ["ran-without"]);
}

#[test]
fn a_run_after_a_cancel_is_found() {
    let rules = broken(|history| {
        history.attempts.push(attempt(3, 1, (1_850, 1_900), "cancelled"));
        history.jobs[2].n_attempts = 1;
        history.said[4].asked[0].after.clear();
    });
    assert_eq!(rules, ["run-after-cancel"]);
    let rules = broken(|history| history.jobs[2].state = "failed".to_owned());
    assert_eq!(rules, ["not-cancelled"]);
    let rules = broken(|history| {
        (history.said[7].changed, history.said[7].note) = (false, "succeeded".to_owned());
    });
    assert_eq!(rules, ["not-final-after-all"]);
}

#[test]
fn token_that_runs_twice_or_was_never_claimed_is_found() {
    assert_eq!(broken(|history| history.marks.push(mark("start", 1, 1, 1_120))), ["token-twice"]);
    assert_eq!(broken(|history| history.marks.push(mark("start", 1, 7, 1_900))), ["unknown-run"]);
    assert_eq!(broken(|history| history.attempts[0].worker = "w2".to_owned()), ["wrong-worker"]);
}

#[test]
fn a_success_without_a_run_is_found() {
    let rules = broken(|history| history.marks.retain(|mark| mark.job != 1));
    assert_eq!(rules, ["no-run"]);
    let rules = broken(|history| history.marks.retain(|mark| mark.what != "end"));
    assert_eq!(rules, ["no-run"]);
}

#[test]
fn two_runs_of_one_job_at_once_are_found_unless_a_worker_was_suspended() {
    let late = |history: &mut History| history.marks.push(mark("tick", 2, 2, 1_950));
    assert_eq!(broken(late), ["side-by-side"]);
    let rules = broken(|history| {
        late(history);
        let who = "w1".to_owned();
        history.faults.push(Fault { at_ms: 1_300, harm: Harm::Stop, who });
    });
    assert_eq!(rules, Vec::<&str>::new());
    // A process that reported its failure has ended before the next one begins.
    let told = |at_ms: i64| broken(|history| history.marks.push(mark("tick", 2, 1, at_ms)));
    assert_eq!(told(1_270), Vec::<&str>::new());
    assert_eq!(told(1_271), ["side-by-side"]);
}

#[test]
fn damage_is_found_and_torn_store_is_checked_alone() {
    assert_eq!(broken(|history| history.damage.push("page 7".to_owned())), ["damage"]);
    let mut history = sound();
    history.said.push(submitted("k9", Outcome::Ok, &[9]));
    history.marks.push(mark("start", 1, 7, 1_900));
    assert_eq!(check(&history, Scope::StoreAlone), []);
    history.attempts[3].claimed_ms = 1_399;
    assert_eq!(check(&history, Scope::StoreAlone).len(), 1);
}
