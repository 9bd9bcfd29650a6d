//! The reservation of `balanced`: slots are kept for a wide job, and lent to short ones.

use model::{Decision, Millis, Preset, Reason};

use crate::specs::JobSpec;
use crate::world::{NOW, World, decided, detail, jobs_placed, place_of, reason};

/// Worker `w` has two slots; one of them frees in a minute. Job `wide` comes first and wants both.
fn scene(world: &mut World) {
    world.worker("w").slots(2);
    world.attempt("9", "w").started_s_ago(40).estimate_s(100);
    world.job("wide").slots(2).priority(9).age_s(30);
}

/// What happens to job 1, which wants one slot.
fn narrow(describe: impl FnOnce(JobSpec<'_>)) -> Decision {
    decided(Preset::Balanced, |world| {
        scene(world);
        describe(world.job("1"));
    })
}

#[test]
fn a_free_slot_is_kept_for_the_wide_job_that_came_first() {
    let decision = narrow(|job| job.estimate_s(120).done());
    assert_eq!(jobs_placed(&decision), [""; 0]);
    assert_eq!(reason(&decision, "1"), Some(Reason::Reserved));
    assert_eq!(reason(&decision, "wide"), Some(Reason::WorkersFull));
}

#[test]
fn a_job_of_unknown_length_does_not_borrow_the_slot() {
    assert_eq!(reason(&narrow(|_| ()), "1"), Some(Reason::Reserved));
}

#[test]
fn a_job_that_is_done_in_time_borrows_the_slot() {
    assert_eq!(jobs_placed(&narrow(|job| job.estimate_s(30).done())), ["1"]);
    assert_eq!(jobs_placed(&narrow(|job| job.estimate_s(59).done())), ["1"]);
    assert_eq!(reason(&narrow(|job| job.estimate_s(61).done()), "1"), Some(Reason::Reserved));
}

#[test]
fn a_job_that_goes_before_the_wide_one_takes_the_slot() {
    assert_eq!(jobs_placed(&narrow(|job| job.priority(12).age_s(60).done())), ["1"]);
}

#[test]
fn a_job_goes_to_a_worker_that_is_not_kept() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world);
        world.worker("x");
        world.job("1");
    });
    assert_eq!(place_of(&decision, "1"), "x");
}

#[test]
fn a_job_takes_what_the_wide_one_leaves_and_no_more() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w").slots(4);
        world.attempt("9", "w").slots(2).started_s_ago(40).estimate_s(100);
        world.job("wide").slots(3).priority(9).age_s(30);
        world.job("1");
        world.job("2");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(reason(&decision, "2"), Some(Reason::Reserved));
}

#[test]
fn the_detail_names_the_wide_job_and_when_it_starts() {
    let decision = narrow(|_| ());
    let detail = detail(&decision, "1");
    assert!(detail.contains("wide") && detail.contains("60 s"), "{detail}");
}

#[test]
fn nothing_is_kept_for_a_job_that_no_worker_can_ever_run() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w").slots(2);
        world.job("wide").slots(3).priority(9).age_s(30);
        world.job("1");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn nothing_is_kept_for_a_job_that_its_limits_hold_back() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world);
        world.tenant("paused").paused();
        world.snapshot.jobs[0].tenant = model::TenantId::new("paused");
        world.job("1");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn nothing_is_kept_if_the_policy_says_so_or_in_other_presets() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            scene(world);
            world.policy().reserve = false;
            world.job("1").rescored(4);
        });
        assert_eq!(jobs_placed(&decision), ["1"], "{preset:?}");
        assert_eq!(preset.policy().reserve, preset == Preset::Balanced);
    }
}

/// What happens to job 1 beside an attempt of this length, as predicted, that started so long ago.
fn beside(
    estimate_s: Option<i64>,
    started_s_ago: i64,
    change: impl FnOnce(&mut World),
) -> Decision {
    decided(Preset::Balanced, |world| {
        scene(world);
        let attempt = &mut world.snapshot.attempts[0];
        attempt.started = NOW - Millis::from_secs(started_s_ago);
        attempt.estimate = estimate_s.map(Millis::from_secs);
        change(world);
        world.job("1");
    })
}

