//! `event.freed`: a worker that finished jobs asks for more, in every preset.

use model::{Decision, Preset, Reason};

use crate::world::{World, decided, deferred, jobs_placed, pairs, placed, preempted, reason};

/// Worker `w` has three free slots and just finished so many jobs; `x` is idle; five jobs wait.
fn asked(preset: Preset, completed: u32, change: impl FnOnce(&mut World)) -> Decision {
    decided(preset, |world| {
        world.worker("w").slots(4);
        world.attempt("9", "w");
        world.worker("x").slots(9);
        for job in ["1", "2", "3", "4", "5"] {
            world.job(job).rescored(4);
        }
        world.freed("w", completed);
        change(world);
    })
}

#[test]
fn only_the_worker_that_asks_gets_work_and_as_much_as_it_finished() {
    for preset in Preset::ALL {
        assert_eq!(placed(&asked(preset, 1, |_| ())), pairs([("1", "w")]), "{preset:?}");
        let two = pairs([("1", "w"), ("2", "w")]);
        assert_eq!(placed(&asked(preset, 2, |_| ())), two, "{preset:?}");
    }
}

#[test]
fn a_worker_that_finished_nothing_gets_nothing() {
    for preset in Preset::ALL {
        assert_eq!(placed(&asked(preset, 0, |_| ())), [], "{preset:?}");
    }
}

#[test]
fn it_never_gets_more_than_it_has_room_for() {
    for preset in Preset::ALL {
        assert_eq!(placed(&asked(preset, 9, |_| ())).len(), 3, "{preset:?}");
    }
}

#[test]
fn to_capacity_it_is_filled_whatever_it_finished() {
    for preset in Preset::ALL {
        let fill = |world: &mut World| world.policy().proactive_fetch_to_capacity = true;
        let three = pairs([("1", "w"), ("2", "w"), ("3", "w")]);
        assert_eq!(placed(&asked(preset, 1, fill)), three, "{preset:?}");
    }
}

#[test]
fn to_capacity_is_off_by_default() {
    assert!(Preset::ALL.into_iter().all(|preset| !preset.policy().proactive_fetch_to_capacity));
    assert!(Preset::ALL.into_iter().all(|preset| !preset.policy().proactive_fetch_literal));
}

#[test]
fn jobs_that_were_not_asked_for_are_outranked() {
    for preset in Preset::ALL {
        let decision = asked(preset, 1, |_| ());
        assert_eq!(reason(&decision, "2"), Some(Reason::Outranked), "{preset:?}");
    }
}

#[test]
fn a_worker_that_does_not_serve_gets_nothing() {
    for preset in Preset::ALL {
        let draining = asked(preset, 1, |world| world.snapshot.workers[0].draining = true);
        assert_eq!(placed(&draining), [], "{preset:?}");
        let unhealthy = asked(preset, 1, |world| world.snapshot.workers[0].healthy = false);
        assert_eq!(placed(&unhealthy), [], "{preset:?}");
    }
}

#[test]
fn it_gets_only_what_it_can_run() {
    for preset in Preset::ALL {
        let decision = asked(preset, 3, |world| {
            world.snapshot.workers[0].types = vec![model::Name::new("pdf")];
            for job in &mut world.snapshot.jobs {
                job.kind = Some(model::Name::new("xls"));
            }
            world.job("6").kind("pdf").rescored(4);
        });
        assert_eq!(placed(&decision), pairs([("6", "w")]), "{preset:?}");
    }
}

#[test]
fn it_gets_the_best_job_by_the_order_of_the_preset() {
    let best = |preset, change: fn(&mut World)| jobs_placed(&asked(preset, 1, change));
    for preset in [Preset::PriorityAge, Preset::Cohort, Preset::FairShare, Preset::Aging] {
        assert_eq!(best(preset, |world| world.job("6").priority(1).done()), ["6"], "{preset:?}");
    }
    assert_eq!(best(Preset::Simple, |world| world.job("6").missing_bytes("w", 0).done()), ["6"]);
    assert_eq!(best(Preset::Detected, |world| world.job("6").age_s(1).done()), ["6"]);
    assert_eq!(best(Preset::Balanced, |world| world.job("6").age_s(1).done()), ["6"]);
}

#[test]
fn it_gets_the_job_of_the_tenant_whose_turn_it_is() {
    for preset in [Preset::FairShare, Preset::Balanced] {
        let decision = asked(preset, 1, |world| {
            world.tenant("default").completed(1);
            world.job("6").tenant("new").priority(-9);
        });
        assert_eq!(jobs_placed(&decision), ["6"], "{preset:?}");
    }
    let decision = asked(Preset::Cohort, 1, |world| {
        world.tenant("paid").min("default", 1);
        world.job("6").tenant("paid").priority(-9);
    });
    assert_eq!(jobs_placed(&decision), ["6"]);
}

#[test]
fn limits_of_tenants_hold() {
    for preset in Preset::ALL {
        let decision = asked(preset, 3, |world| {
            world.tenant("default").max("default", 2);
        });
        assert_eq!(jobs_placed(&decision), ["1"], "{preset:?}");
        assert_eq!(reason(&decision, "2"), Some(Reason::TenantAtMax), "{preset:?}");
    }
}

#[test]
fn a_wide_job_needs_room_for_all_its_slots() {
    for preset in Preset::ALL {
        let decision = asked(preset, 1, |world| {
            world.snapshot.jobs.clear();
            world.job("6").slots(4).rescored(4);
            world.job("7").slots(3).rescored(4);
            world.snapshot.policy.reserve = false;
        });
        assert_eq!(placed(&decision), pairs([("7", "w")]), "{preset:?}");
    }
}

#[test]
fn the_submitters_delay_is_always_kept() {
    for preset in Preset::ALL {
        for to_capacity in [false, true] {
            let decision = asked(preset, 1, |world| {
                world.policy().proactive_fetch_to_capacity = to_capacity;
                world.snapshot.jobs.clear();
                world.job("6").not_before_ms(1).rescored(4);
            });
            assert_eq!(reason(&decision, "6"), Some(Reason::NotBefore), "{preset:?}");
        }
    }
}

#[test]
fn nobody_is_deferred_because_one_worker_asked() {
    for preset in Preset::ALL {
        let decision = asked(preset, 1, |world| world.job("6").needs("os", &["plan9"]).done());
        assert_eq!(deferred(&decision), [], "{preset:?}");
    }
}

#[test]
fn nobody_is_preempted_because_one_worker_asked() {
    let decision = decided(Preset::Cohort, |world| {
        world.policy().preemption.enabled = true;
        world.tenant("a").min("default", 1);
        world.worker("w").types(&["xls"]);
        world.worker("x").types(&["pdf"]);
        world.attempt("9", "x").tenant("b").kind("pdf");
        world.job("1").tenant("a").kind("pdf").priority(5).age_s(60);
        world.freed("w", 1);
    });
    assert_eq!(preempted(&decision), []);
}
