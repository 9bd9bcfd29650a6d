//! Valid scheduler states of every shape, for tests.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Map, Value, json};

/// A valid snapshot as JSON. Each field is there in some cases.
pub(crate) fn any_world() -> impl Strategy<Value = Value> {
    let head = object(vec![
        field("now_ms", moment()),
        field("seed", any::<u64>().prop_map(Value::from).boxed()),
        field("policy", policy()),
        field("budget", object(vec![field("limit", number()), field("used", number())])),
        field("cluster", cluster()),
    ]);
    let jobs = vec(object(job_fields()), 0..6);
    let attempts = vec(object(attempt_fields()), 0..4);
    let workers = vec(object(worker_fields()), 0..4);
    let tenants = vec(object(tenant_fields()), 0..4);
    let evictions = vec(object(eviction_fields()), 0..3);
    let types = vec(object(type_fields()), 0..3);
    let lists = (jobs, attempts, workers, tenants, evictions, types);
    (head, lists, any::<bool>(), count()).prop_map(|(mut world, lists, has_tenants, completed)| {
        let (jobs, attempts, mut workers, mut tenants, evictions, types) = lists;
        // Inputs and attempts name workers 0 to 3.
        workers.resize(4, json!({}));
        number_by("id", &mut workers, 0);
        tenants.resize(4, json!({}));
        for (tenant, id) in tenants.iter_mut().zip(TENANTS) {
            tenant["id"] = json!(id);
        }
        let (mut jobs, mut attempts, mut types) = (jobs, attempts, types);
        number_by("id", &mut jobs, 0);
        number_by("job", &mut attempts, 100);
        for (n, kind) in types.iter_mut().enumerate() {
            kind["name"] = json!(format!("type-{n}"));
        }
        // A resource has one holder.
        for (n, attempt) in attempts.iter_mut().enumerate() {
            attempt["worker"] = json!(n % 4);
            if n % 2 == 0 {
                attempt["resource"] = json!(format!("held-{n}"));
            }
        }
        world["jobs"] = json!(jobs);
        world["attempts"] = json!(attempts);
        world["workers"] = json!(workers);
        world["types"] = json!(types);
        world["evictions"] = json!(evictions);
        world["resources"] = json!([{ "name": "listed", "holder": 77 }, { "name": "held-0" },
                                    { "name": "owned", "tenant": "acme" }]);
        world["event"] = json!({ "freed": { "worker": 2, "completed": completed } });
        if has_tenants {
            world["tenants"] = json!(tenants);
        }
        world
    })
}

const TENANTS: [&str; 4] = ["default", "acme", "globex", "7"];

fn number_by(field: &str, entries: &mut [Value], first: usize) {
    for (n, entry) in entries.iter_mut().enumerate() {
        entry[field] = json!(first + n);
    }
}

