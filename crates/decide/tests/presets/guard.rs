//! The guard of `balanced`: slots that can run rare work have a price.

use model::policy::RARE_SPAN;
use model::tenant::Peak;
use model::{Decision, JobType, Millis, Name, Preset, Reason, Recent, TenantId, Timestamp};

use crate::world::{NOW, World, decided, jobs_placed, place_of, reason};

/// Sixteen slots, of which one can run rare work. All others are taken. Rare work comes every
/// minute or so. Job 1 is of common work and would run for so long.
fn scene(world: &mut World, length_s: i64) {
    world.worker("full").slots(15).types(&["common"]);
    world.attempt("9", "full").kind("common").slots(15);
    world.worker("special").types(&["common", "rare"]);
    let since = Timestamp(NOW.0 - NOW.0 % RARE_SPAN.0);
    let recent = Some(Recent { since, amount: 10, before: 0 });
    world.snapshot.usual = Some(Millis::from_secs(60));
    world.snapshot.types.push(JobType { recent, ..JobType::new(Name::new("rare")) });
    world.job("1").kind("common").estimate_s(length_s);
    world.tenant("default").trusted();
}

fn guarded(length_s: i64, change: impl FnOnce(&mut World)) -> Decision {
    decided(Preset::Balanced, |world| {
        scene(world, length_s);
        change(world);
    })
}

#[test]
fn the_last_slot_for_rare_work_is_kept_from_a_long_job() {
    let decision = guarded(60, |_| ());
    assert_eq!(jobs_placed(&decision), [""; 0]);
    assert_eq!(reason(&decision, "1"), Some(Reason::Guarded));
}

#[test]
fn a_short_job_passes() {
    assert_eq!(place_of(&guarded(0, |_| ()), "1"), "special");
}

#[test]
fn a_job_of_unknown_length_counts_as_what_ended_lately() {
    let after = |usual_s: i64| {
        guarded(0, |world| {
            world.snapshot.jobs[0].estimate = None;
            world.snapshot.usual = Some(Millis::from_secs(usual_s));
        })
    };
    assert_eq!(reason(&after(300), "1"), Some(Reason::Guarded));
    assert_eq!(place_of(&after(1), "1"), "special");
}

#[test]
fn the_more_jobs_wait_the_longer_are_those_that_pass() {
    let decision = guarded(60, |world| {
        for id in 100..400 {
            world.job(&id.to_string()).kind("common").estimate_s(90);
        }
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_job_takes_the_slot_once_its_tenant_was_served_what_the_starvation_bound_says() {
    let after = |served_s: i64| {
        guarded(60, |world| {
            let tenant = &mut world.snapshot.tenants[0];
            // A minute's work waited at most; since a moment ago it was served so much more.
            tenant.account.served = served_s * 1_000;
            let marks = vec![(NOW - Millis(1), 0)];
            tenant.account.queue = Peak { now: 60_000, before: 0, since: 0, marks };
            world.snapshot.attempts[0].tenant = TenantId::new("other");
            world.snapshot.jobs[0].ready = NOW - Millis(1);
        })
    };
    assert_eq!(reason(&after(59), "1"), Some(Reason::Guarded));
    assert_eq!(place_of(&after(60), "1"), "special");
}

#[test]
fn rare_work_itself_takes_the_slot_at_once() {
    let decision = guarded(60, |world| world.job("2").kind("rare").done());
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn what_rare_work_cannot_take_is_for_others() {
    let decision = guarded(0, |world| {
        world.tenant("a").completed(1).trusted();
        world.tenant("paused").completed(1).paused();
        world.snapshot.jobs[0].tenant = TenantId::new("a");
        world.job("2").kind("rare").tenant("paused");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn while_another_slot_for_rare_work_is_free_the_price_is_lower() {
    let decision = guarded(60, |world| {
        world.worker("also").types(&["common", "rare"]);
        world.worker("more").slots(16).types(&["common"]);
        world.attempt("8", "more").kind("common").slots(16);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(jobs_placed(&guarded(60, |_| ())), [""; 0]);
}

#[test]
fn a_job_goes_to_a_slot_that_is_not_kept() {
    let decision = guarded(60, |world| world.worker("spare").types(&["common", "zip"]).done());
    assert_eq!(place_of(&decision, "1"), "spare");
}

#[test]
fn work_is_not_rare_if_as_many_slots_can_run_it() {
    let decision = guarded(600, |world| {
        world.snapshot.workers[0].types.push(Name::new("rare"));
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn nothing_is_kept_for_rare_work_that_nobody_submits() {
    let decision = guarded(60, |world| world.snapshot.types.clear());
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn without_a_guard_nothing_is_kept() {
    let decision = guarded(60, |world| world.policy().guard = false);
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn other_presets_keep_nothing() {
    for preset in Preset::ALL {
        if preset != Preset::Balanced {
            let decision = decided(preset, |world| {
                scene(world, 60);
                world.snapshot.jobs[0].rescore_count = 4;
            });
            assert_eq!(jobs_placed(&decision), ["1"], "{preset:?}");
        }
    }
}
