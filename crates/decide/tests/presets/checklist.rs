//! Beside the one reason: all that apply, whose turn it is, and the nearest workers.

use decide::Explanation;
use model::{Fixed, Job, JobId, Name, Preset, Reason, TenantId};

use crate::world::{NOW, World, decided_live};

/// Why job 1 waits, after a decision.
fn explained(preset: Preset, describe: impl FnOnce(&mut World)) -> Explanation {
    let mut live = decided_live(preset, describe);
    live.explain_all(&JobId::new("1"), NOW).expect("job 1 waits")
}

fn codes(explanation: &Explanation) -> Vec<&'static str> {
    explanation.checks.iter().map(|check| check.reason.name()).collect()
}

#[test]
fn all_reasons_that_apply_are_listed_and_the_first_is_the_one_told() {
    let build = |world: &mut World| {
        world.worker("w");
        world.attempt("9", "w");
        world.tenant("a").paused().budget(0);
        world.job("1").tenant("a").not_before_ms(5_000);
    };
    let explanation = explained(Preset::Aging, build);
    assert_eq!(
        codes(&explanation),
        ["tenant-paused", "budget-spent", "not-before", "workers-full"]
    );
    let hold = decided_live(Preset::Aging, build).explain(&JobId::new("1"), NOW).unwrap();
    assert_eq!(hold.reason, Reason::TenantPaused);
    assert_eq!(explanation.checks[1].numbers["cost"], Fixed::ONE);
    assert_eq!(explanation.checks[2].numbers["tried_in_s"], Fixed::whole(5));
}

#[test]
fn the_scarce_resource_is_named_with_the_jobs_that_use_it() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("g1").slots(8).amount("gpu", 2);
        world.worker("c1").slots(8);
        world.attempt("12", "g1").amount("gpu", 1);
        world.attempt("15", "g1").amount("gpu", 1);
        world.attempt("16", "g1");
        world.job("1").amount("gpu", 1);
    });
    let check = &explanation.checks[0];
    assert_eq!(check.reason, Reason::WorkersFull);
    let expected = "waiting for gpu: 2 of 2 in use on g1 by jobs 12 and 15; it starts when one is \
                    free";
    assert_eq!(check.detail, expected);
    assert_eq!(
        (check.numbers["in_use"], check.numbers["total"]),
        (Fixed::whole(2), Fixed::whole(2))
    );
    assert_eq!(check.jobs, [JobId::new("12"), JobId::new("15")]);
    let lacks: Vec<(String, Vec<String>)> = explanation
        .nearest
        .iter()
        .map(|near| (near.worker.to_string(), near.lacks.clone()))
        .collect();
    let expected = [("c1", "has 0 of the 1 gpu"), ("g1", "0 of 2 gpu free, 1 needed")];
    assert_eq!(lacks, expected.map(|(id, lack)| (id.to_owned(), vec![lack.to_owned()])));
}

#[test]
fn a_wide_job_waits_for_slots_of_one_worker() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("w").slots(4);
        world.worker("x").slots(2);
        world.attempt("8", "w").slots(3);
        world.job("1").slots(4);
    });
    let expected = "waiting for 4 slots on one worker: 3 of 4 in use on w by job 8; it starts when \
                    4 are free";
    assert_eq!(explanation.checks[0].detail, expected);
}

#[test]
fn the_nearest_workers_say_what_each_lacks() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("a").types(&["xls"]).offers("os", &["linux"]);
        world.worker("b").types(&["pdf"]).offers("os", &["linux"]);
        world.worker("c").types(&["pdf"]).pool("red").draining();
        world.worker("d").types(&["xls"]).pool("red").draining();
        world.job("1").kind("pdf").needs("os", &["bsd"]);
    });
    assert_eq!(codes(&explanation), ["no-worker-ever"]);
    let near: Vec<String> = explanation
        .nearest
        .iter()
        .map(|near| format!("{}: {}", near.worker, near.lacks.join(", ")))
        .collect();
    let expected = [
        "b: has os=linux, not bsd",
        "a: does not run type pdf, has os=linux, not bsd",
        "c: has no os=bsd, takes no new jobs",
    ];
    assert_eq!(near, expected);
}

#[test]
fn whose_turn_it_is_is_told_with_numbers() {
    let explanation = explained(Preset::Balanced, |world| {
        world.worker("w").slots(8);
        world.tenant("acme").weight(3);
        world.tenant("globex");
        for job in 10..18 {
            world.attempt(&job.to_string(), "w").tenant("globex");
        }
        world.job("1").tenant("acme");
        world.job("2").tenant("globex");
    });
    assert_eq!(codes(&explanation), ["workers-full", "outranked"]);
    let detail = &explanation.checks[0].detail;
    assert!(detail.contains("acme has 0 of 8 slots and is due 6; "), "{detail}");
    let turn = &explanation.checks[1];
    assert_eq!(turn.numbers["due"], Fixed::whole(6));
    assert_eq!(turn.numbers["slots"], Fixed::ZERO);
    assert_eq!(turn.tenants.len(), 2);
}

