//! Sampling of workers: −10 × rank + 5 × hint + 1 × free, then any that matches.

use std::collections::BTreeSet;

use model::policy::{Rule, Sampling, Seat};
use model::{Decision, Fixed, Preset};

use crate::world::{World, decided, decided_with_seed, pairs, place_of, placed, points, score};

/// `priority-age` with a sample of so many workers, and job 1 that wants `h`.
fn sampled(sample_size: u32, describe: impl FnOnce(&mut World)) -> Decision {
    decided(Preset::PriorityAge, |world| {
        world.policy().seat = Seat::FirstMatch(Some(Sampling::new(sample_size)));
        world.job("1").hint("h");
        describe(world);
    })
}

#[test]
fn the_documented_weights_and_one_attempt_are_the_defaults() {
    let sampling = Sampling::new(50);
    assert_eq!(sampling.rank, Fixed::whole(-10));
    assert_eq!(sampling.hint, Fixed::whole(5));
    assert_eq!(sampling.free, Fixed::ONE);
    assert_eq!(sampling.max_attempts, 1);
    assert_eq!(Preset::PriorityAge.policy().seat, Seat::FirstMatch(None));
}

#[test]
fn a_lower_rank_is_preferred() {
    let decision = sampled(9, |world| {
        world.worker("a").rank(1);
        world.worker("b");
        world.worker("c").rank(2);
    });
    assert_eq!(placed(&decision), pairs([("1", "b")]));
}

#[test]
fn a_step_of_rank_outweighs_a_hint() {
    let decision = sampled(9, |world| {
        world.worker("a").rank(1).hints(&["h"]);
        world.worker("b");
    });
    assert_eq!(place_of(&decision, "1"), "b");
}

#[test]
fn a_hint_is_worth_five_free_slots() {
    let with = |slots| {
        let decision = sampled(9, |world| {
            world.worker("a").slots(slots);
            world.worker("b").hints(&["g", "h"]);
        });
        place_of(&decision, "1")
    };
    assert_eq!(with(5), "b");
    assert_eq!(with(6), "a");
    assert_eq!(with(7), "a");
}

#[test]
fn a_step_of_rank_is_worth_ten_free_slots() {
    let with = |slots| {
        let decision = sampled(9, |world| {
            world.worker("b").rank(1).slots(slots);
            world.worker("c");
        });
        place_of(&decision, "1")
    };
    assert_eq!(with(10), "c");
    assert_eq!(with(12), "b");
}

#[test]
fn free_slots_count_and_not_all_slots() {
    let decision = sampled(9, |world| {
        world.worker("a").slots(9);
        world.attempt("9", "a").slots(8);
        world.worker("b").slots(2);
    });
    assert_eq!(place_of(&decision, "1"), "b");
}

#[test]
fn each_part_of_the_score_is_told() {
    let decision = sampled(9, |world| {
        world.worker("a").rank(2).slots(3).hints(&["h"]);
    });
    assert_eq!(points(&decision, "1", Rule::Rank), "-20");
    assert_eq!(points(&decision, "1", Rule::Hint), "5");
    assert_eq!(points(&decision, "1", Rule::Free), "3");
    assert_eq!(score(&decision, "1"), "-12");
}

#[test]
fn a_job_without_a_hint_has_no_hit() {
    let decision = sampled(9, |world| {
        world.snapshot.jobs[0].hint = None;
        world.worker("a").hints(&["h"]);
    });
    assert_eq!(points(&decision, "1", Rule::Hint), "0");
}

#[test]
fn a_tie_goes_to_the_smaller_id() {
    let decision = sampled(9, |world| {
        world.worker("10");
        world.worker("9");
    });
    assert_eq!(place_of(&decision, "1"), "9");
}

#[test]
fn the_weights_can_be_set() {
    let decision = decided(Preset::PriorityAge, |world| {
        let sampling = Sampling { hint: Fixed::whole(11), ..Sampling::new(9) };
        world.policy().seat = Seat::FirstMatch(Some(sampling));
        world.job("1").hint("h");
        world.worker("a").rank(1).hints(&["h"]);
        world.worker("b");
    });
    assert_eq!(place_of(&decision, "1"), "a");
    assert_eq!(points(&decision, "1", Rule::Hint), "11");
}

