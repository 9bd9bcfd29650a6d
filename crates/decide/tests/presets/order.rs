//! Ties: higher score, earlier ready, smaller id; digits compare as numbers.

use model::{Preset, Reason};

use crate::world::{World, decided, jobs_placed, pairs, place_of, placed, reason};

/// The order in which a worker with room for all gets equal jobs of these ids and ages.
fn order_of<const N: usize>(preset: Preset, jobs: [(&str, i64); N]) -> Vec<String> {
    let decision = decided(preset, |world| {
        world.worker("w").slots(20);
        for (job, age_ms) in jobs {
            world.job(job).age_ms(age_ms).rescored(4);
        }
    });
    jobs_placed(&decision)
}

#[test]
fn equal_jobs_go_by_id_and_digits_compare_as_numbers() {
    for preset in Preset::ALL {
        let jobs = [("100", 0), ("9", 0), ("20", 0), ("3", 0)];
        assert_eq!(order_of(preset, jobs), ["3", "9", "20", "100"], "{preset:?}");
    }
}

#[test]
fn ids_that_are_not_all_digits_compare_by_bytes() {
    for preset in Preset::ALL {
        let jobs = [("job-9", 0), ("job-10", 0), ("Job", 0), ("job-1", 0)];
        assert_eq!(order_of(preset, jobs), ["Job", "job-1", "job-10", "job-9"], "{preset:?}");
    }
}

#[test]
fn numbers_too_large_for_a_machine_word_still_compare_as_numbers() {
    for preset in Preset::ALL {
        let jobs = [("99999999999999999999999", 0), ("100000000000000000000000", 0), ("7", 0)];
        let sorted = ["7", "99999999999999999999999", "100000000000000000000000"];
        assert_eq!(order_of(preset, jobs), sorted, "{preset:?}");
    }
}

#[test]
fn the_earlier_ready_goes_before_the_smaller_id() {
    for preset in Preset::ALL {
        assert_eq!(order_of(preset, [("1", 0), ("2", 1)]), ["2", "1"], "{preset:?}");
    }
}

#[test]
fn a_tie_of_ageing_scores_goes_to_the_earlier_ready() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w").slots(3);
        world.job("1").priority(2);
        world.job("2").priority(1).age_s(64);
        world.job("3").age_s(128);
    });
    assert_eq!(jobs_placed(&decision), ["3", "2", "1"]);
}

#[test]
fn a_tie_of_ageing_scores_between_people_and_queued_jobs_goes_to_the_earlier_ready() {
    let decision = decided(Preset::Aging, |world| {
        world.worker("w");
        world.job("1").on_demand();
        world.job("2").age_s(256);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn a_tie_of_sums_goes_to_the_earlier_ready() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w");
        world.job("1").age_s(5_000).rescored(4);
        world.job("2").age_s(5_001).rescored(4);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}

#[test]
fn equal_workers_are_taken_by_id_and_digits_compare_as_numbers() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("10");
            world.worker("9");
            world.job("1").rescored(4);
        });
        assert_eq!(placed(&decision), pairs([("1", "9")]), "{preset:?}");
    }
}

#[test]
fn tenants_do_not_change_the_order_of_equal_jobs_where_all_come_as_they_come() {
    for preset in [Preset::PriorityAge, Preset::Simple, Preset::Aging, Preset::Detected] {
        let decision = decided(preset, |world| {
            world.worker("w").slots(4);
            for (job, tenant) in [("1", "d"), ("2", "a"), ("3", "c"), ("4", "b")] {
                world.job(job).tenant(tenant).rescored(4);
            }
        });
        assert_eq!(jobs_placed(&decision), ["1", "2", "3", "4"], "{preset:?}");
    }
}

/// Jobs of two classes with the same standing.
fn two_classes(world: &mut World) {
    world.worker("w").slots(6);
    for ix in 1..=6 {
        let kind = if ix % 2 == 0 { "even" } else { "odd" };
        world.job(&format!("{ix}")).kind(kind).age_s(60).rescored(4);
    }
}

#[test]
fn classes_do_not_change_the_order_of_equal_jobs() {
    for preset in Preset::ALL {
        if preset != Preset::Detected {
            let placed = jobs_placed(&decided(preset, two_classes));
            assert_eq!(placed, ["1", "2", "3", "4", "5", "6"], "{preset:?}");
        }
    }
}

#[test]
fn a_round_goes_on_until_nothing_places() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("a").types(&["pdf"]).slots(2);
            world.worker("b").types(&["pdf", "xls"]).slots(2);
            for job in 0..9 {
                let kind = if job < 6 { "pdf" } else { "xls" };
                world.job(&format!("{job}")).kind(kind).age_s(60).rescored(4);
            }
        });
        assert_eq!(jobs_placed(&decision).len(), 4, "{preset:?}");
        let full = decision.holds.iter().all(|hold| hold.reason == Reason::WorkersFull);
        assert!(full, "{preset:?}");
    }
}

#[test]
fn a_job_that_cannot_go_holds_up_nobody() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w");
            world.tenant("paused").paused();
            world.job("1").tenant("paused").priority(16).age_s(9_000).rescored(4);
            world.job("2").needs("os", &["plan9"]).priority(16).age_s(9_000).rescored(4);
            world.job("3").not_before_ms(1).priority(16).age_s(9_000).rescored(4);
            world.job("4").rescored(4);
        });
        assert_eq!(place_of(&decision, "4"), "w", "{preset:?}");
        assert_eq!(reason(&decision, "4"), None, "{preset:?}");
    }
}