#[test]
fn a_tenant_without_rivals_has_no_turn() {
    let explanation = explained(Preset::Balanced, |world| {
        world.worker("w");
        world.attempt("9", "w").tenant("globex");
        world.job("1").tenant("acme");
    });
    assert_eq!(codes(&explanation), ["workers-full"]);
}

#[test]
fn where_tenants_do_not_share_the_jobs_before_it_are_counted() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("w");
        world.attempt("9", "w");
        world.job("1").tenant("acme");
        world.job("2").tenant("globex").age_s(60);
        world.job("3").tenant("globex").age_s(70);
    });
    let detail = &explanation.checks[0].detail;
    assert!(
        detail.ends_with("; 2 jobs of tenant globex go first, by the order of jobs"),
        "{detail}"
    );
}

#[test]
fn a_preemption_without_a_victim_says_that_none_is_less_important() {
    let explanation = explained(Preset::Cohort, |world| {
        world.policy().preemption.enabled = true;
        world.tenant("a").min("default", 1);
        world.worker("w");
        world.attempt("9", "w").tenant("b").priority(5);
        world.job("1").tenant("a").priority(1).age_s(60);
    });
    let detail = &explanation.checks[0].detail;
    let expected = "tenant a has 0 of its minimum of 1 slots in pool default, but nothing is \
                    stopped for it: no job of another tenant there is less important";
    assert!(detail.contains(expected), "{detail}");
}

#[test]
fn a_lock_of_another_tenant_is_never_free() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("w");
        world.resource("repo").tenant("b");
        world.job("1").tenant("a").holding("repo");
    });
    assert_eq!(codes(&explanation), ["no-resource-ever"]);
    assert!(explanation.checks[0].detail.contains("of tenant b"), "{explanation:?}");
}

#[test]
fn a_tenant_without_workspaces_never_gets_one() {
    let explanation = explained(Preset::Aging, |world| {
        world.worker("w");
        world.job("1").tenant("a").holding_any();
    });
    assert_eq!(codes(&explanation), ["no-resource-ever"]);
}

#[test]
fn jobs_are_counted_by_reason_tenant_and_type() {
    let mut live = decided_live(Preset::Aging, |world| {
        world.worker("w");
        world.attempt("9", "w");
        world.tenant("b").paused();
        world.job("1").tenant("a").kind("pdf");
        world.job("2").tenant("a").kind("pdf");
        world.job("3").tenant("b").kind("pdf");
        world.job("4").tenant("a").kind("xls").not_before_ms(1);
    });
    let counts = live.waiting_by_reason(NOW);
    let name = |kind: &Option<Name>| kind.as_ref().map(ToString::to_string).unwrap_or_default();
    let counts: Vec<(&str, String, String, u64)> = counts
        .iter()
        .map(|one| (one.reason.name(), one.tenant.to_string(), name(&one.kind), one.n_jobs))
        .collect();
    let expected = [
        ("tenant-paused", "b", "pdf", 1),
        ("not-before", "a", "xls", 1),
        ("workers-full", "a", "pdf", 2),
    ];
    let expected =
        expected.map(|(reason, tenant, kind, n)| (reason, tenant.to_owned(), kind.to_owned(), n));
    assert_eq!(counts, expected);
}

#[test]
fn a_guest_is_explained_and_leaves_no_trace() {
    let mut live = decided_live(Preset::Balanced, |world| {
        world.worker("w").types(&["rare"]);
        world.attempt("9", "w").kind("rare");
    });
    let id = JobId::new("2");
    let kind = Some(Name::new("rare"));
    let guest = Job { kind, ..Job::new(id.clone(), TenantId::new("default"), NOW) };
    let explanation = live.with_guest(&guest, |world| world.explain_all(&id, NOW));
    assert_eq!(codes(&explanation.expect("it stands in line for a moment")), ["workers-full"]);
    let types = live.snapshot().types;
    assert!(
        types.iter().all(|kind| kind.recent.is_none()),
        "its arrival is not counted: {types:?}"
    );
    assert_eq!(live.explain_all(&id, NOW), None);
}

/// Its workers may be elsewhere.
#[test]
fn a_quota_holds_in_a_pool_without_workers() {
    let explanation = explained(Preset::Balanced, |world| {
        world.tenant("a").max("gpu", 0);
        world.job("1").tenant("a").pool("gpu");
    });
    assert_eq!(codes(&explanation), ["no-worker-ever", "tenant-at-max"]);
}
