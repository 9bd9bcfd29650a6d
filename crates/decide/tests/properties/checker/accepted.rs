//! Right decisions about which there is nothing to say.

use model::policy::Rule;
use model::{Action, Ask, Fixed, Freed, Millis, Name, Placement, Points, Reason, WorkerId};

use super::stage::{
    assert_sound, attempt, defer, found, hold, job, place, place_with, placement, resource,
    room_and_jobs, worker,
};
use crate::worlds::NOW;

#[test]
fn nothing_to_do_is_sound() {
    assert_sound(&found(&room_and_jobs(1, 0), &[], &[]));
}

#[test]
fn a_full_worker_and_a_job_that_waits_for_it_are_sound() {
    let before = room_and_jobs(1, 2);
    assert_sound(&found(&before, &[place(1, "w")], &[hold(2, Reason::WorkersFull)]));
    assert_sound(&found(&before, &[place(2, "w")], &[hold(1, Reason::WorkersFull)]));
}

#[test]
fn the_order_of_actions_does_not_matter() {
    let mut before = room_and_jobs(2, 3);
    before.policy.failure_backoff = Millis(1);
    let mut actions = [place(1, "w"), place(2, "w"), defer(3, Millis(1))];
    assert_sound(&found(&before, &actions, &[hold(3, Reason::WorkersFull)]));
    actions.reverse();
    assert_sound(&found(&before, &actions, &[hold(3, Reason::WorkersFull)]));
}

#[test]
fn a_score_that_is_the_sum_of_its_points_is_sound() {
    let points = |rule, points| Points { rule, points: Fixed::thousandths(points) };
    let points = vec![points(Rule::Age, 1_500), points(Rule::Rarity, -500)];
    let placement = Placement { score: Fixed::ONE, points, ..placement(1, "w") };
    assert_sound(&found(&room_and_jobs(1, 1), &[Action::Place(placement)], &[]));
}

#[test]
fn every_limit_may_be_reached_but_not_exceeded() {
    let mut before = room_and_jobs(3, 2);
    before.workers[0].slots_free = Some(2);
    before.workers[0].amounts = [(Name::new("gpu"), 3)].into();
    before.tenants[0].jobs_max = Some(3);
    before.tenants[0].used = Fixed::ONE;
    before.tenants[0].budget = Some(Fixed::whole(4));
    before.budget = Some(model::Budget { limit: Fixed::whole(3), used: Fixed::ZERO });
    before.attempts = vec![attempt(9, "a", "w")];
    for amounts in [&mut before.attempts[0].amounts, &mut before.jobs[0].amounts] {
        *amounts = [(Name::new("gpu"), 1)].into();
    }
    before.jobs[1].amounts = [(Name::new("gpu"), 1)].into();
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &[]));
}

#[test]
fn one_named_resource_and_one_workspace_serve_two_jobs_that_ask_for_any() {
    let mut before = room_and_jobs(3, 3);
    before.resources = vec![resource("checkout", "a"), resource("other", "b")];
    before.tenants[0].workspaces = Some(1);
    for job in &mut before.jobs {
        job.resource = Some(Ask::Any);
    }
    let actions = [place_with(1, "w", "checkout"), place(2, "w")];
    assert_sound(&found(&before, &actions, &[hold(3, Reason::ResourceHeld)]));
}

#[test]
fn a_worker_that_asks_gets_as_many_as_it_completed() {
    let mut before = room_and_jobs(3, 3);
    before.workers.push(worker("idle", 1));
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 2 });
    let holds = [hold(3, Reason::Outranked)];
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w")], &holds));

    before.policy.proactive_fetch_to_capacity = true;
    assert_sound(&found(&before, &[place(1, "w"), place(2, "w"), place(3, "w")], &[]));
}

#[test]
fn a_worker_that_asks_passes_over_elapsed_backoffs_only() {
    let mut before = room_and_jobs(3, 3);
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 3 });
    before.jobs[0].backoff_until = Some(NOW + Millis(1));
    before.jobs[1].backoff_until = Some(NOW - Millis(1));
    let actions = [place(1, "w"), place(3, "w")];
    assert_sound(&found(&before, &actions, &[hold(2, Reason::NotBefore)]));

    before.policy.proactive_fetch_literal = true;
    let holds = [hold(2, Reason::NotBefore), hold(3, Reason::NotBefore)];
    assert_sound(&found(&before, &[place(1, "w")], &holds));

    before.policy.proactive_fetch_to_capacity = true;
    let all = [place(1, "w"), place(2, "w"), place(3, "w")];
    assert_sound(&found(&before, &all, &[]));
}

#[test]
fn a_job_that_does_not_fit_the_worker_that_asks_is_outranked() {
    let mut before = room_and_jobs(1, 0);
    before.workers.push(worker("wide", 2));
    before.jobs = vec![model::Job { slots: 2, ..job(1, "a") }];
    before.freed = Some(Freed { worker: WorkerId::new("w"), completed: 1 });
    assert_sound(&found(&before, &[], &[hold(1, Reason::Outranked)]));
}
