//! `priority-age`: priority, then age; the first worker that matches.

use model::{Millis, Preset, Reason};

use crate::world::{
    World, decided, decided_with_seed, deferred, jobs_placed, pairs, placed, preempted, reason,
};

const PRESET: Preset = Preset::PriorityAge;

#[test]
fn the_higher_priority_goes_first_whatever_its_age() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.job("1").priority(-1).age_s(9_000);
        world.job("2").age_s(600);
        world.job("3").priority(1);
    });
    assert_eq!(jobs_placed(&decision), ["3", "2", "1"]);
}

#[test]
fn of_one_priority_the_longest_ready_goes_first() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(3);
        world.job("1").age_ms(1);
        world.job("2").age_ms(2);
        world.job("3").age_ms(2);
    });
    assert_eq!(jobs_placed(&decision), ["2", "3", "1"]);
}

#[test]
fn age_counts_from_ready_and_not_from_created() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.job("1").age_s(10).created_ms_ago(900_000);
        world.job("2").age_s(20);
    });
    assert_eq!(jobs_placed(&decision), ["2", "1"]);
}

#[test]
fn priorities_are_not_clamped_where_no_score_multiplies_them() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").priority(16).age_s(60);
        world.job("2").priority(17);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn whose_jobs_they_are_does_not_matter() {
    let decision = decided(PRESET, |world| {
        world.worker("w").slots(2);
        world.tenant("rich").weight(100).min("default", 5);
        world.tenant("poor").weight(1).used(1_000).completed(9);
        world.job("1").tenant("rich").age_s(1);
        world.job("2").tenant("poor").age_s(2);
    });
    assert_eq!(jobs_placed(&decision), ["2", "1"]);
}

/// Of a thousand seeds, how often the old job went before the one of high priority.
fn n_by_age(percentage: u32) -> usize {
    let by_age = (0..1_000).filter(|seed| {
        let decision = decided_with_seed(PRESET, *seed, |world| {
            world.policy().priority_percentage = percentage;
            world.worker("w");
            world.job("1").priority(9);
            world.job("2").age_s(60);
        });
        jobs_placed(&decision) == ["2"]
    });
    by_age.count()
}

#[test]
fn by_default_every_choice_goes_by_priority() {
    assert_eq!(PRESET.policy().priority_percentage, 100);
    assert_eq!(n_by_age(100), 0);
}

#[test]
fn at_zero_percent_every_choice_goes_by_age() {
    assert_eq!(n_by_age(0), 1_000);
}

#[test]
fn at_ninety_percent_about_a_tenth_of_choices_go_by_age() {
    let n_by_age = n_by_age(90);
    assert!((60..=140).contains(&n_by_age), "{n_by_age} of 1000");
}

#[test]
fn at_one_percent_a_few_choices_still_go_by_priority() {
    let n_by_age = n_by_age(1);
    assert!((970..=999).contains(&n_by_age), "{n_by_age} of 1000");
}

#[test]
fn each_choice_is_drawn_anew() {
    let mixed = (0..100).filter(|seed| {
        let decision = decided_with_seed(PRESET, *seed, |world| {
            world.policy().priority_percentage = 50;
            world.worker("w").slots(2);
            world.job("p1").priority(9);
            world.job("p2").priority(8);
            world.job("o1").age_s(60);
            world.job("o2").age_s(50);
        });
        let placed = jobs_placed(&decision);
        placed == ["p1", "o1"] || placed == ["o1", "p1"]
    });
    let n_mixed = mixed.count();
    assert!((30..=70).contains(&n_mixed), "{n_mixed} of 100");
}

#[test]
fn the_same_seed_gives_the_same_decision() {
    let describe = |world: &mut World| {
        world.policy().priority_percentage = 50;
        world.worker("w");
        world.job("1").priority(9);
        world.job("2").age_s(60);
    };
    for seed in 0..20 {
        let decision = decided_with_seed(PRESET, seed, describe);
        assert_eq!(decision, decided_with_seed(PRESET, seed, describe));
    }
}

#[test]
fn the_first_match_is_the_smallest_id_whatever_its_rank_room_or_types() {
    let decision = decided(PRESET, |world| {
        world.worker("b").slots(9).rank(-5).types(&["pdf"]).hints(&["h"]);
        world.worker("a").rank(3);
        world.job("1").kind("pdf").hint("h");
    });
    assert_eq!(placed(&decision), pairs([("1", "a")]));
}

#[test]
fn workers_that_are_full_unfit_unhealthy_or_draining_are_no_match() {
    let decision = decided(PRESET, |world| {
        world.worker("a").unhealthy();
        world.worker("b").draining();
        world.worker("c").types(&["xls"]);
        world.worker("d");
        world.attempt("9", "d");
        world.worker("e");
        world.job("1").kind("pdf");
    });
    assert_eq!(placed(&decision), pairs([("1", "e")]));
}

#[test]
fn a_job_that_found_no_worker_is_left_alone_for_five_seconds_and_held() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.worker("x").types(&["xls"]).unhealthy();
        world.job("1").kind("pdf").priority(1);
        world.job("2").kind("pdf");
        world.job("3").needs("os", &["plan9"]);
        world.job("4").kind("xls");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
    let left_alone = ["2", "3", "4"].map(|job| (job.to_owned(), 5_000));
    assert_eq!(deferred(&decision), left_alone);
    assert_eq!(reason(&decision, "2"), Some(Reason::WorkersFull));
    assert_eq!(reason(&decision, "3"), Some(Reason::NoWorkerEver));
}

#[test]
fn the_backoff_is_as_long_as_the_policy_says_and_none_if_it_is_zero() {
    let after = |backoff| {
        let decision = decided(PRESET, |world| {
            world.policy().failure_backoff = Millis(backoff);
            world.job("1");
        });
        deferred(&decision)
    };
    assert_eq!(after(1_500), [("1".to_owned(), 1_500)]);
    assert_eq!(after(0), []);
}

#[test]
fn a_job_that_no_worker_was_sought_for_is_not_deferred() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.tenant("paused").paused();
        world.job("1").tenant("paused");
        world.job("2").age_s(-5);
        world.job("3").not_before_ms(5_000);
        world.job("4").backoff_ms(1);
    });
    assert_eq!(decision.actions, []);
}

#[test]
fn an_unplaceable_head_does_not_block_the_jobs_behind_it() {
    let decision = decided(PRESET, |world| {
        world.worker("w");
        world.job("1").priority(9).needs("os", &["plan9"]);
        world.job("2");
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn it_preempts_too_when_quotas_and_preemption_are_on() {
    let decision = decided(PRESET, |world| {
        world.policy().preemption.enabled = true;
        world.tenant("a").min("default", 1);
        world.worker("w");
        world.attempt("9", "w").tenant("b");
        world.job("1").tenant("a").priority(1).age_s(60);
    });
    assert_eq!(preempted(&decision), pairs([("9", "1")]));
    assert_eq!(reason(&decision, "1"), Some(Reason::Preempting));
}
