//! Each documented maximum, just reached and just exceeded, and large or deep texts.

use model::maxima::{
    AMOUNTS_MAX, EVICTIONS_MAX, HINTS_MAX, KEYS_MAX, NAME_BYTES_MAX, QUOTAS_MAX, RESOURCES_MAX,
    TENANTS_MAX, TYPES_MAX, VALUES_MAX, WORKER_TYPES_MAX, WORKERS_MAX,
};

use super::{parsed, refusal};

/// `n` entries of their numbers, joined by commas.
fn entries(n: usize, entry: impl Fn(usize) -> String) -> String {
    (0..n).map(entry).collect::<Vec<String>>().join(",")
}

/// Asserts that `most` entries in `around` are accepted, and that one more is rejected at `path`.
fn check(path: &str, most: usize, around: [&str; 2], entry: impl Fn(usize) -> String) {
    let [before, after] = around;
    parsed(&format!("{before}{}{after}", entries(most, &entry)));
    let refused = refusal(&format!("{before}{}{after}", entries(most + 1, &entry)));
    assert_eq!(refused, format!("`{path}` has more than {most} entries"));
}

#[test]
fn small_lists_have_their_maxima() {
    let number = |n: usize| format!("\"{n}\"");
    let one_of = |n: usize| format!("\"{n}\": 1");
    let any_of = |n: usize| format!("\"{n}\": \"a\"");
    let job = |field: &'static str| format!("{{\"jobs\": [{{\"id\": 1, \"{field}\": {{");
    let worker = |field: &'static str| format!("{{\"workers\": [{{\"id\": 1, \"{field}\": ");
    check("jobs[0].needs", KEYS_MAX, [&job("needs"), "}}]}"], any_of);
    check("jobs[0].amounts", AMOUNTS_MAX, [&job("amounts"), "}}]}"], one_of);
    let needs = format!("{}\"os\": [", job("needs"));
    check("jobs[0].needs.os", VALUES_MAX, [&needs, "]}}]}"], number);
    let types = format!("{}[", worker("types"));
    check("workers[0].types", WORKER_TYPES_MAX, [&types, "]}]}"], number);
    let type_max = format!("{}{{", worker("type_max"));
    check("workers[0].type_max", WORKER_TYPES_MAX, [&type_max, "}}]}"], one_of);
    let hints = format!("{}[", worker("hints"));
    check("workers[0].hints", HINTS_MAX, [&hints, "]}]}"], number);
    let has = format!("{}{{", worker("has"));
    check("workers[0].has", KEYS_MAX, [&has, "}}]}"], any_of);
    let quota = |n: usize| format!("{{\"pool\": \"{n}\"}}");
    let quotas = ["{\"tenants\": [{\"id\": 1, \"quotas\": [", "]}]}"];
    check("tenants[0].quotas", QUOTAS_MAX, quotas, quota);
}

#[test]
fn large_lists_have_their_maxima() {
    let id = |n: usize| format!("{{\"id\": {n}}}");
    let name = |n: usize| format!("{{\"name\": \"{n}\"}}");
    check("tenants", TENANTS_MAX, ["{\"tenants\": [", "]}"], id);
    check("workers", WORKERS_MAX, ["{\"workers\": [", "]}"], id);
    check("types", TYPES_MAX, ["{\"types\": [", "]}"], name);
    check("resources", RESOURCES_MAX, ["{\"resources\": [", "]}"], name);
    check("evictions", EVICTIONS_MAX, ["{\"evictions\": [", "]}"], |_| "{}".to_owned());
}

#[test]
fn tenants_that_are_only_named_have_their_maximum() {
    let text = |n: usize| {
        let jobs = entries(n, |n| format!("{{\"id\": {n}, \"tenant\": {n}}}"));
        format!("{{\"jobs\": [{jobs}]}}")
    };
    assert_eq!(parsed(&text(TENANTS_MAX)).tenants.len(), TENANTS_MAX);
    let expected = "`tenants` would be the 100001 that are named, more than 100000";
    assert_eq!(refusal(&text(TENANTS_MAX + 1)), expected);
}

#[test]
fn names_have_their_maximum_in_bytes() {
    let job = |name: &str| format!("{{\"jobs\": [{{\"id\": \"{name}\"}}]}}");
    parsed(&job(&"a".repeat(NAME_BYTES_MAX)));
    parsed(&job(&"é".repeat(NAME_BYTES_MAX / 2)));
    let expected = "`jobs[0].id` has 258 bytes, more than 256";
    assert_eq!(refusal(&job(&"é".repeat(NAME_BYTES_MAX / 2 + 1))), expected);
}

#[test]
fn error_message_stays_short() {
    let long = "x".repeat(1_000_000);
    for text in [
        format!("{{\"{long}\": 1}}"),
        format!("{{\"seed\": \"{long}\"}}"),
        format!("{{\"policy\": \"{long}\"}}"),
        format!("{{\"jobs\": [{{\"id\": 1, \"needs\": {{\"{long}\": \"a\"}}}}]}}"),
        format!("{{\"jobs\": [{{\"id\": 1, \"type\": \"{long}\"}}]}}"),
    ] {
        let refused = refusal(&text);
        assert!(refused.len() < 600, "{} bytes", refused.len());
    }
}

#[test]
fn deep_nesting_is_rejected_without_overflow() {
    const DEPTH: usize = 1_000_000;
    for (opening, closing) in [("[", "]"), ("{\"jobs\":", "}"), ("{\"policy\":", "}")] {
        let text = format!("{}{}", opening.repeat(DEPTH), closing.repeat(DEPTH));
        assert_ne!(refusal(&text), "accepted");
    }
    let lists = "[".repeat(DEPTH);
    for field in ["id", "needs", "traits", "inputs", "history", "cost"] {
        let refused = refusal(&format!("{{\"jobs\": [{{\"{field}\": {lists}"));
        assert!(refused.starts_with(&format!("`jobs[0].{field}")), "{refused}");
        assert!(refused.contains("is a list, not "), "{refused}");
    }
}

#[test]
fn a_hundred_thousand_jobs_are_read() {
    let text = crowd(100_000);
    let snapshot = parsed(&text);
    assert_eq!((snapshot.jobs.len(), snapshot.tenants.len()), (100_000, 50));
    assert_eq!(parsed(&snapshot::write_text(&snapshot)), snapshot);
}

fn crowd(n_jobs: usize) -> String {
    let workers = entries(100, |n| format!("{{\"id\": \"w{n}\", \"types\": [\"t{}\"]}}", n % 7));
    let jobs = entries(n_jobs, |n| {
        format!(
            "{{\"id\": {n}, \"tenant\": \"tenant-{}\", \"type\": \"t{}\", \"priority\": {}, \
             \"needs\": {{\"os\": [\"linux\", \"bsd\"]}}, \"amounts\": {{\"ram_mb\": 512}}, \
             \"created_ms\": {n}, \"estimate_s\": 12.5, \"inputs\": {{\"w1\": {{\"missing_bytes\": \
             {n}}}}}, \"history\": {{\"samples\": 3, \"duration_s\": 9.75}}}}",
            n % 50,
            n % 7,
            n % 17
        )
    });
    format!("{{\"now_ms\": 1000000, \"workers\": [{workers}], \"jobs\": [{jobs}]}}")
}
