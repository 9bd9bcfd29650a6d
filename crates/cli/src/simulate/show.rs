//! Outcomes for people and for machines.

use model::{Fixed, Millis};
use serde_json::{Value, json};
use sim::measure::{BelowMin, Losses, Measures, Part, Waits};
use sim::share::Share;
use sim::{Bounds, Fleet, Workload};

use super::run::Outcome;
use crate::print;

/// All there is to know, in seconds.
pub(super) fn json(
    workload: &Workload,
    fleet: &Fleet,
    bounds: &Bounds,
    outcomes: &[Outcome],
) -> Value {
    let tenants = workload.tenants.iter();
    let tenants: Vec<Value> = tenants
        .map(|tenant| json!({ "id": tenant.id.to_string(), "weight": tenant.weight }))
        .collect();
    json!({
        "workload": {
            "n_jobs": workload.jobs.len(),
            "n_bad": workload.bad.count,
            "bad": workload.bad.told,
            "n_bad_untold": workload.bad.n_untold(),
            "tenants": tenants,
            "last_arrival_s": seconds(Millis(workload.last_arrival().0)),
        },
        "fleet": { "n_workers": fleet.workers.len(), "slots": fleet.slots() },
        "bounds": {
            "mean_wait_s": bounds.mean_wait_ms / 1_000.0,
            "slowdown": bounds.slowdown,
            "flow_max_s": bounds.flow_max_ms / 1_000.0,
            "wait_max_s": bounds.wait_max_ms / 1_000.0,
            "makespan_s": bounds.makespan_ms / 1_000.0,
        },
        "runs": outcomes.iter().map(|outcome| run(outcome, workload, bounds)).collect::<Vec<_>>(),
    })
}

fn run(outcome: &Outcome, workload: &Workload, bounds: &Bounds) -> Value {
    let measures = &outcome.measures;
    let mut value = waits(&measures.all);
    let parts = measures.parts.iter().map(|part| {
        let mut value = waits(&part.waits);
        value["by"] = json!(part.by);
        value["name"] = json!(part.name);
        value
    });
    value["policy"] = json!(outcome.policy);
    value["estimates"] = json!(outcome.estimates);
    value["utilisation"] = json!(measures.utilisation);
    value["makespan_s"] = json!(seconds(measures.makespan));
    value["share"] = measures.share.as_ref().map_or(Value::Null, |own| share(own, workload));
    value["parts"] = parts.collect();
    value["flow_max_s"] = json!(seconds(measures.flow_max));
    value["ratios"] = ratios(measures, bounds).into_iter().map(pair).collect();
    value["preempted"] = losses(&measures.preempted);
    value["failed"] = losses(&measures.failed);
    value["below_min"] = measures.below_min.iter().map(|own| below_min(own, workload)).collect();
    value["bound"] = outcome.promise.map_or(Value::Null, |promise| {
        json!({ "wait_max_s": seconds(promise.bound), "n_violations": promise.n_violations })
    });
    value["n_conflicts"] = json!(outcome.replay.n_conflicts);
    value["n_passes"] = json!(outcome.replay.n_passes);
    value["took_s"] = json!(outcome.took_s);
    value
}

fn waits(waits: &Waits) -> Value {
    json!({
        "n_jobs": waits.n_jobs,
        "wait_mean_s": waits.mean_ms / 1_000.0,
        "wait_p50_s": seconds(waits.p50),
        "wait_p95_s": seconds(waits.p95),
        "wait_p99_s": seconds(waits.p99),
        "wait_max_s": seconds(waits.max),
        "slowdown": waits.slowdown,
    })
}

fn losses(losses: &Losses) -> Value {
    json!({ "n_attempts": losses.n_attempts, "slot_s": losses.slot_s, "part": losses.part })
}

fn below_min(own: &BelowMin, workload: &Workload) -> Value {
    let tenant = &workload.tenants[own.tenant];
    json!({
        "tenant": tenant.id.to_string(),
        "min": tenant.quota.min,
        "longest_s": seconds(own.longest),
        "total_s": seconds(own.total),
    })
}

