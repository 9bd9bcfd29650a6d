//! `wait`, `rescore-wait` and `reserve-fetch`.

use model::policy::Rule;
use model::{Fixed, Preset, Reason, Trait};

use crate::world::{decided, jobs_placed, points, reason};

fn wait(age_ms: i64, average: Option<i64>) -> String {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").age_ms(age_ms).rescored(4);
        world.cluster().avg_1h.wait_s = average.map(Fixed::thousandths);
    });
    points(&decision, "1", Rule::Wait)
}

#[test]
fn wait_falls_back_to_an_average_of_a_minute() {
    assert_eq!(wait(0, None), "0");
    assert_eq!(wait(1_000, None), "1");
    assert_eq!(wait(60_000, None), "60");
    assert_eq!(wait(3_999_000, None), "3999");
}

#[test]
fn wait_ends_at_four_thousand() {
    assert_eq!(wait(4_000_000, None), "4000");
    assert_eq!(wait(4_001_000, None), "4000");
    assert_eq!(wait(900_000_000, None), "4000");
}

#[test]
fn wait_is_measured_against_the_average() {
    assert_eq!(wait(30_000, Some(120_000)), "15");
    assert_eq!(wait(1_000, Some(7_000)), "8.571");
    assert_eq!(wait(3_600_000, Some(3_600_000)), "60");
}

#[test]
fn wait_counts_milliseconds() {
    assert_eq!(wait(1, None), "0.001");
    assert_eq!(wait(1_999, None), "1.999");
}

#[test]
fn wait_against_a_measured_zero_is_all_or_nothing() {
    assert_eq!(wait(0, Some(0)), "0");
    assert_eq!(wait(1, Some(0)), "4000");
}

#[test]
fn wait_counts_from_ready_not_from_created() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").age_s(30).created_ms_ago(900_000).rescored(4);
    });
    assert_eq!(points(&decision, "1", Rule::Wait), "30");
}

#[test]
fn wait_looks_at_the_last_hour_only() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").age_s(30).rescored(4);
        world.cluster().avg_5m.wait_s = Some(Fixed::whole(1));
        world.cluster().avg_24h.wait_s = Some(Fixed::whole(1));
    });
    assert_eq!(points(&decision, "1", Rule::Wait), "30");
}

fn rescored(count: u32) -> Option<Reason> {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").age_s(4_000).rescored(count);
    });
    reason(&decision, "1")
}

#[test]
fn a_build_of_unknown_size_is_vetoed_for_four_rounds_whatever_its_points() {
    assert_eq!(rescored(0), Some(Reason::Vetoed));
    assert_eq!(rescored(3), Some(Reason::Vetoed));
    assert_eq!(rescored(4), None);
    assert_eq!(rescored(5), None);
}

#[test]
fn an_evaluation_is_never_vetoed() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").is(Trait::Evaluation);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn a_light_job_is_a_build_and_is_vetoed() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").is(Trait::Light);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::Vetoed));
}

#[test]
fn a_reported_size_lifts_the_veto_and_a_report_of_paths_does_not() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").slots(2);
        world.job("1").missing_bytes("w", 1 << 40);
        world.job("2").missing_paths("w", 0);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(reason(&decision, "2"), Some(Reason::Vetoed));
}

#[test]
fn a_size_that_any_worker_reported_lifts_the_veto_on_every_worker() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.worker("reporter").types(&["other"]);
        world.job("1").kind("mine").missing_bytes("reporter", 1);
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    assert_eq!(points(&decision, "1", Rule::MissingBytes), "0");
}

#[test]
fn the_veto_is_there_in_resource_aware_too() {
    let decision = decided(Preset::ResourceAware, |world| {
        world.worker("w");
        world.job("1").age_s(4_000);
    });
    assert_eq!(reason(&decision, "1"), Some(Reason::Vetoed));
}

/// A cached evaluation old enough to be placed in spite of the penalty, on the only worker of its
/// type; of the other workers so many run something already, and so many do not.
fn cached_evaluation(n_busy: u32, n_idle: u32) -> String {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").types(&["mine"]).offers("feature", &["fetch", "kvm"]);
        world.job("1").kind("mine").age_s(300).is(Trait::Evaluation).is(Trait::Cached);
        for ix in 0..n_busy {
            world.worker(&format!("busy{ix}")).types(&["other"]);
            world.attempt(&format!("running{ix}"), &format!("busy{ix}")).kind("other");
        }
        for ix in 0..n_idle {
            world.worker(&format!("idle{ix}")).types(&["other"]);
        }
    });
    points(&decision, "1", Rule::ReserveFetch)
}

#[test]
fn a_fetch_worker_is_kept_from_cached_evaluations_as_far_as_others_are_busy() {
    assert_eq!(cached_evaluation(1, 0), "-150");
    assert_eq!(cached_evaluation(2, 0), "-200");
    assert_eq!(cached_evaluation(99, 0), "-297");
}

#[test]
fn idle_workers_relax_what_is_kept_for_fetching() {
    assert_eq!(cached_evaluation(1, 1), "-100");
    assert_eq!(cached_evaluation(1, 5), "-42.857");
    assert_eq!(cached_evaluation(0, 5), "0");
}

#[test]
fn idle_capacity_is_counted_in_slots_not_in_empty_workers() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").slots(2).offers("feature", &["fetch"]);
        world.attempt("running", "w");
        world.job("1").age_s(300).is(Trait::Evaluation).is(Trait::Cached);
    });
    assert_eq!(points(&decision, "1", Rule::ReserveFetch), "-150");
}

#[test]
fn an_idle_fetch_worker_alone_has_nothing_to_keep() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").offers("feature", &["fetch"]);
        world.job("1").is(Trait::Evaluation).is(Trait::Cached);
    });
    assert_eq!(points(&decision, "1", Rule::ReserveFetch), "0");
}

#[test]
fn a_placement_of_this_round_makes_its_worker_busy() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").offers("feature", &["fetch"]);
        world.worker("x").offers("feature", &["fetch"]);
        world.job("1").age_s(400).is(Trait::Evaluation).is(Trait::Cached);
        world.job("2").age_s(300).is(Trait::Evaluation).is(Trait::Cached);
    });
    assert_eq!(points(&decision, "1", Rule::ReserveFetch), "0");
    assert_eq!(points(&decision, "2", Rule::ReserveFetch), "-150");
}

#[test]
fn only_cached_evaluations_on_fetch_workers_are_concerned() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("fetcher").slots(3).offers("feature", &["fetch"]).types(&["a"]);
        world.worker("other").slots(2).offers("feature", &["kvm"]).types(&["b"]);
        world.attempt("running", "fetcher").kind("a");
        world.attempt("too", "other").kind("b");
        world.job("evaluation").kind("a").is(Trait::Evaluation);
        world.job("build").kind("a").rescored(4);
        world.job("elsewhere").kind("b").is(Trait::Evaluation).is(Trait::Cached);
    });
    for job in ["evaluation", "build", "elsewhere"] {
        assert_eq!(points(&decision, job, Rule::ReserveFetch), "0", "{job}");
    }
}
