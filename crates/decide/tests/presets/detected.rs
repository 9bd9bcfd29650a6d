//! `detected`: job types in the order of their names, each with its limits; most free slots.

use model::{Decision, Preset, Reason};

use crate::world::{World, decided, jobs_placed, pairs, place_of, placed, reason};

const PRESET: Preset = Preset::Detected;

#[test]
fn types_go_in_alphabetical_order_whatever_their_age_or_priority() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.job("1").kind("volume_balance").priority(9).age_s(900);
        world.job("2").kind("vacuum").age_s(90);
        world.job("3").kind("admin_script");
        world.job("4").kind("erasure_coding").on_demand();
        world.job("5").kind("admin_script");
    });
    assert_eq!(jobs_placed(&decision), ["3", "5", "4", "2", "1"]);
}

#[test]
fn an_early_type_takes_the_only_slot() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").kind("vacuum").age_s(900);
        world.job("2").kind("balance");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn within_a_type_jobs_go_as_they_were_proposed() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.job("1").kind("vacuum").age_s(1).priority(9);
        world.job("2").kind("vacuum").age_s(3).priority(-9);
        world.job("3").kind("vacuum").age_s(2).on_demand();
        world.job("4").kind("vacuum").age_s(2);
    });
    assert_eq!(jobs_placed(&decision), ["2", "3", "4", "1"]);
}

#[test]
fn a_type_runs_at_most_its_maximum_of_jobs() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9);
        world.job_type("vacuum").jobs_max(3);
        world.attempt("9", "w").kind("vacuum");
        for job in ["1", "2", "3"] {
            world.job(job).kind("vacuum");
        }
        world.job("4").kind("zip");
    });
    assert_eq!(jobs_placed(&decision), ["1", "2", "4"]);
    assert_eq!(reason(&decision, "3"), Some(Reason::TypeAtMax));
}

#[test]
fn a_type_runs_at_most_its_maximum_on_one_worker() {
    let decision = decided(PRESET, |world| {
        world.worker("a").slots(9);
        world.worker("b").slots(5);
        world.job_type("vacuum").worker_max(2);
        world.attempt("9", "a").kind("vacuum");
        for job in ["1", "2", "3", "4"] {
            world.job(job).kind("vacuum");
        }
    });
    assert_eq!(placed(&decision), pairs([("1", "a"), ("2", "b"), ("3", "b")]));
    assert_eq!(reason(&decision, "4"), Some(Reason::TypeAtMax));
}

#[test]
fn a_worker_may_declare_a_lower_maximum_of_a_type_itself() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9).type_max("vacuum", 1);
        world.job_type("vacuum").worker_max(4);
        world.job("1").kind("vacuum");
        world.job("2").kind("vacuum");
        world.job("3").kind("zip");
        world.job("4").kind("zip");
    });
    assert_eq!(jobs_placed(&decision), ["1", "3", "4"]);
    assert_eq!(reason(&decision, "2"), Some(Reason::TypeAtMax));
}

#[test]
fn the_lower_of_both_maxima_counts() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(9).type_max("vacuum", 4);
        world.job_type("vacuum").worker_max(1);
        world.job("1").kind("vacuum");
        world.job("2").kind("vacuum");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(reason(&decision, "2"), Some(Reason::TypeAtMax));
}

#[test]
fn limits_of_a_type_hold_in_every_preset() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w").slots(9);
            world.job_type("vacuum").jobs_max(1);
            world.job("1").kind("vacuum").age_s(1).rescored(4);
            world.job("2").kind("vacuum").rescored(4);
        });
        assert_eq!(jobs_placed(&decision), ["1"], "{preset:?}");
        assert_eq!(reason(&decision, "2"), Some(Reason::TypeAtMax), "{preset:?}");
    }
}

#[test]
fn a_type_without_limits_of_its_own_has_none() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(20);
        for job in 0..20 {
            world.job(&format!("{job}")).kind("vacuum");
        }
    });
    assert_eq!(jobs_placed(&decision).len(), 20);
}

#[test]
fn the_worker_with_most_free_slots_gets_the_job() {
    let decision = decided(PRESET, |world| {
        world.worker("a").slots(9);
        world.attempt("9", "a").slots(7);
        world.worker("b").slots(3);
        world.worker("c").slots(9).slots_free(1);
        world.job("1").kind("vacuum");
    });
    assert_eq!(place_of(&decision, "1"), "b");
}

/// Three workers with so many slots each, and jobs of a type whose ties were broken so often.
fn rotated(rotation: u64, slots: u32, n_jobs: u32) -> Decision {
    decided(PRESET, |world: &mut World| {
        for id in ["a", "b", "c"] {
            world.worker(id).slots(slots);
        }
        world.job_type("vacuum").rotation(rotation);
        (0..n_jobs).for_each(|id| world.job(&format!("{id}")).kind("vacuum").done());
    })
}

#[test]
fn ties_rotate_over_the_workers_by_id() {
    let first = |rotation| place_of(&rotated(rotation, 2, 1), "0");
    let places: Vec<String> = (0..7).map(first).collect();
    assert_eq!(places, ["a", "b", "c", "a", "b", "c", "a"]);
}

#[test]
fn a_rotation_of_a_long_life_still_works() {
    assert_eq!(place_of(&rotated(u64::MAX, 1, 1), "0"), "a");
}

#[test]
fn a_worker_that_took_one_has_fewer_free_slots_for_the_next() {
    let decision = rotated(0, 2, 3);
    let mut places = placed(&decision).into_iter().map(|(_, worker)| worker).collect::<Vec<_>>();
    places.sort();
    assert_eq!(places, ["a", "b", "c"]);
}

#[test]
fn only_the_tied_workers_take_part_in_the_rotation() {
    let decision = decided(PRESET, |world| {
        world.worker("a").slots(1);
        world.worker("b").slots(2);
        world.worker("c").slots(2);
        world.job_type("vacuum").rotation(1);
        world.job("1").kind("vacuum");
    });
    assert_eq!(place_of(&decision, "1"), "c");
}

#[test]
fn each_type_rotates_by_itself() {
    let decision = decided(PRESET, |world| {
        for id in ["a", "b", "c", "d"] {
            world.worker(id).slots(1);
        }
        world.job_type("balance").rotation(2);
        world.job_type("vacuum").rotation(0);
        world.job("1").kind("balance");
        world.job("2").kind("vacuum");
    });
    assert_eq!(placed(&decision), pairs([("1", "c"), ("2", "a")]));
}

#[test]
fn a_tie_that_was_broken_in_this_round_moves_the_rotation_on() {
    let decision = decided(PRESET, |world| {
        for id in ["a", "b"] {
            world.worker(id).slots(2);
        }
        for job in ["1", "2", "3", "4"] {
            world.job(job).kind("vacuum");
        }
    });
    assert_eq!(place_of(&decision, "1"), "a");
    assert_eq!(place_of(&decision, "2"), "b");
    assert_eq!(place_of(&decision, "3"), "b");
    assert_eq!(place_of(&decision, "4"), "a");
}
