//! `aging`: 1024 × priority + 16/s + 500 ÷ free slots + on demand 4096 + 32/s; fewest types.

use model::policy::Rule;
use model::{Decision, Preset};

use crate::specs::JobSpec;
use crate::world::{
    World, decided, jobs_placed, pairs, place_of, placed, placement, points, score,
};

const PRESET: Preset = Preset::Aging;

fn alone(describe: impl FnOnce(JobSpec<'_>)) -> Decision {
    decided(PRESET, |world| {
        world.worker("w");
        describe(world.job("1"));
    })
}

/// Whether job 1 goes before job 2, which has the larger id.
fn first_goes_first(one: impl FnOnce(JobSpec<'_>), two: impl FnOnce(JobSpec<'_>)) -> bool {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        one(world.job("1"));
        two(world.job("2"));
    });
    jobs_placed(&decision) == ["1"]
}

#[test]
fn priority_is_worth_1024_a_step_and_ends_at_sixteen() {
    let priority =
        |priority| points(&alone(|job| job.priority(priority).done()), "1", Rule::Priority);
    assert_eq!(priority(0), "0");
    assert_eq!(priority(1), "1024");
    assert_eq!(priority(10), "10240");
    assert_eq!(priority(16), "16384");
    assert_eq!(priority(17), "16384");
    assert_eq!(priority(1_000), "16384");
    assert_eq!(priority(-1), "-1024");
    assert_eq!(priority(-1_000), "-16384");
}

#[test]
fn age_is_worth_sixteen_a_second_by_the_millisecond_and_without_end() {
    let age = |millis| points(&alone(|job| job.age_ms(millis).done()), "1", Rule::Age);
    assert_eq!(age(0), "0");
    assert_eq!(age(1), "0.016");
    assert_eq!(age(1_001), "16.016");
    assert_eq!(age(60_000), "960");
    assert_eq!(age(864_000_000), "13824000");
}

#[test]
fn age_counts_from_ready_and_not_from_created() {
    let decision = alone(|job| job.age_s(10).created_ms_ago(900_000).done());
    assert_eq!(points(&decision, "1", Rule::Age), "160");
}

/// The rarity of a job that so many free slots could run.
fn rarity(n_slots: u32) -> String {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(n_slots).types(&["pdf"]);
        world.worker("x").slots(9).types(&["xls"]);
        world.job("1").kind("pdf");
    });
    points(&decision, "1", Rule::Rarity)
}

#[test]
fn rarity_is_five_hundred_divided_by_the_free_slots_in_whole_points() {
    assert_eq!(rarity(1), "500");
    assert_eq!(rarity(2), "250");
    assert_eq!(rarity(3), "166");
    assert_eq!(rarity(4), "125");
    assert_eq!(rarity(8), "62");
    assert_eq!(rarity(500), "1");
    assert_eq!(rarity(501), "0");
}

#[test]
fn rarity_counts_free_slots_of_workers_that_serve() {
    let decision = decided(PRESET, |world| {
        world.worker("a").slots(3);
        world.attempt("9", "a");
        world.worker("b").slots(5).unhealthy();
        world.worker("c").slots(5).draining();
        world.worker("d").slots(5).slots_free(2);
        world.worker("e").slots(5).types(&["xls"]);
        world.job("1").kind("pdf");
    });
    assert_eq!(points(&decision, "1", Rule::Rarity), "125");
}

#[test]
fn rarity_is_computed_anew_after_each_placement() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(4);
        for job in ["1", "2", "3", "4"] {
            world.job(job);
        }
    });
    let rarities = ["1", "2", "3", "4"].map(|job| points(&decision, job, Rule::Rarity));
    assert_eq!(rarities, ["125", "166", "250", "500"]);
}

#[test]
fn what_becomes_rare_within_a_round_moves_forward() {
    let decision = decided(PRESET, |world| {
        world.worker("a").types(&["x", "y"]);
        world.worker("b").slots(4).types(&["y"]);
        world.worker("c").types(&["x", "z"]);
        world.job("1").kind("z").age_s(100);
        world.job("2").kind("x");
        world.job("3").kind("y").age_ms(9_000);
    });
    assert_eq!(placed(&decision), pairs([("1", "c"), ("2", "a"), ("3", "b")]));
}

#[test]
fn on_demand_is_worth_4096_and_32_a_second() {
    let bonus =
        |millis| points(&alone(|job| job.on_demand().age_ms(millis).done()), "1", Rule::OnDemand);
    assert_eq!(bonus(0), "4096");
    assert_eq!(bonus(1), "4096.032");
    assert_eq!(bonus(60_000), "6016");
    assert_eq!(points(&alone(|job| job.age_s(60).done()), "1", Rule::OnDemand), "0");
}

