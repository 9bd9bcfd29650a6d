//! The guard of `balanced`: the last free slot for rare work is kept for a while.

use model::{Decision, Millis, Preset, Reason};

use crate::world::{World, decided, detail, jobs_placed, place_of, reason};

/// Sixteen slots, of which one can run rare work. All others are taken. Rare work is expected: one
/// job of it became ready a minute ago and is put off by its submitter. Job 1 is of common work.
fn scene(world: &mut World, age_ms: i64) {
    world.worker("full").slots(15).types(&["common"]);
    world.attempt("9", "full").kind("common").slots(15);
    world.worker("special").types(&["common", "rare"]);
    world.job("expected").kind("rare").age_s(60).not_before_ms(60_000);
    world.job("1").kind("common").age_ms(age_ms);
}

fn guarded(age_ms: i64, change: impl FnOnce(&mut World)) -> Decision {
    decided(Preset::Balanced, |world| {
        scene(world, age_ms);
        change(world);
    })
}

#[test]
fn the_last_slot_for_rare_work_is_kept_from_a_young_job() {
    let decision = guarded(5_000, |_| ());
    assert_eq!(jobs_placed(&decision), [""; 0]);
    assert_eq!(reason(&decision, "1"), Some(Reason::Guarded));
}

#[test]
fn a_job_takes_the_slot_once_it_is_ten_seconds_old() {
    assert_eq!(reason(&guarded(9_999, |_| ()), "1"), Some(Reason::Guarded));
    assert_eq!(place_of(&guarded(10_000, |_| ()), "1"), "special");
}

#[test]
fn the_guard_ends_when_the_policy_says() {
    let decision = guarded(5_000, |world| {
        world.policy().guard.as_mut().unwrap().hold_max = Millis::from_secs(4);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn the_detail_tells_when_the_guard_ends() {
    let decision = guarded(4_000, |_| ());
    assert!(detail(&decision, "1").contains("6 s"), "{}", detail(&decision, "1"));
}

#[test]
fn rare_work_itself_takes_the_slot_at_once() {
    let decision = guarded(5_000, |world| world.job("2").kind("rare").done());
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn nothing_is_kept_while_another_slot_for_rare_work_is_free() {
    let decision = guarded(5_000, |world| {
        world.worker("also").types(&["common", "rare"]);
        world.worker("more").slots(16).types(&["common"]);
        world.attempt("8", "more").kind("common").slots(16);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_job_goes_to_a_slot_that_is_not_kept() {
    let decision = guarded(5_000, |world| world.worker("spare").types(&["common", "zip"]).done());
    assert_eq!(place_of(&decision, "1"), "spare");
}

#[test]
fn work_that_more_than_one_in_sixteen_slots_can_run_is_not_rare() {
    let decision = guarded(5_000, |world| {
        world.snapshot.workers[0].slots = 14;
        world.snapshot.attempts[0].slots = 14;
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn nothing_is_kept_for_rare_work_that_nobody_submits() {
    let decision = guarded(5_000, |world| drop(world.snapshot.jobs.remove(0)));
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn without_a_guard_nothing_is_kept() {
    let decision = guarded(5_000, |world| world.policy().guard = None);
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn other_presets_keep_nothing() {
    for preset in Preset::ALL {
        if preset != Preset::Balanced {
            let decision = decided(preset, |world| {
                scene(world, 5_000);
                world.snapshot.jobs[1].rescore_count = 4;
            });
            assert_eq!(jobs_placed(&decision), ["1"], "{preset:?}");
        }
    }
}
