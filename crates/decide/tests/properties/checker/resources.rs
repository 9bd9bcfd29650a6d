//! What one job holds, no other does.

use model::{Ask, JobId, Name, Reason, Snapshot};

use super::stage::{
    assert_only, assert_sound, attempt, found, hold, place, place_with, resource, room_and_jobs,
};

/// Two jobs with room for both and a resource of tenant `a`, which job 1 asks for by name.
fn two_jobs_and_a_checkout() -> Snapshot {
    let mut before = room_and_jobs(9, 2);
    before.resources = vec![resource("checkout", "a"), resource("other", "b")];
    before.jobs[0].resource = Some(Ask::Named(Name::new("checkout")));
    before
}

#[test]
fn a_resource_that_is_held_is_not_given() {
    let mut before = two_jobs_and_a_checkout();
    before.resources[0].holder = Some(JobId::number(9));
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "job 1 is placed with resource checkout, which is held by job 9");
}

#[test]
fn a_resource_that_an_attempt_holds_is_not_given() {
    let mut before = two_jobs_and_a_checkout();
    before.attempts = vec![attempt(9, "a", "w")];
    before.attempts[0].holds = Some(Ask::Named(Name::new("checkout")));
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "job 1 is placed with resource checkout, which is held by an attempt");
}

#[test]
fn a_resource_has_one_new_holder() {
    let mut before = two_jobs_and_a_checkout();
    before.jobs[1].resource = Some(Ask::Any);
    let said = found(&before, &[place(1, "w"), place_with(2, "w", "checkout")], &[]);
    let twice = said.iter().filter(|one| one.to_string().contains("is given to another")).count();
    assert_eq!((said.len(), twice), (2, 2), "{said:?}");
}

#[test]
fn a_resource_of_another_tenant_is_not_given() {
    let mut before = two_jobs_and_a_checkout();
    before.jobs[0].resource = Some(Ask::Named(Name::new("other")));
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "job 1 is placed with resource other, which does not belong to its tenant");

    before.jobs[0].resource = Some(Ask::Any);
    let said = found(&before, &[place_with(1, "w", "other"), place(2, "w")], &[]);
    assert_only(&said, "job 1 is placed with resource other, which does not belong to its tenant");
}

#[test]
fn a_resource_that_nobody_asked_for_is_not_given() {
    let mut before = two_jobs_and_a_checkout();
    let said = found(&before, &[place(1, "w"), place_with(2, "w", "other")], &[]);
    assert_only(&said, "job 2 is placed with resource other, which it did not ask for");
    let said = found(&before, &[place_with(1, "w", "other"), place(2, "w")], &[]);
    assert_only(&said, "job 1 is placed with resource other, which it did not ask for");

    before.jobs[1].resource = Some(Ask::Any);
    let said = found(&before, &[place(1, "w"), place_with(2, "w", "nowhere")], &[]);
    assert_only(
        &said,
        "job 2 is placed with resource nowhere, which does not belong to its tenant",
    );

    before.jobs[1].resource = None;
    assert_sound(&found(&before, &[place_with(1, "w", "checkout"), place(2, "w")], &[]));
}

#[test]
fn who_takes_no_workspace_may_start_without_one() {
    let mut before = two_jobs_and_a_checkout();
    before.attempts = vec![attempt(9, "a", "w")];
    before.attempts[0].holds = Some(Ask::Any);
    before.jobs[0].resource = Some(Ask::Any);
    assert_sound(&found(&before, &[place_with(1, "w", "checkout"), place(2, "w")], &[]));
}

#[test]
fn who_asks_for_any_does_not_wait_while_one_is_free() {
    let mut before = two_jobs_and_a_checkout();
    before.jobs[0].resource = Some(Ask::Any);
    let said = found(&before, &[place(2, "w")], &[hold(1, Reason::ResourceHeld)]);
    assert_only(&said, "job 1 is held as resource-held, but the first reason is outranked");
    before.resources[0].holder = Some(JobId::number(9));
    assert_sound(&found(&before, &[place(2, "w")], &[hold(1, Reason::ResourceHeld)]));
}

#[test]
fn no_more_workspaces_are_taken_than_there_are() {
    let mut before = room_and_jobs(9, 2);
    before.tenants[0].workspaces = Some(2);
    before.attempts = vec![attempt(9, "a", "w")];
    before.attempts[0].holds = Some(Ask::Any);
    for job in &mut before.jobs {
        job.resource = Some(Ask::Any);
    }
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "workspaces of tenant a would be 3, at most 2");

    before.tenants[0].workspaces = None;
    let said = found(&before, &[place(1, "w"), place(2, "w")], &[]);
    assert_only(&said, "workspaces of tenant a would be 3, at most 0");
}