fn share(share: &Share, workload: &Workload) -> Value {
    let pairs = workload.tenants.iter().zip(share.got.iter().zip(&share.due));
    let tenants: Vec<Value> = pairs
        .map(|(tenant, (got, due))| json!({ "id": tenant.id.to_string(), "got": got, "due": due }))
        .collect();
    json!({
        "contended_s": seconds(share.contended),
        "jain": share.jain,
        "error": share.error,
        "lag_slot_s": share.lag_s,
        "tenants": tenants,
    })
}

/// How many times the bounds.
fn ratios(measures: &Measures, bounds: &Bounds) -> [(&'static str, Option<f64>); 5] {
    let ms = |length: Millis| seconds(length) * 1_000.0;
    [
        ("mean_wait", over(measures.all.mean_ms, bounds.mean_wait_ms)),
        ("slowdown", over(measures.all.slowdown, bounds.slowdown)),
        ("wait_max", over(ms(measures.all.max), bounds.wait_max_ms)),
        ("flow_max", over(ms(measures.flow_max), bounds.flow_max_ms)),
        ("makespan", over(ms(measures.makespan), bounds.makespan_ms)),
    ]
}

fn pair((name, ratio): (&str, Option<f64>)) -> (String, Value) {
    (name.to_owned(), json!(ratio))
}

/// How many times the bound; nothing where the bound is zero.
fn over(measured: f64, bound: f64) -> Option<f64> {
    (bound > 0.0).then(|| measured / bound)
}

fn seconds(length: Millis) -> f64 {
    Fixed::thousandths(length.0).to_f64()
}

/// The titles of columns, and the cells of rows.
pub(super) type Cells = (Vec<&'static str>, Vec<Vec<String>>);

/// A table of policies, with what cannot be beaten below, and one of parts for each policy.
pub(super) fn tables(bounds: &Bounds, outcomes: &[Outcome]) -> String {
    let (header, rows) = policies(bounds, outcomes);
    let mut text = print::tables(&header, &rows);
    let (header, rows) = extras(bounds, outcomes);
    if header.len() > 1 {
        text.push('\n');
        text += &print::tables(&header, &rows);
    }
    for outcome in outcomes {
        // The policy stands above its table: beside the parts there is no room for its name.
        let (header, rows) = parts(std::slice::from_ref(outcome));
        let rows: Vec<Vec<String>> = rows.into_iter().map(|row| row[1..].to_vec()).collect();
        text.push('\n');
        text += &print::title(&format!("Under {}:", outcome.title()));
        text += &print::tables(&header[1..], &rows);
    }
    text + &untold(outcomes)
}

/// Says which parts there are too many of to be shown one by one.
fn untold(outcomes: &[Outcome]) -> String {
    let Some(parts) = outcomes.first().map(|outcome| outcome.measures.parts.as_slice()) else {
        return String::new();
    };
    let many = ["tenant", "type"].into_iter().filter(|by| !are_told(by, parts));
    let many: Vec<String> = many.map(|by| print::count(n_parts(by, parts), by)).collect();
    if many.is_empty() {
        return String::new();
    }
    format!("\n{} are not shown one by one; `--json` has them.\n", many.join(" and "))
}

/// Beyond a few, tenants and types are for machines.
fn are_told(by: &str, parts: &[Part]) -> bool {
    n_parts(by, parts) <= TOLD_MAX
}

fn n_parts(by: &str, parts: &[Part]) -> usize {
    parts.iter().filter(|part| part.by == by).count()
}

/// One row a policy, and what cannot be beaten.
pub(super) fn policies(bounds: &Bounds, outcomes: &[Outcome]) -> Cells {
    let mut header = vec!["policy", "mean s", "p50", "p95", "p99", "max", "slowdown", "used"];
    header.extend(["makespan s", "jain", "share err", "lag"]);
    let mut rows: Vec<Vec<String>> = outcomes.iter().map(row).collect();
    rows.push(bound_row(bounds));
    (header, rows)
}

/// How far from the bounds it is, what was lost, and how promises were kept; what happened nowhere
/// is not told.
pub(super) fn extras(bounds: &Bounds, outcomes: &[Outcome]) -> Cells {
    let mut header = vec!["policy"];
    let mut rows: Vec<Vec<String>> = outcomes.iter().map(|outcome| vec![outcome.title()]).collect();
    let mut add = |title, cells: Vec<Option<String>>| {
        if cells.iter().any(Option::is_some) {
            header.push(title);
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell.unwrap_or_default());
            }
        }
    };
    let each = |cell: &dyn Fn(&Outcome) -> Option<String>| outcomes.iter().map(cell).collect();
    let some = |number: usize| (number > 0).then(|| number.to_string());
    let titles = ["× mean", "× slowdown", "× max", "× flow", "× makespan"];
    for (ix, title) in titles.into_iter().enumerate() {
        let times = |outcome: &Outcome| {
            let (_, ratio) = ratios(&outcome.measures, bounds)[ix];
            ratio.map(|ratio| format!("{ratio:.2}"))
        };
        add(title, each(&times));
    }
    let part = |part: f64| (part > 0.0).then(|| format!("{:.2} %", part * 100.0));
    add("evicted", each(&|outcome| some(outcome.measures.preempted.n_attempts)));
    add("preempted", each(&|outcome| part(outcome.measures.preempted.part)));
    add("failed", each(&|outcome| some(outcome.measures.failed.n_attempts)));
    add("lost", each(&|outcome| part(outcome.measures.failed.part)));
    let late = |outcome: &Outcome| outcome.promise.map(|own| own.n_violations.to_string());
    let bound = |outcome: &Outcome| outcome.promise.map(|own| format!("{:.0}", seconds(own.bound)));
    add("bound s", each(&bound));
    add("violations", each(&late));
    let below = |outcome: &Outcome| {
        let longest = outcome.measures.below_min.iter().map(|own| own.longest).max();
        longest.map(|longest| format!("{:.1}", seconds(longest)))
    };
    add("below min s", each(&below));
    let lost = |outcome: &Outcome| usize::try_from(outcome.replay.n_conflicts).ok();
    add("lost claims", each(&|outcome| some(lost(outcome)?)));
    (header, rows)
}

