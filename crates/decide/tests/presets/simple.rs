//! `simple` and `resource-aware`: a worker asks, and gets the job with the highest sum of rules.

use model::policy::Rule;
use model::{Fixed, Metrics, Preset, Reason, Trait};

use crate::world::{World, decided, jobs_placed, pairs, placed, placement, points, reason, score};

const PRESET: Preset = Preset::Simple;

#[test]
fn simple_has_the_seven_documented_rules() {
    let names: Vec<&str> = PRESET.policy().rules.keys().map(|rule| rule.name()).collect();
    assert_eq!(
        names,
        [
            "missing-paths",
            "missing-bytes",
            "dependents",
            "wait",
            "rescore-wait",
            "light",
            "reserve-fetch"
        ]
    );
}

#[test]
fn resource_aware_adds_the_five_documented_rules() {
    let mut names: Vec<&str> =
        Preset::ResourceAware.policy().rules.keys().map(|rule| rule.name()).collect();
    names.retain(|name| !PRESET.policy().rules.keys().any(|rule| rule.name() == *name));
    assert_eq!(names, ["resource-fit", "saturation", "prefer-local", "network", "disk"]);
}

#[test]
fn the_score_is_the_sum_of_the_points() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").age_s(7).dependents(5).missing_paths("w", 10).missing_bytes("w", 0);
    });
    assert_eq!(score(&decision, "1"), "719.5");
    let place = placement(&decision, "1").unwrap();
    assert_eq!(place.score, place.points.iter().map(|said| said.points).sum());
}

#[test]
fn a_saturated_worker_matters_to_resource_aware_only() {
    let scene = |world: &mut World| {
        let busy = Metrics { cpu_pct: Some(Fixed::whole(99)), ..Metrics::default() };
        world.worker("w").metrics(busy);
        world.job("1").rescored(4);
    };
    assert_eq!(jobs_placed(&decided(PRESET, scene)), ["1"]);
    let decision = decided(Preset::ResourceAware, scene);
    assert_eq!(reason(&decision, "1"), Some(Reason::BelowZero));
}

#[test]
fn the_highest_sum_for_the_asking_worker_goes_first() {
    let decision = decided(PRESET, |world| {
        world.worker("a");
        world.worker("b");
        for (job, here, there) in [("1", "a", "b"), ("2", "b", "a")] {
            world.job(job).missing_bytes(here, 1 << 40).missing_bytes(there, 0);
        }
    });
    assert_eq!(placed(&decision), pairs([("2", "a"), ("1", "b")]));
}

#[test]
fn priority_is_no_rule_here() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").rescored(4);
        world.job("2").priority(9).rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn workers_ask_by_rank_then_id() {
    let decision = decided(PRESET, |world| {
        world.worker("a").rank(1);
        world.worker("c");
        world.worker("b");
        world.job("1").age_s(9).rescored(4);
        world.job("2").age_s(8).rescored(4);
    });
    assert_eq!(placed(&decision), pairs([("1", "b"), ("2", "c")]));
}

#[test]
fn workers_take_one_job_each_and_sweep_until_nothing_places() {
    let decision = decided(PRESET, |world| {
        world.worker("a").slots(3);
        world.worker("b").slots(1);
        world.worker("c").slots(2);
        for job in ["1", "2", "3", "4", "5", "6", "7"] {
            world.job(job).rescored(4);
        }
    });
    let seats = [("1", "a"), ("2", "b"), ("3", "c"), ("4", "a"), ("5", "c"), ("6", "a")];
    assert_eq!(placed(&decision), pairs(seats));
    assert_eq!(reason(&decision, "7"), Some(Reason::WorkersFull));
}

#[test]
fn a_vetoed_best_candidate_does_not_idle_the_worker() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").age_s(4_000).dependents(20);
        world.job("2").rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
    assert_eq!(reason(&decision, "1"), Some(Reason::WorkersFull));
}

#[test]
fn many_vetoed_candidates_do_not_idle_the_worker() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        for job in 0..200 {
            world.job(&format!("{job}")).age_s(4_000);
        }
        world.job("last").rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["last"]);
    assert_eq!(reason(&decision, "0"), Some(Reason::Vetoed));
}

/// A busy fetch worker, and a cached evaluation of a certain age.
fn cached_evaluation(world: &mut World, age_s: i64) {
    world.worker("w").offers("feature", &["fetch"]).types(&["mine"]);
    world.worker("busy").types(&["other"]);
    world.attempt("9", "busy").kind("other");
    world.job("1").kind("mine").age_s(age_s).is(Trait::Evaluation).is(Trait::Cached);
}

#[test]
fn a_total_below_zero_is_not_dispatched() {
    let decision = decided(PRESET, |world| cached_evaluation(world, 149));
    assert_eq!(placed(&decision), []);
    assert_eq!(reason(&decision, "1"), Some(Reason::BelowZero));
}

#[test]
fn a_total_of_zero_is_dispatched() {
    let decision = decided(PRESET, |world| cached_evaluation(world, 150));
    assert_eq!(score(&decision, "1"), "0");
}

#[test]
fn a_candidate_below_zero_does_not_idle_the_worker() {
    let decision = decided(Preset::ResourceAware, |world| {
        let busy = Metrics { cpu_pct: Some(Fixed::whole(99)), ..Metrics::default() };
        world.worker("w").slots(3).metrics(busy);
        world.job("1").age_s(500).rescored(4);
        world.job("2").is(Trait::Evaluation);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
    assert_eq!(reason(&decision, "1"), Some(Reason::BelowZero));
}

#[test]
fn a_job_that_is_refused_here_goes_to_a_worker_that_suits_it() {
    let decision = decided(Preset::ResourceAware, |world| {
        let busy = Metrics { cpu_pct: Some(Fixed::whole(99)), ..Metrics::default() };
        world.worker("a").metrics(busy);
        world.worker("b");
        world.job("1").rescored(4);
    });
    assert_eq!(placed(&decision), pairs([("1", "b")]));
}

#[test]
fn waiting_overcomes_a_penalty_in_the_end() {
    let decision = decided(Preset::ResourceAware, |world| {
        let busy = Metrics { cpu_pct: Some(Fixed::whole(99)), ..Metrics::default() };
        world.worker("w").metrics(busy);
        world.job("1").age_s(950).rescored(4);
    });
    assert_eq!(score(&decision, "1"), "0");
}

#[test]
fn of_equal_sums_the_earlier_ready_goes_first_and_then_the_smaller_id() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.job("10").age_s(4_000).rescored(4);
        world.job("9").age_s(4_000).rescored(4);
        world.job("11").age_s(4_001).rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["11", "9", "10"]);
    assert_eq!(score(&decision, "11"), score(&decision, "9"));
}

#[test]
fn an_hour_old_job_beats_a_fresh_one_with_all_its_inputs() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").missing_paths("w", 0).missing_bytes("w", 0).dependents(99);
        world.job("2").age_s(3_600).rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn a_rule_that_is_left_out_says_nothing_and_vetoes_nothing() {
    let decision = decided(PRESET, |world| {
        world.policy().rules.remove(&Rule::RescoreWait);
        world.policy().rules.remove(&Rule::Light);
        world.worker("w");
        world.job("1");
    });
    assert_eq!(points(&decision, "1", Rule::Light), "0");
    assert_eq!(score(&decision, "1"), "0");
}
