//! The meaning of left out fields.

use model::tenant::TENANT_DEFAULT;
use model::worker::POOL_DEFAULT;
use model::{
    Ask, Averages, Cluster, Eviction, Fixed, Freed, Inputs, Job, JobId, JobType, Millis, Name,
    Preset, Resource, Tenant, TenantId, Timestamp, Trait, Worker, WorkerId,
};

use super::{EXAMPLES, example, parsed, refusal};

#[test]
fn an_empty_object_is_an_empty_world() {
    let snapshot = parsed("{}");
    assert_eq!(snapshot.now, Timestamp(0));
    assert_eq!(snapshot.seed, 0);
    assert_eq!(snapshot.policy, Preset::Balanced.policy());
    assert_eq!(snapshot.budget, None);
    assert_eq!(snapshot.freed, None);
    assert_eq!(snapshot.cluster, Cluster::default());
    assert!(snapshot.tenants.is_empty() && snapshot.workers.is_empty() && snapshot.jobs.is_empty());
}

#[test]
fn null_is_the_same_as_left_out() {
    let nulls = r#"{ "now_ms": null, "seed": null, "policy": null, "budget": null, "tenants": null,
        "resources": null, "types": null, "workers": null, "jobs": null, "attempts": null,
        "evictions": null, "event": null, "cluster": null }"#;
    assert_eq!(parsed(nulls), parsed("{}"));
    let nulls = r#"{ "event": { "freed": null }, "cluster": { "avg_5m": { "wait_s": null } },
        "budget": { "limit": null },
        "workers": [{ "id": 1, "has": { "os": null }, "metrics": { "cpu_pct": null } }],
        "jobs": [{ "id": 1, "needs": { "os": null }, "tenant": null, "inputs": { "1": null } }] }"#;
    let absent = r#"{ "workers": [{ "id": 1 }], "jobs": [{ "id": 1 }] }"#;
    assert_eq!(parsed(nulls), parsed(absent));
}

#[test]
fn job_with_only_an_id_is_ready_now() {
    let snapshot = parsed(r#"{ "now_ms": 5000, "jobs": [{ "id": 7 }] }"#);
    let tenant = TenantId::new(TENANT_DEFAULT);
    assert_eq!(snapshot.jobs, [Job::new(JobId::number(7), tenant.clone(), Timestamp(5000))]);
    assert_eq!(snapshot.tenants, [Tenant::new(tenant)]);
}

#[test]
fn a_job_is_ready_when_it_was_created() {
    let snapshot = parsed(
        r#"{ "now_ms": 5000, "jobs": [{ "id": 1, "created_ms": 1000 },
                                      { "id": 2, "created_ms": 1000, "ready_ms": 2000 },
                                      { "id": 3, "ready_ms": -2000 }] }"#,
    );
    let moments: Vec<(i64, i64)> =
        snapshot.jobs.iter().map(|job| (job.created.0, job.ready.0)).collect();
    assert_eq!(moments, [(1000, 1000), (1000, 2000), (5000, -2000)]);
}

#[test]
fn worker_with_only_an_id_has_one_slot_in_the_default_pool() {
    let snapshot = parsed(r#"{ "workers": [{ "id": "w" }] }"#);
    assert_eq!(snapshot.workers, [Worker::new(WorkerId::new("w"))]);
    assert_eq!(snapshot.workers[0].slots_free, None, "absent is not zero");
}

#[test]
fn an_attempt_started_now_and_was_ready_then() {
    let snapshot = parsed(
        r#"{ "now_ms": 5000, "workers": [{ "id": 1 }], "attempts": [
            { "job": 1, "worker": 1 },
            { "job": 2, "worker": 1, "started_ms": 3000 },
            { "job": 3, "worker": 1, "started_ms": 3000, "ready_ms": 2000 }] }"#,
    );
    let moments: Vec<(i64, i64)> =
        snapshot.attempts.iter().map(|attempt| (attempt.ready.0, attempt.started.0)).collect();
    assert_eq!(moments, [(5000, 5000), (3000, 3000), (2000, 3000)]);
    let attempt = &snapshot.attempts[0];
    assert_eq!((attempt.slots, attempt.priority, attempt.evictions), (1, 0, 0));
    assert_eq!((attempt.cost, attempt.estimate), (Fixed::ONE, None));
    assert_eq!((&attempt.holds, &attempt.stopping_for), (&None, &None));
}

#[test]
fn all_other_fields_have_defaults() {
    let snapshot = parsed(
        r#"{ "now_ms": 5, "types": [{ "name": "pdf" }], "evictions": [{}], "workers": [{ "id": 1 }],
             "tenants": [{ "id": "default", "quotas": [{}] }], "budget": { "limit": 2.5 },
             "event": { "freed": { "worker": 1 } }, "jobs": [{ "id": 1, "history": {} }] }"#,
    );
    assert_eq!(snapshot.types, [JobType::new(Name::new("pdf"))]);
    let (tenant, pool) = (TenantId::new(TENANT_DEFAULT), Name::new(POOL_DEFAULT));
    assert_eq!(snapshot.evictions, [Eviction { at: Timestamp(5), tenant, pool: pool.clone() }]);
    let quota = &snapshot.tenants[0].quotas[0];
    assert_eq!((&quota.pool, quota.min, quota.max), (&pool, 0, None));
    assert_eq!(snapshot.freed, Some(Freed { worker: WorkerId::number(1), completed: 1 }));
    let budget = snapshot.budget.expect("a budget was given");
    assert_eq!((budget.limit, budget.used), (Fixed::thousandths(2500), Fixed::ZERO));
    assert_eq!(snapshot.jobs[0].history.map(|history| history.samples), Some(1));
}

