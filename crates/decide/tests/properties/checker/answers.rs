//! Every job gets one answer, about things that exist.

use model::policy::Rule;
use model::{Action, Fixed, Millis, Placement, Points, Preset, Reason, Snapshot};

use super::stage::{
    assert_only, assert_says, assert_sound, attempt, defer, found, hold, place, placement, preempt,
    room_and_jobs,
};

const BACKOFF: Millis = Millis::from_secs(5);

/// Worker `w` with one slot, and jobs that are left alone for a while if they find no worker.
fn backing_off(n_jobs: u64) -> Snapshot {
    Snapshot { policy: Preset::PriorityAge.policy(), ..room_and_jobs(1, n_jobs) }
}

#[test]
fn a_job_that_does_not_wait_is_not_placed() {
    let before = room_and_jobs(1, 0);
    assert_only(&found(&before, &[place(7, "w")], &[]), "job 7 is named but does not wait");
}

#[test]
fn a_job_that_does_not_wait_is_not_held() {
    let holds = [hold(7, Reason::WorkersFull)];
    let said = found(&room_and_jobs(1, 0), &[], &holds);
    assert_only(&said, "job 7 is named but does not wait");
}

#[test]
fn a_job_that_does_not_wait_is_not_deferred() {
    let said = found(&room_and_jobs(1, 0), &[defer(7, Millis(1))], &[]);
    assert_only(&said, "job 7 is named but does not wait");
}

#[test]
fn nobody_stops_for_a_job_that_does_not_wait() {
    let mut before = room_and_jobs(1, 0);
    before.attempts = vec![attempt(9, "b", "w")];
    let said = found(&before, &[preempt(9, "w", 7)], &[]);
    assert_says(&said, "job 7 is named but does not wait");
}

#[test]
fn a_worker_that_is_not_known_gets_nothing() {
    let said = found(&room_and_jobs(1, 1), &[place(1, "x")], &[]);
    assert_only(&said, "worker x is named but not known");
}

#[test]
fn a_victim_runs_where_it_is_said_to_run() {
    let mut before = room_and_jobs(1, 1);
    before.workers.push(super::stage::worker("v", 1));
    before.attempts = vec![attempt(9, "b", "w")];
    let said = found(&before, &[preempt(9, "v", 1)], &[hold(1, Reason::Preempting)]);
    assert_only(&said, "job 9 is told to stop on worker v but does not run there");
}

#[test]
fn every_job_is_placed_or_held() {
    let said = found(&room_and_jobs(1, 1), &[], &[]);
    assert_only(&said, "job 1 is neither placed nor held");
}

#[test]
fn a_job_is_held_once() {
    let holds = [hold(2, Reason::WorkersFull), hold(2, Reason::WorkersFull)];
    let said = found(&room_and_jobs(1, 2), &[place(1, "w")], &holds);
    assert_only(&said, "job 2 is held more than once");
}

#[test]
fn a_job_is_placed_once() {
    let said = found(&room_and_jobs(2, 1), &[place(1, "w"), place(1, "w")], &[]);
    assert_only(&said, "job 1 is placed more than once");
}

#[test]
fn a_placed_job_is_not_held() {
    let said = found(&room_and_jobs(1, 1), &[place(1, "w")], &[hold(1, Reason::WorkersFull)]);
    assert_only(&said, "job 1 is placed and held");
}

#[test]
fn a_job_is_deferred_once() {
    let actions = [place(1, "w"), defer(2, BACKOFF), defer(2, BACKOFF)];
    let said = found(&backing_off(2), &actions, &[hold(2, Reason::WorkersFull)]);
    assert_only(&said, "job 2 is deferred more than once");
}

#[test]
fn a_deferred_job_is_not_placed() {
    let said = found(&backing_off(1), &[place(1, "w"), defer(1, BACKOFF)], &[]);
    assert_only(&said, "job 1 is deferred and placed");
}

#[test]
fn a_deferred_job_is_held_as_well() {
    let said = found(&backing_off(2), &[place(1, "w"), defer(2, BACKOFF)], &[]);
    assert_only(&said, "job 2 is neither placed nor held");
}

#[test]
fn a_job_is_deferred_to_the_future() {
    let actions = [place(1, "w"), defer(2, Millis(0))];
    let said = found(&backing_off(2), &actions, &[hold(2, Reason::WorkersFull)]);
    assert_only(&said, "job 2 is deferred to the past, 1000000000 ms");
}

#[test]
fn a_job_is_deferred_for_as_long_as_its_policy_says() {
    let holds = [hold(2, Reason::WorkersFull)];
    let actions = [place(1, "w"), defer(2, Millis(5_001))];
    let said = found(&backing_off(2), &actions, &holds);
    assert_only(&said, "job 2 is deferred to 1000005001 ms, which its policy does not do");

    let actions = [place(1, "w"), defer(2, BACKOFF)];
    assert_sound(&found(&backing_off(2), &actions, &holds));
    let said = found(&room_and_jobs(1, 2), &actions, &holds);
    assert_only(&said, "job 2 is deferred to 1000005000 ms, which its policy does not do");
}

#[test]
fn a_victim_is_told_once() {
    let mut before = room_and_jobs(1, 1);
    before.attempts = vec![attempt(9, "b", "w")];
    let actions = [preempt(9, "w", 1), preempt(9, "w", 1)];
    let said = found(&before, &actions, &[hold(1, Reason::Preempting)]);
    assert_says(&said, "job 9 is told to stop more than once");
}

#[test]
fn a_victim_is_not_placed() {
    let mut before = room_and_jobs(1, 1);
    before.attempts = vec![attempt(9, "b", "w")];
    let actions = [preempt(9, "w", 1), place(9, "w")];
    let said = found(&before, &actions, &[hold(1, Reason::Preempting)]);
    assert_says(&said, "job 9 is told to stop and placed");
}

#[test]
fn a_preemptor_is_held_as_preempting() {
    let mut before = room_and_jobs(1, 1);
    before.attempts = vec![attempt(9, "b", "w")];
    let said = found(&before, &[preempt(9, "w", 1)], &[hold(1, Reason::WorkersFull)]);
    assert_says(&said, "job 1 makes others stop but is held otherwise");
    let said = found(&before, &[preempt(9, "w", 1), place(1, "w")], &[]);
    assert_says(&said, "job 1 makes others stop but is held otherwise");
}

#[test]
fn a_score_is_the_sum_of_its_points() {
    let points = vec![Points { rule: Rule::Age, points: Fixed::ONE }];
    let placement = Placement { score: Fixed::whole(2), points, ..placement(1, "w") };
    let said = found(&room_and_jobs(1, 1), &[Action::Place(placement)], &[]);
    assert_only(&said, "job 1 has a score of 2, but its points add up to 1");
}