#[test]
fn spread_follows_from_free_slots_within_a_round() {
    let decision = sampled(9, |world| {
        world.worker("a").slots(2);
        world.worker("b").slots(2);
        world.job("2");
    });
    assert_eq!(placed(&decision), pairs([("1", "a"), ("2", "b")]));
}

#[test]
fn a_sample_of_one_goes_anywhere_by_chance() {
    let places: BTreeSet<String> = (0..100)
        .map(|seed| {
            let decision = decided_with_seed(Preset::PriorityAge, seed, |world| {
                world.policy().seat = Seat::FirstMatch(Some(Sampling::new(1)));
                for id in ["a", "b", "c"] {
                    world.worker(id);
                }
                world.job("1");
            });
            place_of(&decision, "1")
        })
        .collect();
    assert_eq!(places.into_iter().collect::<Vec<_>>(), ["a", "b", "c"]);
}

#[test]
fn a_sample_of_two_of_three_never_takes_the_worst() {
    for seed in 0..100 {
        let decision = decided_with_seed(Preset::PriorityAge, seed, |world| {
            world.policy().seat = Seat::FirstMatch(Some(Sampling::new(2)));
            world.worker("a").rank(9);
            world.worker("b");
            world.worker("c").rank(1);
            world.job("1");
        });
        assert_ne!(place_of(&decision, "1"), "a", "seed {seed}");
    }
}

#[test]
fn one_worker_that_matches_is_found_in_a_fleet_however_small_the_sample() {
    for seed in 0..20 {
        let decision = decided_with_seed(Preset::PriorityAge, seed, |world| {
            world.policy().seat = Seat::FirstMatch(Some(Sampling::new(1)));
            for id in 0..50 {
                world.worker(&format!("{id}")).types(&["xls"]);
            }
            world.worker("51").types(&["pdf"]);
            world.worker("52").types(&["pdf"]).unhealthy();
            world.job("1").kind("pdf");
        });
        assert_eq!(place_of(&decision, "1"), "51", "seed {seed}");
    }
}

/// With this seed, samples of one of three draw the second, and then the third.
const SECOND_THEN_THIRD: u64 = 2;

/// Where job 1 goes if samples of one are drawn so often. Of workers a, b and c, b is full.
fn drawn(max_attempts: u32, describe: impl FnOnce(&mut World)) -> Decision {
    decided_with_seed(Preset::PriorityAge, SECOND_THEN_THIRD, |world| {
        let sampling = Sampling { max_attempts, ..Sampling::new(1) };
        world.policy().seat = Seat::FirstMatch(Some(sampling));
        for id in ["a", "b", "c"] {
            world.worker(id).slots(2);
        }
        world.attempt("9", "b").slots(2);
        world.job("1");
        describe(world);
    })
}

#[test]
fn after_a_sample_without_room_the_first_that_matches_is_taken() {
    let decision = drawn(1, |_| ());
    assert_eq!(place_of(&decision, "1"), "a");
    // It was not chosen by points, so it has none.
    assert_eq!(score(&decision, "1"), "0");
}

#[test]
fn another_attempt_draws_another_sample() {
    let decision = drawn(2, |_| ());
    assert_eq!(place_of(&decision, "1"), "c");
    assert_eq!(score(&decision, "1"), "2");
}

#[test]
fn workers_that_do_not_serve_or_do_not_match_are_not_drawn() {
    let decision = drawn(2, |world| {
        world.worker("0").unhealthy();
        world.worker("aa").draining();
        world.worker("bb").types(&["xls"]);
        world.snapshot.jobs[0].kind = Some(model::Name::new("pdf"));
    });
    assert_eq!(place_of(&decision, "1"), "c");
}

#[test]
fn a_fleet_with_one_free_worker_is_never_idle_however_samples_fall() {
    for seed in 0..50 {
        let decision = decided_with_seed(Preset::Cohort, seed, |world| {
            let sampling = Sampling { max_attempts: 3, ..Sampling::new(2) };
            world.policy().seat = Seat::FirstMatch(Some(sampling));
            for id in 1..100 {
                world.worker(&format!("{id}"));
                world.attempt(&format!("x{id}"), &format!("{id}"));
            }
            world.worker("100");
            world.job("1");
        });
        assert_eq!(place_of(&decision, "1"), "100", "seed {seed}");
    }
}