#[test]
fn ids_are_the_same_as_strings_and_as_numbers() {
    let numbers = r#"{ "workers": [{ "id": 7 }], "event": { "freed": { "worker": "7" } },
                       "jobs": [{ "id": "3", "inputs": { "7": { "missing_paths": 0 } } }] }"#;
    let strings = r#"{ "workers": [{ "id": "7" }], "event": { "freed": { "worker": 7 } },
                       "jobs": [{ "id": 3, "inputs": { "7": { "missing_paths": 0 } } }] }"#;
    assert_eq!(parsed(numbers), parsed(strings));
    let inputs = &parsed(numbers).jobs[0].inputs[&WorkerId::number(7)];
    assert_eq!(*inputs, Inputs { missing_paths: Some(0), missing_bytes: None });
}

#[test]
fn without_a_list_tenants_are_those_that_anything_names() {
    let snapshot = parsed(
        r#"{ "workers": [{ "id": 1 }], "evictions": [{ "tenant": "a" }],
             "jobs": [{ "id": 1, "tenant": "d" }, { "id": 2, "tenant": "d" }],
             "attempts": [{ "job": 3, "worker": 1, "tenant": "c" }],
             "resources": [{ "name": "r", "tenant": "b" }, { "name": "s" }] }"#,
    );
    let expected = ["a", "b", "c", "d"].map(|id| Tenant::new(TenantId::new(id)));
    assert_eq!(snapshot.tenants, expected);
}

#[test]
fn resources_that_are_named_exist_and_attempts_hold_them() {
    let snapshot = parsed(
        r#"{ "workers": [{ "id": 1 }], "resources": [{ "name": "listed" }, { "name": "free" }],
             "jobs": [{ "id": 1, "resource": "asked" }, { "id": 2, "resource": "*" }],
             "attempts": [{ "job": 3, "worker": 1, "resource": "listed" },
                          { "job": 4, "worker": 1, "resource": "held" },
                          { "job": 5, "worker": 1, "resource": "*" }] }"#,
    );
    let resource = |name: &str, holder: Option<u64>| Resource {
        name: Name::new(name),
        tenant: None,
        holder: holder.map(JobId::number),
    };
    let expected = [
        resource("asked", None),
        resource("free", None),
        resource("held", Some(4)),
        resource("listed", Some(3)),
    ];
    assert_eq!(snapshot.resources, expected);
    assert_eq!(snapshot.jobs[1].resource, Some(Ask::Any));
    assert_eq!(snapshot.attempts[2].holds, Some(Ask::Any));
}

#[test]
fn a_job_may_have_run_on_a_worker_that_is_gone() {
    let snapshot = parsed(r#"{ "jobs": [{ "id": 1, "last_worker": "gone" }] }"#);
    assert_eq!(snapshot.jobs[0].last_worker, Some(WorkerId::new("gone")));
}

#[test]
fn lists_are_sorted_and_have_no_doubles() {
    let snapshot = parsed(
        r#"{ "workers": [{ "id": 10, "types": ["b", "a", "b"], "hints": ["y", "x", "y"],
                           "has": { "os": ["c", "b", "c"], "none": [] } }, { "id": 9 }],
             "jobs": [{ "id": "b" }, { "id": 10, "needs": { "os": ["c", "a", "c"] } },
                      { "id": 9 }] }"#,
    );
    let names = |names: &[&str]| names.iter().map(|name| Name::new(name)).collect::<Vec<Name>>();
    let worker = &snapshot.workers[1];
    assert_eq!((&worker.types, &worker.hints), (&names(&["a", "b"]), &names(&["x", "y"])));
    assert_eq!(worker.has.iter().collect::<Vec<_>>(), [(&Name::new("os"), &names(&["b", "c"]))]);
    let ids: Vec<String> = snapshot.jobs.iter().map(|job| job.id.to_string()).collect();
    assert_eq!(ids, ["9", "10", "b"]);
    assert_eq!(snapshot.jobs[1].needs[&Name::new("os")], names(&["a", "c"]));
}

#[test]
fn numbers_are_rounded_to_three_decimals_where_they_have_decimals() {
    let snapshot = parsed(
        r#"{ "jobs": [{ "id": 1, "cost": 0.0005, "estimate_s": 1.23456, "slots": 2.0 }],
             "cluster": { "avg_24h": { "wait_s": 2e3 } } }"#,
    );
    let job = &snapshot.jobs[0];
    assert_eq!((job.cost, job.slots), (Fixed::thousandths(1), 2));
    assert_eq!(job.estimate, Some(Millis(1235)));
    let day = Averages { wait_s: Some(Fixed::whole(2000)), ..Averages::default() };
    assert_eq!(snapshot.cluster.avg_24h, day);
}

#[test]
fn traits_are_a_set() {
    let snapshot =
        parsed(r#"{ "jobs": [{ "id": 1, "traits": ["network", "light", "network"] }] }"#);
    let traits: Vec<Trait> = snapshot.jobs[0].traits.iter().collect();
    assert_eq!(traits, [Trait::Light, Trait::Network]);
}

#[test]
fn byte_order_mark_is_skipped() {
    assert_eq!(parsed("\u{feff}{}"), parsed("{}"));
}

#[test]
fn json_error_has_line_and_column() {
    let expected = "not JSON: expected `,` or `}` at line 3, column 3";
    assert_eq!(refusal("{\n  \"seed\": 1\n  \"now_ms\": 2\n}"), expected);
    assert_eq!(
        refusal(""),
        "not JSON: EOF while parsing a value at line 1, column 0\nhint: the text ends too early"
    );
}

#[test]
fn examples_are_valid() {
    for name in EXAMPLES {
        let snapshot = parsed(&example(name));
        assert!(!snapshot.jobs.is_empty(), "{name}");
    }
}
