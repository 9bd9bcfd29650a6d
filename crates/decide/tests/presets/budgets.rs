//! Budgets, of a tenant and of all together: settled + in flight + the job's own cost.

use model::{Preset, Reason};

use crate::world::{World, decided, detail, jobs_placed, reason};

/// A tenant with a budget of ten, of which eight are settled, in every preset.
fn with_budget_of_ten(describe: impl Fn(&mut World), expected: (&[&str], Option<Reason>)) {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w").slots(9);
            world.tenant("a").budget(10).used(8).completed(1);
            describe(world);
            for job in &mut world.snapshot.jobs {
                job.rescore_count = 4;
            }
        });
        assert_eq!(jobs_placed(&decision), expected.0, "{preset:?}");
        assert_eq!(reason(&decision, "1"), expected.1, "{preset:?}");
    }
}

#[test]
fn a_job_that_just_fits_the_budget_goes() {
    with_budget_of_ten(|world| world.job("1").tenant("a").cost(2).done(), (&["1"], None));
}

#[test]
fn a_job_that_exceeds_the_budget_by_its_own_cost_waits() {
    with_budget_of_ten(
        |world| world.job("1").tenant("a").cost(3).done(),
        (&[], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn what_is_in_flight_counts() {
    with_budget_of_ten(
        |world| {
            world.attempt("9", "w").tenant("a").cost(1);
            world.job("1").tenant("a").cost(2);
        },
        (&[], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn a_job_costs_one_by_default() {
    with_budget_of_ten(
        |world| {
            world.attempt("9", "w").tenant("a").cost(2);
            world.job("1").tenant("a");
        },
        (&[], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn a_job_that_costs_nothing_goes_on_a_budget_that_is_just_spent() {
    with_budget_of_ten(
        |world| {
            world.attempt("9", "w").tenant("a").cost(2);
            world.job("1").tenant("a").cost(0);
        },
        (&["1"], None),
    );
}

#[test]
fn grants_of_this_round_count() {
    with_budget_of_ten(
        |world| {
            world.job("0").tenant("a").cost(2).age_s(60);
            world.job("1").tenant("a").cost(2);
        },
        (&["0"], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn a_cheaper_job_goes_when_the_dearer_does_not_fit() {
    with_budget_of_ten(
        |world| {
            world.job("1").tenant("a").cost(3).priority(5).age_s(60);
            world.job("2").tenant("a").cost(1);
        },
        (&["2"], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn a_spent_budget_of_one_tenant_does_not_stop_another() {
    with_budget_of_ten(
        |world| {
            world.job("1").tenant("a").cost(3);
            world.job("2").tenant("b").cost(300);
        },
        (&["2"], Some(Reason::BudgetSpent)),
    );
}

#[test]
fn all_tenants_together_stay_within_the_budget_of_all() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w").slots(9);
            world.budget(10, 5);
            world.attempt("9", "w").tenant("c").cost(2);
            world.job("1").tenant("a").cost(2).age_s(2).rescored(4);
            world.job("2").tenant("b").cost(2).age_s(1).rescored(4);
            world.job("3").tenant("b").cost(1).rescored(4);
        });
        assert_eq!(jobs_placed(&decision), ["1", "3"], "{preset:?}");
        assert_eq!(reason(&decision, "2"), Some(Reason::BudgetSpentGlobal), "{preset:?}");
    }
}

#[test]
fn a_budget_of_all_that_is_spent_stops_everybody() {
    for preset in Preset::ALL {
        let decision = decided(preset, |world| {
            world.worker("w").slots(9);
            world.budget(10, 10);
            world.job("1").rescored(4);
        });
        assert_eq!(decision.actions, [], "{preset:?}");
        assert_eq!(reason(&decision, "1"), Some(Reason::BudgetSpentGlobal), "{preset:?}");
    }
}

#[test]
fn usage_of_tenants_is_apart_from_usage_of_all() {
    let decision = decided(Preset::FairShare, |world| {
        world.worker("w");
        world.budget(10, 0);
        world.tenant("a").used(1_000).completed(1);
        world.job("1").tenant("a");
    });
    assert_eq!(jobs_placed(&decision), ["1"]);
}

#[test]
fn the_detail_tells_what_is_left_and_what_the_job_costs() {
    let decision = decided(Preset::FairShare, |world| {
        world.worker("w").slots(2);
        world.tenant("acme").budget(10).used(6);
        world.attempt("9", "w").tenant("acme").cost(1);
        world.job("1").tenant("acme").cost(5);
    });
    let detail = detail(&decision, "1");
    for part in ["acme", "3", "5"] {
        assert!(detail.contains(part), "{detail}");
    }
}
