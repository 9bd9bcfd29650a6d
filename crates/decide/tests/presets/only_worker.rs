//! Wide jobs in `balanced` that only one worker could run: their patience, and what is firm then.

use model::{Decision, Preset, Reason};

use crate::specs::JobSpec;
use crate::world::{World, decided, jobs_placed, reason};

/// What runs takes 1,000 s, so one who takes the whole worker is patient for 250 s and half of
/// 2,250 s.
const PATIENCE_S: i64 = 250 + 1_125;

/// Worker `w` has four slots, and two of them free in 900 s, or in 1,900 s at the latest. Job
/// `wide` wants all and has waited for so long.
fn scene(world: &mut World, waited_s: i64) {
    world.worker("w").slots(4);
    world.attempt("9", "w").slots(2).started_s_ago(100).estimate_s(1_000).limit_s(2_000);
    world.job("wide").slots(4).estimate_s(2_000).age_s(waited_s);
}

/// What happens to job 1, which wants one slot.
fn narrow(waited_s: i64, describe: impl FnOnce(JobSpec<'_>)) -> Decision {
    decided(Preset::Balanced, |world| {
        scene(world, waited_s);
        describe(world.job("1"));
    })
}

#[test]
fn patience_goes_by_the_length_of_what_runs() {
    let patient = narrow(PATIENCE_S - 1, |job| job.estimate_s(3_000).priority(10).done());
    assert_eq!(jobs_placed(&patient), ["1"]);
    let impatient = narrow(PATIENCE_S + 1, |job| job.estimate_s(3_000).priority(10).done());
    assert_eq!(reason(&impatient, "1"), Some(Reason::Reserved));
}

#[test]
fn how_many_wait_does_not_lengthen_it() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world, PATIENCE_S + 1);
        for id in 101..=140 {
            world.job(&id.to_string()).estimate_s(600).limit_s(3_000);
        }
    });
    assert_eq!(jobs_placed(&decision), [""; 0]);
}

#[test]
fn a_flood_does() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world, PATIENCE_S + 1);
        // All of them take the fleet more than ten times 1,000 s.
        for id in 101..=128 {
            world.job(&id.to_string()).estimate_s(1_500).limit_s(3_000);
        }
    });
    assert_eq!(jobs_placed(&decision), ["101", "102"]);
}

#[test]
fn it_is_not_lost_where_another_worker_could_run_the_job() {
    let decision = decided(Preset::Balanced, |world| {
        scene(world, PATIENCE_S + 1);
        world.worker("x").slots(4);
        world.attempt("8", "x").slots(4).estimate_s(1_000);
        for id in 101..=108 {
            world.job(&id.to_string()).estimate_s(1_900);
        }
    });
    assert_eq!(jobs_placed(&decision), ["101", "102"]);
}

#[test]
fn once_it_is_lost_only_limits_are_counted_on() {
    let borrows =
        |limit_s: i64| narrow(PATIENCE_S + 1, |job| job.estimate_s(60).limit_s(limit_s).done());
    assert_eq!(jobs_placed(&borrows(1_900)), ["1"]);
    assert_eq!(reason(&borrows(1_901), "1"), Some(Reason::Reserved));
    // Without a limit a prediction has to do.
    assert_eq!(jobs_placed(&narrow(PATIENCE_S + 1, |job| job.estimate_s(1_900).done())), ["1"]);
}

#[test]
fn what_runs_on_leaves_room_for_the_widest_who_has_lost_patience() {
    let beside = |wider_waited_s: i64| {
        decided(Preset::Balanced, |world| {
            world.worker("w").slots(10);
            world.attempt("9", "w").slots(5).started_s_ago(100).estimate_s(1_000);
            world.job("wide").slots(6).estimate_s(900).age_s(9_000);
            world.job("wider").slots(9).estimate_s(900).age_s(wider_waited_s);
            world.job("1").slots(2).estimate_s(5_000).priority(10);
        })
    };
    assert_eq!(jobs_placed(&beside(0)), ["1"]);
    assert_eq!(reason(&beside(8_000), "1"), Some(Reason::Reserved));
}
