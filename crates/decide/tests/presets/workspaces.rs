//! What one job at a time may hold: named, any of the tenant's, or so many without a name.

use model::{Decision, Name, Preset, Reason};

use crate::world::{World, decided, detail, jobs_placed, placement, reason};

/// A world with room for nine jobs.
fn with_room(describe: impl FnOnce(&mut World)) -> Decision {
    decided(Preset::FairShare, |world| {
        world.worker("w").slots(9);
        describe(world);
    })
}

fn given(decision: &Decision, job: &str) -> Option<Name> {
    placement(decision, job).and_then(|place| place.resource.clone())
}

#[test]
fn a_named_resource_that_is_free_is_given() {
    let decision = with_room(|world| {
        world.resource("repo");
        world.job("1").holding("repo");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_named_resource_that_is_held_keeps_the_job_waiting() {
    let decision = with_room(|world| {
        world.resource("repo").held_by("9");
        world.attempt("9", "w").holding("repo");
        world.job("1").holding("repo");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::ResourceHeld));
    let detail = detail(&decision, "1");
    assert!(detail.contains("repo") && detail.contains('9'), "{detail}");
}

#[test]
fn a_resource_that_a_job_outside_this_world_holds_is_held() {
    let decision = with_room(|world| {
        world.resource("repo").held_by("elsewhere");
        world.job("1").holding("repo");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::ResourceHeld));
}

#[test]
fn a_resource_is_given_once_in_a_round_in_every_preset() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w").slots(9);
            world.resource("repo");
            world.job("1").holding("repo").age_s(1).rescored(4);
            world.job("2").holding("repo").rescored(4);
            world.job("3").rescored(4);
        });
        let mut placed = jobs_placed(&decision);
        placed.sort();
        assert_eq!(placed, ["1", "3"], "{preset:?}");
        assert_eq!(reason(&decision, "2"), Some(Reason::ResourceHeld), "{preset:?}");
    }
}

#[test]
fn a_job_that_waits_for_a_resource_lets_others_of_its_tenant_go() {
    let decision = with_room(|world| {
        world.resource("repo").held_by("9");
        world.job("1").holding("repo").priority(9);
        world.job("2");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn any_resource_of_the_tenant_that_is_free_is_given_and_told() {
    let decision = with_room(|world| {
        world.resource("r1").tenant("a").held_by("9");
        world.resource("r2").tenant("a");
        world.job("1").tenant("a").holding_any();
    });
    assert_eq!(given(&decision, "1"), Some(Name::new("r2")));
}

#[test]
fn any_resource_is_the_smallest_free_one_and_each_is_given_once() {
    let decision = with_room(|world| {
        world.resource("r2").tenant("a");
        world.resource("r1").tenant("a");
        for job in ["1", "2", "3"] {
            world.job(job).tenant("a").holding_any();
        }
    });
    assert_eq!(given(&decision, "1"), Some(Name::new("r1")));
    assert_eq!(given(&decision, "2"), Some(Name::new("r2")));
    assert_eq!(reason(&decision, "3"), Some(Reason::ResourceHeld));
}

#[test]
fn any_resource_is_not_one_of_another_tenant() {
    let decision = with_room(|world| {
        world.resource("r1").tenant("a").held_by("9");
        world.resource("r2").tenant("b");
        world.job("1").tenant("a").holding_any();
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::ResourceHeld));
}

#[test]
fn workspaces_without_a_name_are_counted() {
    let decision = with_room(|world| {
        world.tenant("a").workspaces(2);
        world.attempt("9", "w").tenant("a").holding_any();
        world.job("1").tenant("a").holding_any();
        world.job("2").tenant("a").holding_any();
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(reason(&decision, "2"), Some(Reason::ResourceHeld));
}

#[test]
fn workspaces_are_held_by_those_who_ask_for_them_only() {
    let decision = with_room(|world| {
        world.tenant("a").workspaces(1);
        world.attempt("9", "w").tenant("a");
        world.job("1").tenant("a");
        world.job("2").tenant("a").holding_any();
    });
    assert_eq!(jobs_placed(&decision), ["1", "2"]);
}

#[test]
fn workspaces_of_one_tenant_are_not_anothers() {
    let decision = with_room(|world| {
        world.tenant("a").workspaces(1);
        world.tenant("b").workspaces(1);
        world.attempt("9", "w").tenant("a").holding_any();
        world.job("1").tenant("a").holding_any();
        world.job("2").tenant("b").holding_any();
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
    assert_eq!(reason(&decision, "1"), Some(Reason::ResourceHeld));
}

#[test]
fn a_tenant_with_no_workspace_left_leaves_the_worker_to_the_next() {
    let decision = decided(Preset::FairShare, |world| {
        world.worker("w");
        world.tenant("a").workspaces(0);
        world.tenant("b").completed(9).used(99);
        world.job("1").tenant("a").holding_any();
        world.job("2").tenant("b");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}