#[test]
fn the_score_is_the_sum_of_the_four() {
    let decision = alone(|job| job.priority(-2).age_ms(1_500).on_demand().done());
    assert_eq!(score(&decision, "1"), "2620");
    let place = placement(&decision, "1").unwrap();
    assert_eq!(place.score, place.points.iter().map(|said| said.points).sum());
}

#[test]
fn a_score_below_zero_is_placed_all_the_same() {
    assert_eq!(score(&alone(|job| job.priority(-16).done()), "1"), "-15884");
}

#[test]
fn a_step_of_priority_is_worth_64_seconds() {
    let after =
        |millis| first_goes_first(|job| job.priority(1).done(), |job| job.age_ms(millis).done());
    assert!(after(63_999));
    assert!(!after(64_001));
}

#[test]
fn a_tie_of_scores_goes_to_the_earlier_ready() {
    assert!(!first_goes_first(|job| job.priority(1).done(), |job| job.age_s(64).done()));
}

#[test]
fn priorities_beyond_sixteen_are_equal() {
    assert!(!first_goes_first(
        |job| job.priority(16).done(),
        |job| job.priority(1_000).age_ms(1).done()
    ));
    assert!(!first_goes_first(
        |job| job.priority(1_000).done(),
        |job| job.priority(16).age_ms(1).done()
    ));
}

#[test]
fn a_fresh_on_demand_job_is_passed_after_256_seconds() {
    let after =
        |millis| first_goes_first(|job| job.on_demand().done(), |job| job.age_ms(millis).done());
    assert!(after(255_999));
    assert!(!after(256_001));
}

#[test]
fn a_waiting_on_demand_job_is_passed_after_256_seconds_and_three_times_its_wait() {
    let after = |millis| {
        first_goes_first(|job| job.on_demand().age_s(10).done(), |job| job.age_ms(millis).done())
    };
    assert!(after(285_999));
    assert!(!after(286_001));
}

#[test]
fn rarity_is_worth_a_few_seconds() {
    let scene = |age_ms: i64| {
        let decision = decided(PRESET, |world: &mut World| {
            world.worker("a").types(&["common", "rare"]);
            world.worker("b").types(&["common"]);
            world.attempt("9", "b").kind("common");
            world.worker("c").types(&["common"]);
            world.job("1").kind("rare");
            world.job("2").kind("common").age_ms(age_ms);
        });
        jobs_placed(&decision)
    };
    assert_eq!(scene(15_624), ["1", "2"]);
    assert_eq!(scene(15_626), ["2", "1"]);
}

#[test]
fn the_worker_with_the_fewest_types_gets_the_job() {
    let decision = decided(PRESET, |world| {
        world.worker("a").types(&["excel", "index", "pdf"]).slots(9);
        world.worker("b").types(&["excel", "pdf"]);
        world.worker("c").types(&["pdf"]);
        world.worker("d");
        for job in ["1", "2", "3"] {
            world.job(job).kind("pdf");
        }
    });
    assert_eq!(placed(&decision), pairs([("1", "c"), ("2", "b"), ("3", "a")]));
}

#[test]
fn a_worker_without_types_is_the_least_specialised() {
    let decision = decided(PRESET, |world| {
        world.worker("a");
        world.worker("b").types(&["a", "b", "c", "d", "pdf"]);
        world.job("1").kind("pdf");
    });
    assert_eq!(place_of(&decision, "1"), "b");
}

#[test]
fn of_equally_special_workers_the_smaller_id_gets_the_job() {
    let decision = decided(PRESET, |world| {
        world.worker("10").types(&["pdf"]).slots(4);
        world.worker("9").types(&["pdf"]).rank(3);
        world.job("1").kind("pdf");
    });
    assert_eq!(place_of(&decision, "1"), "9");
}

#[test]
fn a_flood_of_one_type_does_not_idle_workers_of_another() {
    let decision = decided(PRESET, |world| {
        world.worker("a").types(&["pdf"]);
        world.worker("b").types(&["xls"]);
        for job in 0..2_000 {
            world.job(&format!("{job}")).kind("pdf").priority(9).age_s(9_000);
        }
        world.job("late").kind("xls").priority(-9);
    });
    assert_eq!(jobs_placed(&decision).len(), 2);
    assert_eq!(place_of(&decision, "late"), "b");
}

#[test]
fn a_flood_of_people_does_not_idle_workers_of_others() {
    let decision = decided(PRESET, |world| {
        world.worker("a").types(&["pdf"]);
        world.worker("b").types(&["xls"]);
        for job in 0..200 {
            world.job(&format!("{job}")).kind("pdf").on_demand().age_s(60);
        }
        world.job("late").kind("xls");
    });
    assert_eq!(place_of(&decision, "late"), "b");
}
