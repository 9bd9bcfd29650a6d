//! The duration of the recovery after the last fault.

use std::collections::BTreeSet;

use checker::{Calm, History, Offer, Recovery, Step, recovery};

use crate::sound::{broken, sound, steps};

const CALM: Calm = Calm {
    healed_ms: 1_300,
    away: BTreeSet::new(),
    read_ms: 3_000,
    orphan_ms: 90,
    offer_ms: 100,
    wait_ms: 150,
};

fn broken_in_calm(calm: Calm, change: fn(&mut History)) -> Vec<&'static str> {
    broken(|history| {
        history.calm = Some(calm);
        change(history);
    })
}

#[test]
fn orphaned_attempt_is_released() {
    // Attempt 2 of job 2 stops running at 1,310, and is lost at 1,400.
    assert_eq!(broken_in_calm(CALM, |_| ()), [""; 0]);
    assert_eq!(broken_in_calm(Calm { orphan_ms: 89, ..CALM }, |_| ()), ["slow-recovery"]);
    let later = Calm { healed_ms: 1_330, orphan_ms: 70, ..CALM };
    assert_eq!(broken_in_calm(later.clone(), |_| ()), [""; 0]);
    let mut history = sound();
    assert_eq!(recovery(&history), None);
    history.calm = Some(CALM);
    let expected = Recovery { n_orphans: 0, orphan_ms: 90, wait_ms: 0 };
    assert_eq!(recovery(&history), Some(expected));
    history.calm = Some(later);
    let expected = Recovery { n_orphans: 1, orphan_ms: 70, wait_ms: 0 };
    assert_eq!(recovery(&history), Some(expected));
}

#[test]
fn attempt_that_never_ran_is_released() {
    let never = |history: &mut History| {
        history.marks.retain(|mark| (mark.job, mark.attempt) != (2, 2));
    };
    assert_eq!(broken_in_calm(CALM, never), [""; 0]);
    assert_eq!(broken_in_calm(Calm { offer_ms: 99, ..CALM }, never), ["slow-recovery"]);
    // The attempt is still live when the store is read.
    let stuck = |history: &mut History| {
        history.marks.retain(|mark| (mark.job, mark.attempt) != (4, 2));
        history.attempts[5].ended_ms = None;
    };
    assert!(broken_in_calm(CALM, stuck).contains(&"slow-recovery"));
}

/// Job 2 is queued from 1,000 to 1,161, beside a worker that runs two jobs meanwhile.
fn wait(history: &mut History) {
    history.calm = Some(Calm { healed_ms: 990, ..CALM });
    history.steps = steps();
    history.steps[1..].iter_mut().for_each(|step| step.at_ms += 160);
    let offer = Offer { slots: 3, types: ["exec".to_owned()].into(), ..Offer::default() };
    history.workers = [("w1".to_owned(), offer)].into();
    history.limits.tenant_slots.clear();
    history.limits.tenant_jobs.clear();
}

fn broken_by_waiting(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    broken(|history| {
        wait(history);
        change(history);
    })
}

#[test]
fn a_job_that_waits_beside_a_free_slot_is_found() {
    assert_eq!(broken_by_waiting(|_| ()), ["slow-start"]);
    let bound = |wait_ms: i64| {
        broken_by_waiting(|history| {
            history.calm = Some(Calm { healed_ms: 990, wait_ms, ..CALM });
        })
    };
    assert_eq!(bound(160), ["slow-start"]);
    assert_eq!(bound(161), [""; 0]);
    let healed = |history: &mut History| history.calm = Some(Calm { healed_ms: 1_011, ..CALM });
    assert_eq!(broken_by_waiting(healed), [""; 0]);
}

#[test]
fn a_job_may_wait_for_a_slot_or_a_limit_or_a_moment() {
    let full = |history: &mut History| {
        history.workers.values_mut().for_each(|offer| offer.slots = 2);
    };
    assert_eq!(broken_by_waiting(full), [""; 0]);
    let away = |history: &mut History| {
        let away = ["w1".to_owned()].into();
        history.calm = Some(Calm { healed_ms: 990, away, ..CALM });
    };
    assert_eq!(broken_by_waiting(away), [""; 0]);
    let limits: [fn(&mut History); 5] = [
        |history| history.limits.tenant_jobs = [("a".to_owned(), 2)].into(),
        |history| history.limits.tenant_slots = [("a".to_owned(), 2)].into(),
        |history| history.limits.type_jobs = [("exec".to_owned(), 2)].into(),
        |history| history.limits.budgets = ["a".to_owned()].into(),
        |history| history.steps[0].not_before_ms = Some(1_011),
    ];
    for limit in limits {
        assert_eq!(broken_by_waiting(limit), [""; 0]);
    }
    let wider = |history: &mut History| {
        history.jobs[3].slots = 2;
        history.steps.push(Step { job: 4, at_ms: 1_100, ..steps()[0].clone() });
    };
    assert_eq!(broken_by_waiting(wider), [""; 0]);
}
