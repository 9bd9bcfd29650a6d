//! Preemptions.

use checker::{History, Step};

use crate::sound::{broken, steps};

/// The second attempt of job 2 is preempted at 1,400 for job 4 of a different tenant, which waits
/// from 1,300 on.
fn evict(history: &mut History) {
    "preempted".clone_into(&mut history.attempts[2].ending);
    let job = &mut history.jobs[1];
    (job.n_losses, job.n_evictions) = (0, 1);
    history.limits.owed = ["b".to_owned()].into();
    (history.limits.evictions_max, history.limits.evicted_after_ms) = (1, 140);
    (history.jobs[3].tenant, history.jobs[3].priority) = ("b".to_owned(), 1);
    history.steps = steps();
    for (place, (at_ms, state)) in [(1_300, "queued"), (1_500, "claimed")].into_iter().enumerate() {
        let number = u32::try_from(place).expect("there are two");
        history.steps.push(Step {
            job: 4,
            at_ms,
            state: Some(state.to_owned()),
            fence: u64::from(number) + 1,
            attempt: number,
            worker: None,
            ready_ms: Some(1_300),
            not_before_ms: None,
        });
    }
}

fn broken_once_evicted(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    broken(|history| {
        evict(history);
        change(history);
    })
}

#[test]
fn preemption_for_a_more_important_job_is_allowed() {
    assert_eq!(broken_once_evicted(|_| ()), [""; 0]);
}

#[test]
fn preemption_without_a_waiting_job_is_found() {
    let rules = |change: fn(&mut History)| broken_once_evicted(change);
    assert_eq!(rules(|history| history.jobs[3].priority = 0), ["stopped-for-nobody"]);
    assert_eq!(rules(|history| history.jobs[1].priority = 1), ["stopped-for-nobody"]);
    assert_eq!(rules(|history| history.limits.owed.clear()), ["stopped-for-nobody"]);
    assert_eq!(rules(|history| history.jobs[1].tenant = "b".to_owned()), ["stopped-for-nobody"]);
    let late = |history: &mut History| {
        let queued = history.steps.iter_mut().find(|step| step.job == 4);
        queued.expect("it waits").at_ms = 1_401;
    };
    assert_eq!(rules(late), ["stopped-for-nobody"]);
    let early = |history: &mut History| {
        for (step, at_ms) in history.steps.iter_mut().filter(|one| one.job == 4).zip([900, 1_000]) {
            step.at_ms = at_ms;
        }
    };
    assert_eq!(rules(early), ["stopped-for-nobody"]);
}

#[test]
fn early_or_repeated_preemption_is_found() {
    let rules = |change: fn(&mut History)| broken_once_evicted(change);
    assert_eq!(rules(|history| history.limits.evicted_after_ms = 141), ["stopped-early"]);
    assert_eq!(rules(|history| history.limits.evictions_max = 0), ["stopped-too-often"]);
}

#[test]
fn preempted_job_that_lost_a_try_is_found() {
    let rules = |change: fn(&mut History)| broken_once_evicted(change);
    assert_eq!(rules(|history| history.jobs[1].n_evictions = 0), ["counts"]);
    assert_eq!(rules(|history| history.jobs[1].n_failures = 2), ["counts"]);
    assert_eq!(rules(|history| history.jobs[1].n_losses = 1), ["counts"]);
    let younger = |history: &mut History| {
        history.steps[5..9].iter_mut().for_each(|step| step.ready_ms = Some(1_400));
    };
    assert_eq!(rules(younger), ["age-reset"]);
}
