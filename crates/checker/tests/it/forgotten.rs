//! Jobs that the store deleted at their end.

use checker::{History, Outcome};

use crate::sound::{attempt, broken, key, mark};

/// Job 1 is deleted at its end: it has no key and no dependents.
fn forget(history: &mut History) {
    history.jobs[0].is_forgotten = true;
    history.forgetful.insert(history.jobs[0].kind.clone());
    history.keys.remove(0);
    history.said[..2].iter_mut().for_each(|said| said.key.clear());
    history.said[4].asked[0].after.clear();
}

fn broken_once_forgotten(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    broken(|history| {
        forget(history);
        change(history);
    })
}

#[test]
fn job_without_a_trace_may_be_deleted() {
    assert_eq!(broken_once_forgotten(|_| ()), [""; 0]);
    let rules = broken_once_forgotten(|history| {
        let kept = history.jobs[1..].iter();
        history.completions = Some(kept.map(|job| (job.id, job.state.clone())).collect());
    });
    assert_eq!(rules, [""; 0]);
}

#[test]
fn deleted_job_that_must_be_kept_is_found() {
    let rules = |change: fn(&mut History)| broken_once_forgotten(change);
    assert_eq!(rules(|history| history.forgetful.clear()), ["forgotten"]);
    assert_eq!(rules(|history| history.keys.push(key("k1", &[1]))), ["forgotten"]);
    assert_eq!(rules(|history| history.jobs[0].dedupe = Some("d".to_owned())), ["forgotten"]);
    assert_eq!(rules(|history| history.jobs[0].n_dependents = 1), ["forgotten"]);
    assert_eq!(rules(|history| history.jobs[0].was_cancelling = true), ["forgotten"]);
    let retried = |history: &mut History| {
        (history.jobs[1].is_forgotten, history.said[2].key) = (true, String::new());
        history.said[3].key.clear();
        history.keys.remove(0);
    };
    assert_eq!(rules(retried), ["forgotten"]);
}

#[test]
fn dependent_of_a_deleted_job_was_cancelled_before() {
    let waits = |history: &mut History| {
        history.said[4].asked[0].after = vec![1];
        history.jobs[0].finished_ms = Some(1_900);
    };
    // Job 3 is cancelled at 2,000, and job 1 was deleted before.
    assert_eq!(broken_once_forgotten(waits), ["forgotten"]);
    let rules = broken_once_forgotten(|history| {
        waits(history);
        history.jobs[2].finished_ms = Some(1_800);
    });
    assert_eq!(rules, [""; 0]);
    // The same within one submission: job 4 depends on job 3.
    let within = |history: &mut History| {
        history.said[4].key.clear();
        history.said[4].asked[1].after_indexes = vec![0];
        history.said[4].asked[1].run_if_failed = true;
        history.attempts.drain(4..);
        history.marks.retain(|mark| mark.job != 4);
        history.keys.pop();
        (history.jobs[3].state, history.jobs[3].cause) = ("cancelled".to_owned(), None);
        (history.jobs[3].n_attempts, history.jobs[3].n_failures) = (0, 0);
        // Job 3 has run, and is deleted.
        history.said.pop();
        history.attempts.push(attempt(3, 1, (1_500, 1_600), "succeeded"));
        history.marks.extend([mark("start", 3, 1, 1_510), mark("end", 3, 1, 1_550)]);
        history.n_completed = 3;
        let job = &mut history.jobs[2];
        (job.state, job.cause, job.n_attempts) = ("succeeded".to_owned(), None, 1);
        (job.is_forgotten, job.finished_ms) = (true, Some(1_600));
    };
    assert_eq!(broken_once_forgotten(within), ["forgotten"]);
}

#[test]
fn submission_without_a_key_exists_once() {
    let labelled = |history: &mut History| {
        history.said[0].asked[0].label = "s1".to_owned();
        history.said[1].asked[0].label = "s1".to_owned();
        history.jobs[0].label = Some("s1".to_owned());
    };
    assert_eq!(broken_once_forgotten(labelled), [""; 0]);
    let twice = broken_once_forgotten(|history| {
        labelled(history);
        history.jobs[1].label = Some("s1".to_owned());
    });
    assert_eq!(twice, ["not-once"]);
    let refused = broken_once_forgotten(|history| {
        labelled(history);
        history.said.remove(1);
        history.said[0].outcome = Outcome::Fail;
    });
    assert_eq!(refused, ["not-once"]);
}

#[test]
fn job_deleted_before_its_end_is_found() {
    let rules = |change: fn(&mut History)| broken_once_forgotten(change);
    let never_ended = |history: &mut History| {
        history.marks.retain(|mark| (mark.job, mark.what.as_str()) != (1, "end"));
    };
    assert_eq!(rules(never_ended), ["no-run"]);
    let too_early = |history: &mut History| {
        let end = history.marks.iter_mut().find(|mark| mark.job == 1 && mark.what == "end");
        end.expect("it has ended").at_ms = 1_701;
    };
    assert_eq!(rules(too_early), ["early-end"]);
    let while_it_waits = |history: &mut History| {
        history.attempts.remove(0);
        history.marks.retain(|mark| mark.job != 1);
        (history.jobs[0].n_attempts, history.n_completed) = (0, 1);
    };
    assert_eq!(rules(while_it_waits), ["no-result", "forgotten"]);
    let never_claimed = |history: &mut History| {
        history.attempts.remove(0);
        history.marks.retain(|mark| mark.job != 1);
    };
    assert_eq!(rules(never_claimed), ["attempt-numbers", "no-result", "ledger"]);
    assert_eq!(rules(|history| history.n_completed = 1), ["ledger"]);
    // The database has no record of it.
    let no_trace = |history: &mut History| {
        history.jobs.remove(0);
        history.attempts.remove(0);
        history.marks.retain(|mark| mark.job != 1);
        history.n_completed = 1;
    };
    assert_eq!(rules(no_trace), ["lost-ack"]);
    // It was cancelled with an acknowledgement, and ran anyway.
    let called_off = |history: &mut History| history.said[7].ids = vec![1];
    assert_eq!(rules(called_off), ["not-cancelled", "run-after-cancel"]);
}
