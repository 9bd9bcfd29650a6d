//! The scenarios. Each says what is due. `share.rs` says how far a share may be off.
//!
//! Unless a scenario says otherwise: one scheduler on `SQLite`, one worker of eight slots, jobs of
//! half a second, the default policy, and no length that the scheduler is told.

use crate::scenario::{By, Load, Scenario, Step};

/// Scenarios for CI: six, one of them with two schedulers.
pub const QUICK: [&str; 6] =
    ["warm-up", "tenfold-lengths", "cancelled-flood", "cannot-run", "liar", "two-schedulers"];

/// Milliseconds of a window, and of its longest job: rounding is at most 3 % of the slot-time.
const HALF: (i64, i64) = (12_000, 500);

/// All scenarios, in the order of the rows.
pub fn table() -> Vec<Scenario> {
    [weights(), lengths(), bystanders(), limits(), changes(), fleets(), hostile(), published()]
        .concat()
}

/// Enough jobs of half a second to have more of them than any window can start.
fn backlog(tenant: &'static str) -> Load {
    Load::new(tenant, 500, 500)
}

fn weights() -> Vec<Scenario> {
    vec![
        Scenario::new("warm-up", "Jobs of a short warm-up do not change whose turn it is.")
            .submit(Load::new("early", 300, 100))
            .step(Step::StartsOf("early", 300))
            .tenant("acme", r#"{"weight":3}"#)
            .tenant("globex", r#"{"weight":1}"#)
            .submit(backlog("globex"))
            .submit(backlog("acme"))
            .measure(500, HALF, [("acme", 3), ("globex", 1)]),
        Scenario::new("three-tenants", "Slot-time of three tenants goes by weight.")
            .tenant("b", r#"{"weight":2}"#)
            .tenant("c", r#"{"weight":5}"#)
            .submit(Load::new("a", 700, 500))
            .submit(Load::new("b", 700, 500))
            .submit(Load::new("c", 700, 500))
            .measure(500, (20_000, 500), [("a", 1), ("b", 2), ("c", 5)]),
        Scenario::new("weight-changed", "A weight that is set live holds at once.")
            .submit(backlog("a"))
            .submit(backlog("b"))
            .measure(500, (8_000, 500), [("a", 1), ("b", 1)])
            .tenant("a", r#"{"weight":3}"#)
            .measure(500, HALF, [("a", 3), ("b", 1)]),
        Scenario::new("policy-changed", "Shares hold while presets are set live.")
            .submit(backlog("a"))
            .submit(backlog("b"))
            .step(Step::Open { warm_ms: 2_000 })
            .step(Step::Starts(80))
            .tell(["policy", "fair-share"])
            .step(Step::Starts(80))
            .tell(["policy", "balanced"])
            .close((16_000, 500), [("a", 1), ("b", 1)]),
        Scenario::new("array-and-singles", "One job array weighs as much as many small submits.")
            .submit(backlog("array").by(By::Array))
            .submit(backlog("singles").by(By::Files(125)))
            .measure(500, HALF, [("array", 1), ("singles", 1)]),
    ]
}

fn lengths() -> Vec<Scenario> {
    vec![
        Scenario::new("tenfold-lengths", "Slot-time is shared, not starts.")
            .submit(Load::new("long", 200, 1_500))
            .submit(Load::new("short", 1_000, 150))
            .measure(800, (18_000, 1_500), [("long", 1), ("short", 1)]),
        Scenario::new("thousand-keys", "A tenant with 1,000 history keys gets no more than one.")
            .submit(Load::new("many", 500, 50).keys("history_key", 1_000))
            .submit(Load::new("one", 100, 50).keys("history_key", 1))
            .step(Step::StartsOf("many", 500))
            .step(Step::StartsOf("one", 100))
            .submit(Load::new("many", 1_000, 500).keys("history_key", 1_000))
            .submit(backlog("one").keys("history_key", 1))
            .measure(500, HALF, [("many", 1), ("one", 1)]),
        Scenario::new("wide-jobs", "Jobs of four slots get the slot-time of jobs of one slot.")
            .submit(backlog("narrow"))
            .submit(Load::new("wide", 150, 500).slots(4))
            .measure(500, HALF, [("narrow", 1), ("wide", 1)]),
        Scenario::new("failures", "Jobs that fail and run again count like jobs that succeed.")
            .submit(backlog("failing").exits(1).with("attempts", 3))
            .submit(backlog("fine"))
            .measure(500, HALF, [("failing", 1), ("fine", 1)]),
    ]
}

/// Tenants that had jobs, or have jobs that do not run: they take no part.
fn bystanders() -> Vec<Scenario> {
    vec![
        Scenario::new("cancelled-flood", "A flood that was cancelled leaves no trace.")
            .submit(Load::new("acme", 3_000, 500))
            .step(Step::Starts(40))
            .step(Step::Cancel("acme"))
            .submit(backlog("acme"))
            .submit(backlog("globex"))
            .measure(500, HALF, [("acme", 1), ("globex", 1)]),
        Scenario::new("paused", "A paused tenant of weight 10 takes no part.")
            .tenant("paused", r#"{"weight":10,"active":false}"#)
            .submit(Load::new("paused", 100, 500))
            .submit(backlog("a"))
            .submit(backlog("b"))
            .measure(500, HALF, [("a", 1), ("b", 1)]),
        Scenario::new("cannot-run", "A tenant whose jobs can never run takes no part.")
            .tenant("stuck", r#"{"weight":5}"#)
            .tenant("a", r#"{"weight":3}"#)
            .submit(Load::new("stuck", 500, 500).with("needs", lacking()))
            .submit(backlog("b"))
            .submit(backlog("a"))
            .measure(500, HALF, [("a", 3), ("b", 1)]),
        Scenario::new("returns", "A tenant that was idle returns without a claim to the past.")
            .submit(Load::new("steady", 900, 500))
            .submit(Load::new("returns", 900, 500))
            .step(Step::Starts(64))
            .step(Step::Cancel("returns"))
            .step(Step::Starts(128))
            .submit(backlog("returns"))
            .step(Step::Open { warm_ms: 0 })
            .close(HALF, [("steady", 1), ("returns", 1)]),
        Scenario::new("had-idle-fleet", "A tenant that used idle slots for 15 s owes nothing.")
            .submit(Load::new("first", 900, 500))
            .step(Step::Starts(240))
            .submit(backlog("second"))
            .step(Step::Open { warm_ms: 0 })
            .close(HALF, [("first", 1), ("second", 1)]),
    ]
}

fn lacking() -> serde_json::Value {
    serde_json::json!({ "gpu": "none-has-this" })
}

fn limits() -> Vec<Scenario> {
    let capped = |name, claim| {
        Scenario::new(name, claim)
            .submit(backlog("capped"))
            .submit(backlog("a"))
            .submit(backlog("b"))
            .measure(500, HALF, [("capped", 2), ("a", 3), ("b", 3)])
    };
    let quota = capped("quota", "A tenant at its quota takes no part beyond it.");
    let jobs_max = capped("jobs-max", "A tenant at `jobs_max` takes no part beyond it.");
    vec![
        first(quota, &["quota", "capped", "--max", "2"], r#"{"weight":4}"#),
        first(jobs_max, &[], r#"{"weight":4,"jobs_max":2}"#),
        Scenario::new("budget-ends", "A tenant whose budget is spent takes no part.")
            .tenant("spender", r#"{"budget":120}"#)
            .submit(Load::new("spender", 600, 300))
            .submit(Load::new("a", 900, 300))
            .submit(Load::new("b", 900, 300))
            .measure(300, (8_000, 300), [("spender", 1), ("a", 1), ("b", 1)])
            .step(Step::StartsOf("spender", 120))
            .measure(300, (8_000, 300), [("a", 1), ("b", 1)]),
    ]
}

/// Sets the tenant `capped` before everything else.
fn first(mut scenario: Scenario, words: &[&str], document: &str) -> Scenario {
    let set: &[&str] = &["set", "tenant", "capped", document];
    for words in [words, set].into_iter().filter(|words| !words.is_empty()) {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        scenario.steps.insert(0, Step::Tell(words));
    }
    scenario
}

/// Schedulers and workers that come and go.
fn changes() -> Vec<Scenario> {
    let (one, half) = ((8, None), (4, None));
    let start = |name, claim| {
        Scenario::new(name, claim)
            .tenant("a", r#"{"weight":3}"#)
            .submit(Load::new("b", 700, 500))
            .submit(Load::new("a", 700, 500))
    };
    let due = [("a", 3), ("b", 1)];
    vec![
        start("restart", "A scheduler that is killed and started again goes on with the shares.")
            .workers([one])
            .step(Step::Open { warm_ms: 2_000 })
            .step(Step::Starts(120))
            .step(Step::KillScheduler(0))
            .step(Step::StartScheduler(0))
            .close((16_000, 500), due),
        start("worker-leaves", "Shares hold on the slots that a killed worker leaves behind.")
            .workers([half, half])
            .measure(500, (8_000, 500), due)
            .step(Step::KillWorker(1))
            .measure(500, HALF, due),
        start("worker-joins", "Shares hold on the slots that a new worker brings.")
            .workers([half, half])
            .last_worker_starts_later()
            .measure(500, (8_000, 500), due)
            .step(Step::StartWorker(1))
            .measure(500, HALF, due),
    ]
}

fn fleets() -> Vec<Scenario> {
    let (generic, gpu) = (Some("class=generic"), Some("class=gpu"));
    let only_generic = || serde_json::json!({ "class": "generic" });
    let unequal = |name, claim, n_generic| {
        Scenario::new(name, claim)
            .workers([(n_generic, generic), (8 - n_generic, gpu)])
            .submit(backlog("both"))
            .submit(backlog("generic").with("needs", only_generic()))
    };
    let shared = |name, claim| {
        Scenario::new(name, claim)
            .tenant("a", r#"{"weight":3}"#)
            .submit(backlog("b").by(By::Files(4)))
            .submit(backlog("a").by(By::Files(4)))
            .measure(500, HALF, [("a", 3), ("b", 1)])
    };
    vec![
        unequal("some-gpu", "Six slots for all and two for one: each tenant has four.", 6).measure(
            500,
            HALF,
            [("both", 4), ("generic", 4)],
        ),
        unequal("most-gpu", "Two slots for all: the tenant that needs these has both.", 2).measure(
            500,
            HALF,
            [("both", 6), ("generic", 2)],
        ),
        shared("two-schedulers", "Two schedulers on one Postgres keep the shares.")
            .on_postgres(2)
            .workers([(4, None); 2]),
        shared("four-schedulers", "Four schedulers on one Postgres keep the shares.")
            .on_postgres(4)
            .workers([(2, None); 4]),
    ]
}

/// Tenants that say what helps them.
fn hostile() -> Vec<Scenario> {
    let beside_honest = |scenario: Scenario, liar: Load| {
        scenario.submit(backlog("honest").with("estimate", "500ms")).submit(liar).measure(
            500,
            HALF,
            [("honest", 1), ("liar", 1)],
        )
    };
    let urgent = || backlog("liar").with("priority", 1_000).with("on_demand", true);
    vec![
        beside_honest(
            Scenario::new("liar", "A tenant that claims 1 ms a job gets its share."),
            backlog("liar").with("estimate", "1ms"),
        ),
        beside_honest(
            Scenario::new("urgent-liar", "A tenant that claims all is urgent gets its share."),
            urgent(),
        ),
        beside_honest(
            Scenario::new("liar-fair-share", "The same under `fair-share`: 1 ms, and no cost.")
                .tell(["policy", "fair-share"]),
            urgent().with("estimate", "1ms").with("cost", 0.0),
        ),
    ]
}

/// Cases that were published of other schedulers.
fn published() -> Vec<Scenario> {
    let keys = Scenario::new("published-keys", "A cap for each key does not decide the share.");
    let keys = (0..40).fold(keys, |scenario, key| lock(scenario, "many", key));
    let keys = (0..8).fold(keys, |scenario, key| lock(scenario, "few", key));
    vec![
        // There: 65 % of the jobs ran 34 s each, and took 98 % of the slot-time from jobs of 1 s.
        // Here the same, 20 times as fast.
        Scenario::new("published-long", "65 % of the jobs, 34 times as long, get half the slots.")
            .submit(Load::new("long", 2_600, 1_700))
            .submit(Load::new("short", 1_400, 50))
            .measure(875, (20_000, 1_700), [("long", 1), ("short", 1)]),
        // There: each key may have one job at a time, and a tenant may have any number of keys.
        keys.submit(backlog("many").keys("resource", 40))
            .submit(backlog("few").keys("resource", 8))
            .measure(500, HALF, [("many", 1), ("few", 1)]),
    ]
}

/// A resource that one job of the tenant holds at a time.
fn lock(scenario: Scenario, tenant: &str, key: usize) -> Scenario {
    let (name, document) = (format!("{tenant}-{key}"), format!("{{\"tenant\":\"{tenant}\"}}"));
    scenario.tell(["set", "resource", &name, &document])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn table_has_twenty_scenarios_or_more_with_names_of_their_own() {
        let table = table();
        let names: BTreeSet<&str> = table.iter().map(|scenario| scenario.name).collect();
        assert!(table.len() >= 20 && names.len() == table.len(), "{names:?}");
    }

    #[test]
    fn every_scenario_has_window_with_small_rounding() {
        for scenario in table() {
            let mut dues = Vec::new();
            for step in &scenario.steps {
                if let Step::Close(due) = step {
                    dues.push(due);
                }
            }
            assert!(!dues.is_empty(), "{} measures nothing", scenario.name);
            for due in dues {
                assert!(due.ms >= 11 * due.longest_ms, "{}: {due:?}", scenario.name);
            }
        }
    }
}
