//! In every world there is a decision that the checker accepts, and only one story about it.
//!
//! The decision is found by trial: whatever the checker does not object to is done. Nothing is
//! known here about limits or reasons, so a contradiction between two of the checker's demands
//! shows up as a world without a sound decision.

use decide::check::{Fault, Violation, check};
use model::{
    Action, Attempt, Decision, Fixed, Hold, Job, JobId, Name, Placement, Preempt, Preset, Reason,
    Snapshot, Worker,
};
use proptest::prelude::*;

use crate::worlds::{any_snapshot, shuffled};

fn any_world() -> impl Strategy<Value = Snapshot> {
    proptest::sample::select(Preset::ALL.to_vec()).prop_flat_map(any_snapshot)
}

proptest! {
    #[test]
    fn every_world_has_a_sound_decision(before in any_world()) {
        prop_assert_eq!(check(&before, &greedy(&before)), vec![]);
    }

    #[test]
    fn the_order_of_a_world_does_not_matter(before in any_world(), seed in any::<u64>()) {
        prop_assert_eq!(check(&shuffled(&before, seed), &greedy(&before)), vec![]);
    }

    #[test]
    fn no_part_of_a_decision_can_be_left_out(before in any_world()) {
        let decision = greedy(&before);
        for index in 0..decision.actions.len() {
            let mut other = decision.clone();
            other.actions.remove(index);
            prop_assert_ne!(check(&before, &other), vec![]);
        }
        for index in 0..decision.holds.len() {
            let mut other = decision.clone();
            other.holds.remove(index);
            prop_assert_ne!(check(&before, &other), vec![]);
        }
    }

    #[test]
    fn of_all_limits_one_is_the_first(before in any_world()) {
        let decision = greedy(&before);
        for index in 0..decision.holds.len() {
            let mut other = decision.clone();
            for reason in Reason::ALL.into_iter().filter(|reason| !is_on_purpose(*reason)) {
                other.holds[index].reason = reason;
                let is_sound = check(&before, &other).is_empty();
                prop_assert_eq!(is_sound, reason == decision.holds[index].reason);
            }
        }
    }
}

/// One thing after the other that the checker does not object to: placements, then preemptions,
/// then holds.
fn greedy(before: &Snapshot) -> Decision {
    let mut decision = Decision::default();
    for job in &before.jobs {
        try_each(before, &mut decision, seats(before, job));
    }
    for job in &before.jobs {
        if !is_placed(&decision, &job.id) {
            try_each(before, &mut decision, preemptions(before, job));
        }
    }
    for job in &before.jobs {
        if !is_placed(&decision, &job.id) {
            let hold = hold(before, &decision, job);
            decision.holds.push(hold);
        }
    }
    decision
}

/// Takes the first of `choices` that the checker does not object to, if there is one.
fn try_each(
    before: &Snapshot,
    decision: &mut Decision,
    choices: impl Iterator<Item = Vec<Action>>,
) {
    for actions in choices {
        let n_actions = decision.actions.len();
        decision.actions.extend(actions);
        if check(before, decision).iter().all(is_for_want_of_a_hold) {
            return;
        }
        decision.actions.truncate(n_actions);
    }
}

fn is_for_want_of_a_hold(violation: &Violation) -> bool {
    matches!(
        violation,
        Violation::Answer { fault: Fault::Unanswered | Fault::NotHeldAsPreempting, .. }
    )
}

/// Every placement of `job` there could be.
fn seats<'a>(before: &'a Snapshot, job: &'a Job) -> impl Iterator<Item = Vec<Action>> + 'a {
    let place = |worker: &Worker, resource: Option<Name>| {
        let (job, worker) = (job.id.clone(), worker.id.clone());
        let (score, points) = (Fixed::ZERO, Vec::new());
        vec![Action::Place(Placement { job, worker, score, points, resource })]
    };
    before.workers.iter().flat_map(move |worker| {
        let named = before.resources.iter().map(|resource| Some(resource.name.clone()));
        named.chain([None]).map(move |resource| place(worker, resource))
    })
}

/// Every attempt, and every two attempts, that could be told to stop for `job`.
fn preemptions<'a>(before: &'a Snapshot, job: &'a Job) -> impl Iterator<Item = Vec<Action>> + 'a {
    let preempt = |victim: &Attempt| {
        let (worker, preemptor) = (victim.worker.clone(), job.id.clone());
        Action::Preempt(Preempt { victim: victim.job.clone(), worker, preemptor })
    };
    let attempts = before.attempts.iter().filter(|_| before.policy.preemption.enabled);
    let one = attempts.clone().map(move |victim| vec![preempt(victim)]);
    let two = attempts.enumerate().flat_map(move |(index, first)| {
        let rest = before.attempts.iter().skip(index + 1);
        rest.map(move |second| vec![preempt(first), preempt(second)])
    });
    one.chain(two)
}

fn is_placed(decision: &Decision, job: &JobId) -> bool {
    decision.actions.iter().any(|action| match action {
        Action::Place(placement) => placement.job == *job,
        Action::Preempt(_) | Action::Defer(_) => false,
    })
}

/// `job` with the first reason that the checker accepts.
fn hold(before: &Snapshot, decision: &Decision, job: &Job) -> Hold {
    let reasons = Reason::ALL.into_iter().filter(|reason| !is_on_purpose(*reason));
    let mut holds =
        reasons.map(|reason| Hold { job: job.id.clone(), reason, detail: String::new() });
    let accepted = holds.find(|hold| {
        let mut decision = decision.clone();
        decision.holds.push(hold.clone());
        check(before, &decision).iter().all(is_for_want_of_a_hold)
    });
    accepted.unwrap_or_else(|| panic!("no reason is accepted for job {}", job.id))
}

fn is_on_purpose(reason: Reason) -> bool {
    [Reason::Guarded, Reason::Reserved, Reason::Vetoed, Reason::BelowZero].contains(&reason)
}