/// One row for each tenant, type and mode under each policy.
pub(super) fn parts(outcomes: &[Outcome]) -> Cells {
    let header = vec!["policy", "jobs of", "n", "mean s", "p50", "p95", "p99", "max", "slowdown"];
    let mut rows = Vec::new();
    for outcome in outcomes {
        let parts = &outcome.measures.parts;
        for part in parts.iter().filter(|part| are_told(part.by, parts)) {
            let mut row = vec![outcome.title(), format!("{} {}", part.by, part.name)];
            row.push(part.waits.n_jobs.to_string());
            row.extend(lengths(&part.waits));
            rows.push(row);
        }
    }
    (header, rows)
}

/// So many tenants and types are shown one by one.
const TOLD_MAX: usize = 12;

fn lengths(waits: &Waits) -> Vec<String> {
    let mut cells = vec![format!("{:.2}", waits.mean_ms / 1_000.0)];
    let lengths = [waits.p50, waits.p95, waits.p99, waits.max];
    cells.extend(lengths.map(|length| format!("{:.1}", seconds(length))));
    cells.push(format!("{:.2}", waits.slowdown));
    cells
}

fn row(outcome: &Outcome) -> Vec<String> {
    let measures = &outcome.measures;
    let mut row = vec![outcome.title()];
    row.extend(lengths(&measures.all));
    row.push(format!("{:.4}", measures.utilisation));
    row.push(format!("{:.0}", seconds(measures.makespan)));
    match &measures.share {
        Some(share) => row.extend([
            format!("{:.5}", share.jain),
            format!("{:.2} %", share.error * 100.0),
            format!("{:.0}", share.lag_s),
        ]),
        None => row.extend(["-", "-", "-"].map(str::to_owned)),
    }
    row
}

fn bound_row(bounds: &Bounds) -> Vec<String> {
    let mut row = vec!["no policy can beat".to_owned()];
    let s = |ms: f64| format!("{:.2}", ms / 1_000.0);
    row.extend([s(bounds.mean_wait_ms), String::new(), String::new(), String::new()]);
    row.extend([format!("{:.1}", bounds.wait_max_ms / 1_000.0), format!("{:.2}", bounds.slowdown)]);
    row.extend([String::new(), format!("{:.0}", bounds.makespan_ms / 1_000.0)]);
    row.extend([String::new(), String::new(), String::new()]);
    row
}
