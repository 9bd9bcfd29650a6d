//! Room on workers: slots, amounts, what workers say is free, and what attempts take.

use model::{Decision, Preset, Reason};

use crate::world::{World, decided, jobs_placed, pairs, placed, reason};

/// The same decision is asked of every preset; nothing here depends on the order.
fn in_every_preset(describe: impl Fn(&mut World), expect: impl Fn(&Decision)) {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            describe(world);
            for job in &mut world.snapshot.jobs {
                job.rescore_count = 4;
            }
        });
        expect(&decision);
    }
}

fn places(describe: impl Fn(&mut World), n_jobs: usize) {
    in_every_preset(describe, |decision| assert_eq!(jobs_placed(decision).len(), n_jobs));
}

fn holds(describe: impl Fn(&mut World), expected: Reason) {
    in_every_preset(describe, |decision| {
        assert_eq!(placed(decision), []);
        assert_eq!(reason(decision, "1"), Some(expected));
    });
}

fn jobs(world: &mut World, n_jobs: u32) {
    (1..=n_jobs).for_each(|id| world.job(&format!("{id}")).done());
}

#[test]
fn a_worker_takes_as_many_jobs_as_it_has_slots() {
    let three = |world: &mut World| {
        world.worker("w").slots(3);
        jobs(world, 5);
    };
    places(three, 3);
}

#[test]
fn a_worker_without_slots_can_never_run_anything() {
    let none = |world: &mut World| {
        world.worker("w").slots(0);
        jobs(world, 1);
    };
    holds(none, Reason::NoWorkerEver);
}

#[test]
fn attempts_take_their_slots() {
    let taken = |world: &mut World| {
        world.worker("w").slots(5);
        world.attempt("8", "w");
        world.attempt("9", "w").slots(2);
        jobs(world, 5);
    };
    places(taken, 2);
}

#[test]
fn a_wide_job_needs_all_its_slots_on_one_worker() {
    let split = |world: &mut World| {
        world.worker("a").slots(2).slots_free(1);
        world.worker("b").slots(2).slots_free(1);
        world.job("1").slots(2);
    };
    holds(split, Reason::WorkersFull);
}

#[test]
fn a_wide_job_goes_where_it_fits() {
    let two = |world: &mut World| {
        world.worker("a").slots(1);
        world.worker("b").slots(3);
        world.job("1").slots(3);
    };
    in_every_preset(two, |decision| assert_eq!(placed(decision), pairs([("1", "b")])));
}

#[test]
fn a_job_wider_than_any_worker_can_never_run() {
    let wider = |world: &mut World| {
        world.worker("a").slots(2);
        world.worker("b").slots(2);
        world.job("1").slots(3);
    };
    holds(wider, Reason::NoWorkerEver);
}

#[test]
fn a_wide_job_takes_its_slots_from_those_after_it() {
    let wide = |world: &mut World| {
        world.worker("w").slots(4);
        world.job("1").slots(3).priority(9).age_s(60);
        world.job("2").slots(2);
        world.job("3").slots(1);
    };
    in_every_preset(wide, |decision| {
        assert_eq!(jobs_placed(decision), ["1", "3"]);
        assert_eq!(reason(decision, "2"), Some(Reason::WorkersFull));
    });
}

#[test]
fn what_a_worker_says_is_free_counts_if_it_is_less() {
    let foreign = |world: &mut World| {
        world.worker("w").slots(5).slots_free(2);
        jobs(world, 5);
    };
    places(foreign, 2);
}

#[test]
fn what_attempts_leave_counts_if_it_is_less() {
    let stale = |world: &mut World| {
        world.worker("w").slots(3).slots_free(3);
        world.attempt("9", "w").slots(2);
        jobs(world, 5);
    };
    places(stale, 1);
}

#[test]
fn attempts_are_not_counted_twice_with_what_a_worker_says() {
    let fresh = |world: &mut World| {
        world.worker("w").slots(4).slots_free(2);
        world.attempt("9", "w").slots(2);
        jobs(world, 5);
    };
    places(fresh, 2);
}