#[test]
fn an_attempt_of_unknown_length_is_waited_for_until_it_has_run_for_an_hour() {
    assert_eq!(reason(&beside(None, 3_599, |_| ()), "1"), Some(Reason::Reserved));
    assert_eq!(jobs_placed(&beside(None, 3_600, |_| ())), ["1"]);
}

#[test]
fn an_attempt_of_unknown_length_is_waited_for_until_it_has_run_twice_as_long_as_usual() {
    let after = |ran_s: i64| {
        beside(None, ran_s, |world| world.snapshot.usual = Some(Millis::from_secs(100)))
    };
    assert_eq!(reason(&after(199), "1"), Some(Reason::Reserved));
    assert_eq!(jobs_placed(&after(200)), ["1"]);
}

#[test]
fn an_attempt_that_outruns_its_prediction_is_expected_to_take_twice_as_long() {
    let beside_late = |ran_s: i64, length_s: i64| {
        let short = move |world: &mut World| world.job("2").estimate_s(length_s).done();
        jobs_placed(&beside(Some(100), ran_s, short))
    };
    assert_eq!(beside_late(101, 99), ["2"]);
    assert!(beside_late(101, 100).is_empty());
    assert_eq!(beside_late(201, 199), ["2"]);
    assert!(beside_late(201, 200).is_empty());
    // A job of unknown length counts half an hour there.
    assert_eq!(reason(&beside(Some(100), 1_601, |_| ()), "1"), Some(Reason::Reserved));
    assert_eq!(jobs_placed(&beside(Some(100), 3_201, |_| ())), ["1"]);
}

#[test]
fn how_long_to_wait_can_be_set() {
    let wait_s = |seconds: i64| {
        move |world: &mut World| world.policy().reserve_wait_max = Millis::from_secs(seconds)
    };
    assert_eq!(jobs_placed(&beside(None, 60, wait_s(60))), ["1"]);
    assert_eq!(reason(&beside(None, 60, wait_s(61)), "1"), Some(Reason::Reserved));
    // One that is on time is waited for, whatever is set.
    assert_eq!(reason(&beside(Some(100), 60, wait_s(0)), "1"), Some(Reason::Reserved));
}

#[test]
fn a_wide_job_waits_for_what_ends_beside_an_attempt_that_does_not() {
    let decision = decided(Preset::Balanced, |world| {
        world.worker("w").slots(3);
        world.attempt("stuck", "w").started_s_ago(9_999);
        world.attempt("9", "w").started_s_ago(40).estimate_s(100);
        world.job("wide").slots(2).priority(9).age_s(30);
        world.job("1");
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::Reserved));
}

#[test]
fn nobody_borrows_a_slot_once_the_wide_job_is_due_at_any_moment() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world);
        let attempt = &mut world.snapshot.attempts[0];
        attempt.estimate = Some(NOW.since(attempt.started));
        world.snapshot.jobs[0].ready = NOW - Millis::from_secs(100_000);
        world.job("1").estimate_s(0);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::Reserved));
}

#[test]
fn one_worker_is_kept_for_a_wide_job_and_no_more() {
    let decision = decided(Preset::Balanced, |world| {
        // Room that was made for job `owed`, which then goes to worker `x`.
        world.worker("w0").slots(2);
        world.attempt("8", "w0").stopping_for("owed");
        world.worker("x").slots(2).types(&["special"]);
        world.job("owed").slots(2).kind("special");
        world.worker("w1").slots(2);
        world.attempt("9", "w1").started_s_ago(40).estimate_s(100);
        world.job("wide").kind("common").slots(2).priority(9).age_s(30);
        world.job("1").kind("common").priority(5);
    });
    assert_eq!(place_of(&decision, "owed"), "x");
    assert_eq!(place_of(&decision, "1"), "w0");
}