type Field = (&'static str, BoxedStrategy<Value>);

fn field(name: &'static str, value: BoxedStrategy<Value>) -> Field {
    (name, value)
}

/// An object with some of the fields, some of them null.
fn object(fields: Vec<Field>) -> BoxedStrategy<Value> {
    let names: Vec<&'static str> = fields.iter().map(|(name, _)| *name).collect();
    let values: Vec<BoxedStrategy<Option<Option<Value>>>> = fields
        .into_iter()
        .map(|(_, value)| {
            prop_oneof![
                3 => Just(None),
                6 => value.prop_map(|value| Some(Some(value))),
                1 => Just(Some(None)),
            ]
            .boxed()
        })
        .collect();
    let named = values.prop_map(move |values| {
        let given = names.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        let entries = given.map(|(name, value)| ((*name).to_owned(), value.unwrap_or(Value::Null)));
        Value::Object(entries.collect::<Map<String, Value>>())
    });
    named.boxed()
}

fn name() -> BoxedStrategy<Value> {
    select(vec!["a", "linux", "pdf", "7", "007", "ünïcode", "with space", "`"])
        .prop_map(Value::from)
        .boxed()
}

fn names() -> BoxedStrategy<Value> {
    vec(name(), 1..4).prop_map(Value::from).boxed()
}

fn table(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let key = name().prop_map(|name| name.as_str().unwrap_or_default().to_owned());
    btree_map(key, value, 0..3).prop_map(|table| Value::Object(table.into_iter().collect())).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

fn count() -> BoxedStrategy<Value> {
    prop_oneof![Just(0), 0..100_u32, Just(u32::MAX)].prop_map(Value::from).boxed()
}

fn slots() -> BoxedStrategy<Value> {
    prop_oneof![1..10_u32, Just(100_000)].prop_map(Value::from).boxed()
}

fn quantity() -> BoxedStrategy<Value> {
    prop_oneof![0..1_000_u64, 0..=1_000_000_000_000_u64].prop_map(Value::from).boxed()
}

fn moment() -> BoxedStrategy<Value> {
    prop_oneof![0..1_000_i64, -100_000_000_000_000..=100_000_000_000_000_i64]
        .prop_map(Value::from)
        .boxed()
}

fn priority() -> BoxedStrategy<Value> {
    (-1_000..=1_000_i32).prop_map(Value::from).boxed()
}

fn number() -> BoxedStrategy<Value> {
    let thousandths = (0..=999_999_999_999_999_i64)
        .prop_map(|number| format!("{}.{:03}", number / 1_000, number % 1_000));
    let decimals =
        prop_oneof![thousandths.prop_map(|text| parse(&text)), (0.0..10.0).prop_map(Value::from)];
    prop_oneof![quantity(), decimals].boxed()
}

fn weight() -> BoxedStrategy<Value> {
    prop_oneof![(0.0..=100.0).prop_map(Value::from), Just(json!(0)), Just(json!(100))].boxed()
}

fn parse(text: &str) -> Value {
    serde_json::from_str(text).expect("digits and a point are JSON")
}

fn rate() -> BoxedStrategy<Value> {
    prop_oneof![(0.0..=1.0).prop_map(Value::from), Just(json!(0)), Just(json!(1))].boxed()
}

fn seconds() -> BoxedStrategy<Value> {
    prop_oneof![0..100_u64, 0..=10_000_000_000_u64].prop_map(Value::from).boxed()
}

fn traits() -> BoxedStrategy<Value> {
    let all = vec!["evaluation", "cached", "light", "network", "prefer-local"];
    subsequence(all, 0..=5).prop_map(Value::from).boxed()
}

fn tenant() -> BoxedStrategy<Value> {
    select(TENANTS.to_vec()).prop_map(Value::from).boxed()
}

fn job_fields() -> Vec<Field> {
    let inputs = object(vec![field("missing_paths", count()), field("missing_bytes", quantity())]);
    let inputs = btree_map(select(vec!["0", "1", "2", "3"]), inputs, 0..3).prop_map(|inputs| {
        Value::Object(inputs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    });
    let history = object(vec![
        field("samples", count()),
        field("ram_peak_mb", quantity()),
        field("cpu_ms", quantity()),
        field("disk_bytes", quantity()),
        field("duration_s", seconds()),
        field("oom_rate", rate()),
    ]);
    vec![
        field("tenant", tenant()),
        field("type", name()),
        field("pool", name()),
        field("needs", table(names())),
        field("slots", slots()),
        field("amounts", table(quantity())),
        field("priority", priority()),
        field("on_demand", flag()),
        field("created_ms", moment()),
        field("ready_ms", moment()),
        field("not_before_ms", moment()),
        field("backoff_until_ms", moment()),
        field("evictions", count()),
        field("estimate_s", seconds()),
        field("last_worker", name()),
        field("traits", traits()),
        field("hint", name()),
        field("resource", select(vec!["*", "listed", "unlisted"]).prop_map(Value::from).boxed()),
        field("cost", number()),
        field("dependents", count()),
        field("inputs", inputs.boxed()),
        field("rescore_count", count()),
        field("history", history),
        field("promised", (0..4_u32).prop_map(Value::from).boxed()),
    ]
}

fn attempt_fields() -> Vec<Field> {
    vec![
        field("tenant", tenant()),
        field("type", name()),
        field("needs", table(names())),
        field("slots", slots()),
        field("amounts", table(quantity())),
        field("priority", priority()),
        field("ready_ms", moment()),
        field("started_ms", moment()),
        field("cost", number()),
        field("estimate_s", seconds()),
        field("on_demand", flag()),
        field("evictions", count()),
        field("traits", traits()),
        field("resource", Just(json!("*")).boxed()),
        field("stopping_for", name()),
    ]
}

fn worker_fields() -> Vec<Field> {
    let metrics = object(vec![
        field("cpu_pct", (0.0..=100.0).prop_map(Value::from).boxed()),
        field("ram_free_mb", quantity()),
        field("ram_total_mb", quantity()),
        field("cpu_score", number()),
        field("net_mbps", number()),
        field("disk_mbps", number()),
    ]);
    vec![
        field("pool", name()),
        field("types", names()),
        field("type_max", table(count())),
        field("has", table(prop_oneof![names(), name(), Just(json!([]))].boxed())),
        field("slots", slots()),
        field("slots_free", (0..10_u32).prop_map(Value::from).boxed()),
        field("amounts", table(quantity())),
        field("rank", (-1_000_000..=1_000_000_i32).prop_map(Value::from).boxed()),
        field("healthy", flag()),
        field("draining", flag()),
        field("hints", names()),
        field("metrics", metrics),
    ]
}

fn tenant_fields() -> Vec<Field> {
    let quota = (object(vec![field("pool", name())]), 0..10_u32, 10..20_u32).prop_map(
        |(mut quota, min, max)| {
            quota["min"] = json!(min);
            quota["max"] = json!(max);
            quota
        },
    );
    vec![
        field("weight", number()),
        field("active", flag()),
        field("used", number()),
        field("completed", quantity()),
        field("account", account()),
        field("budget", number()),
        field("jobs_max", count()),
        field("workspaces", count()),
        field("quotas", vec(quota, 0..2).prop_map(without_doubles).boxed()),
    ]
}

/// An account of a tenant.
fn account() -> BoxedStrategy<Value> {
    let mark =
        (moment(), whole()).prop_map(|(at, served)| json!({ "at_ms": at, "served": served }));
    object(vec![
        field("ahead", (-999_999_999_999_i64..=999_999_999_999).prop_map(Value::from).boxed()),
        field("competes", flag()),
        field("served", whole()),
        field("queue_max", whole()),
        field("queue_max_before", whole()),
        field("queue_since", whole()),
        field("marks", vec(mark, 0..4).prop_map(Value::Array).boxed()),
        field("judged", number()),
        field("judged_sum", whole()),
        field("judged_squares", whole()),
        field("judged_errors", whole()),
    ])
}

/// Slot-milliseconds, up to the largest count.
fn whole() -> BoxedStrategy<Value> {
    prop_oneof![0..100_i64, 0..=i64::MAX].prop_map(Value::from).boxed()
}

/// Removes quotas of a repeated pool.
fn without_doubles(mut quotas: Vec<Value>) -> Value {
    quotas.dedup_by_key(|quota| quota["pool"].as_str().unwrap_or("default").to_owned());
    Value::Array(quotas)
}

fn eviction_fields() -> Vec<Field> {
    vec![field("tenant", tenant()), field("pool", name()), field("at_ms", moment())]
}

fn type_fields() -> Vec<Field> {
    vec![
        field("pool", name()),
        field("jobs_max", count()),
        field("worker_max", count()),
        field("rotation", any::<u64>().prop_map(Value::from).boxed()),
        field("seen_ms", moment()),
    ]
}

fn cluster() -> BoxedStrategy<Value> {
    let window = || {
        object(vec![
            field("wait_s", number()),
            field("duration_s", number()),
            field("missing_paths", number()),
            field("missing_mib", number()),
            field("dependencies", number()),
            field("cpu_ms", number()),
            field("oom_rate", rate()),
            field("network_mbps", number()),
            field("disk_bytes", number()),
        ])
    };
    object(vec![field("avg_5m", window()), field("avg_1h", window()), field("avg_24h", window())])
}

fn policy() -> BoxedStrategy<Value> {
    let preset = |names: &[&'static str]| select(names.to_vec());
    let all = model::Preset::ALL.map(model::Preset::name);
    let plain = preset(&all).prop_map(Value::from);
    let common = || {
        object(vec![
            field("proactive_fetch_to_capacity", flag()),
            field("proactive_fetch_literal", flag()),
            field(
                "preemption",
                object(vec![
                    field("enabled", flag()),
                    field("delay_ms", quantity()),
                    field("min_run_ms", quantity()),
                    field("evictions_max", count()),
                ]),
            ),
        ])
    };
    let weights = object(vec![field("rank", number()), field("hint", number())]);
    let sampling = (weights, 1..100_u32).prop_map(
        |(weights, size)| json!({ "sample_size": size, "max_attempts": 3, "weights": weights }),
    );
    let assigner = object(vec![
        field("sampling", sampling.boxed()),
        field("priority_percentage", (0..=100_u32).prop_map(Value::from).boxed()),
        field("failure_backoff_ms", quantity()),
    ]);
    let cohort = object(vec![field("eviction_cooldown_ms", quantity())]);
    let balanced = object(vec![
        field("fair_slack_ms", quantity()),
        field("interactive_share", rate()),
        field("fair", flag()),
        field("share", flag()),
        field("guard", flag()),
        field("reserve", flag()),
        field("reserve_wait_max_ms", quantity()),
        field("rules", object(vec![field("load", weight()), field("headroom", weight())])),
    ]);
    let rules = object(vec![field("org-share", weight()), field("wait", weight())]);
    let summed = object(vec![field("rules", rules)]);
    let with = |presets: &[&'static str], own: BoxedStrategy<Value>| {
        (preset(presets), common(), own).prop_map(|(preset, mut policy, own)| {
            policy["preset"] = json!(preset);
            for (key, value) in own.as_object().into_iter().flatten() {
                policy[key] = value.clone();
            }
            policy
        })
    };
    prop_oneof![
        plain,
        with(&["priority-age", "cohort"], assigner),
        with(&["cohort"], cohort),
        with(&["balanced"], balanced),
        with(&["simple", "resource-aware"], summed),
        with(&all, Just(json!({})).boxed()),
    ]
    .boxed()
}