#[test]
fn a_worker_that_says_nothing_is_free_is_full() {
    let full = |world: &mut World| {
        world.worker("w").slots(4).slots_free(0);
        jobs(world, 1);
    };
    holds(full, Reason::WorkersFull);
}

#[test]
fn attempts_beyond_a_workers_slots_leave_no_room_and_do_no_harm() {
    let over = |world: &mut World| {
        world.worker("w").slots(1);
        world.attempt("8", "w");
        world.attempt("9", "w").slots(5);
        jobs(world, 1);
    };
    holds(over, Reason::WorkersFull);
}

#[test]
fn amounts_are_taken_by_attempts_and_by_this_round() {
    let memory = |world: &mut World| {
        world.worker("w").slots(9).amount("ram_mb", 1_000);
        world.attempt("9", "w").amount("ram_mb", 300);
        for job in ["1", "2", "3"] {
            world.job(job).amount("ram_mb", 350);
        }
    };
    in_every_preset(memory, |decision| {
        assert_eq!(jobs_placed(decision), ["1", "2"]);
        assert_eq!(reason(decision, "3"), Some(Reason::WorkersFull));
    });
}

#[test]
fn a_job_that_asks_for_less_goes_past_one_that_does_not_fit() {
    let memory = |world: &mut World| {
        world.worker("w").slots(9).amount("ram_mb", 1_000);
        world.attempt("9", "w").amount("ram_mb", 600).estimate_s(3_600);
        world.job("1").amount("ram_mb", 500).age_s(60);
        world.job("2").amount("ram_mb", 400).estimate_s(1);
    };
    in_every_preset(memory, |decision| {
        assert_eq!(jobs_placed(decision), ["2"]);
        assert_eq!(reason(decision, "1"), Some(Reason::WorkersFull));
    });
}

#[test]
fn a_job_that_asks_for_no_amount_needs_none() {
    let memory = |world: &mut World| {
        world.worker("w").slots(2).amount("ram_mb", 10);
        world.attempt("9", "w").amount("ram_mb", 10);
        jobs(world, 1);
    };
    places(memory, 1);
}

#[test]
fn more_than_any_worker_has_in_all_can_never_run() {
    let more = |world: &mut World| {
        world.worker("w").amount("ram_mb", 1_000);
        world.job("1").amount("ram_mb", 1_001);
    };
    holds(more, Reason::NoWorkerEver);
}

#[test]
fn an_amount_that_no_worker_names_can_never_be_had() {
    let unnamed = |world: &mut World| {
        world.worker("w").amount("ram_mb", 1_000);
        world.job("1").amount("gpu", 1);
    };
    holds(unnamed, Reason::NoWorkerEver);
}

#[test]
fn every_amount_must_be_there_on_one_worker() {
    let apart = |world: &mut World| {
        world.worker("a").amount("gpu", 1);
        world.worker("b").amount("ram_mb", 1_000);
        world.worker("c").amount("gpu", 1).amount("ram_mb", 1_000);
        world.job("1").amount("gpu", 1).amount("ram_mb", 1_000);
    };
    in_every_preset(apart, |decision| assert_eq!(placed(decision), pairs([("1", "c")])));
}

#[test]
fn amounts_are_of_one_worker_and_not_shared() {
    let each = |world: &mut World| {
        world.worker("a").slots(9).amount("gpu", 1);
        world.worker("b").slots(9).amount("gpu", 1);
        for job in ["1", "2", "3"] {
            world.job(job).amount("gpu", 1);
        }
    };
    places(each, 2);
}

#[test]
fn an_attempt_that_is_stopping_still_takes_its_slots() {
    let stopping = |world: &mut World| {
        world.worker("w");
        world.attempt("9", "w").stopping_for("other");
        jobs(world, 1);
    };
    holds(stopping, Reason::WorkersFull);
}
