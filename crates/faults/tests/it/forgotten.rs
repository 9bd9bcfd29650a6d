//! What a history says of jobs of which the store has kept nothing.

use faults::History;

use crate::sound::{broken, key};

/// Job 1 is forgotten: it has no key, and nobody waits for it.
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
fn what_nobody_can_ask_for_may_be_forgotten() {
    assert_eq!(broken_once_forgotten(|_| ()), [""; 0]);
    let rules = broken_once_forgotten(|history| {
        let kept = history.jobs[1..].iter();
        history.completions = Some(kept.map(|job| (job.id, job.state.clone())).collect());
    });
    assert_eq!(rules, [""; 0]);
}

#[test]
fn what_must_be_kept_and_is_forgotten_is_found() {
    let rules = |change: fn(&mut History)| broken_once_forgotten(change);
    assert_eq!(rules(|history| history.forgetful.clear()), ["forgotten"]);
    assert_eq!(rules(|history| history.keys.push(key("k1", &[1]))), ["forgotten"]);
    assert_eq!(rules(|history| history.jobs[0].dedupe = Some("d".to_owned())), ["forgotten"]);
    assert_eq!(rules(|history| history.said[4].asked[0].after = vec![1]), ["forgotten"]);
    let retried = |history: &mut History| {
        (history.jobs[1].is_forgotten, history.said[2].key) = (true, String::new());
        history.said[3].key.clear();
        history.keys.remove(0);
    };
    assert_eq!(rules(retried), ["forgotten"]);
}

#[test]
fn what_went_before_it_was_done_is_found() {
    let rules = |change: fn(&mut History)| broken_once_forgotten(change);
    let never_ended = |history: &mut History| {
        history.marks.retain(|mark| (mark.job, mark.what.as_str()) != (1, "end"));
    };
    assert_eq!(rules(never_ended), ["no-run"]);
    let never_claimed = |history: &mut History| {
        history.attempts.remove(0);
        history.marks.retain(|mark| mark.job != 1);
    };
    assert_eq!(rules(never_claimed), ["attempt-numbers", "no-result", "ledger"]);
    assert_eq!(rules(|history| history.n_completed = 1), ["ledger"]);
    // It is not even known to have been there.
    let no_trace = |history: &mut History| {
        history.jobs.remove(0);
        history.attempts.remove(0);
        history.marks.retain(|mark| mark.job != 1);
        history.n_completed = 1;
    };
    assert_eq!(rules(no_trace), ["lost-ack"]);
    // It was called off, its client was told so, and it ran all the same.
    let called_off = |history: &mut History| history.said[7].ids = vec![1];
    assert_eq!(rules(called_off), ["not-cancelled", "run-after-cancel"]);
}
