//! `maitre submit --dry-run`: where jobs would go, and why not.

use std::collections::BTreeMap;

use proto::v1;
use serde_json::{Value, json};

use crate::print::{self, Failure};
use crate::view;

/// Tells what would become of jobs.
pub(crate) fn tell(jobs: &[v1::Foreseen], is_for_machines: bool) -> Result<(), Failure> {
    if is_for_machines {
        return print::json(&jobs.iter().map(machine).collect::<Vec<Value>>());
    }
    if let [job] = jobs {
        return print::prose(&one(job));
    }
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<&str, Vec<&v1::Foreseen>> = BTreeMap::new();
    for job in jobs {
        if job.worker.is_empty() {
            reasons.entry(&job.reason).or_default().push(job);
        } else {
            *places.entry(&job.worker).or_default() += 1;
        }
    }
    let mut lines: Vec<String> =
        places.iter().map(|(worker, n)| format!("{n} would start on {worker} now")).collect();
    for (reason, held) in reasons {
        lines.push(format!("{} would wait: {reason}", held.len()));
        lines.extend(held.first().map(|job| job.detail.clone()));
        let last = held.last();
        lines.extend(last.and_then(|job| view::start(start(job), &job.estimate_basis)));
    }
    print::prose(&lines.join("\n"))
}

fn one(job: &v1::Foreseen) -> String {
    if !job.worker.is_empty() {
        return format!("would start on {} now: {}", job.worker, job.why_there);
    }
    let mut lines = vec![format!("would wait: {}", job.reason), job.detail.clone()];
    lines.extend(view::also(&job.checks));
    lines.extend(view::nearest(&job.reason, &job.nearest));
    lines.extend(job.ahead.filter(|_| view::passes(&job.reason)).map(view::ahead));
    lines.extend(view::start(start(job), &job.estimate_basis));
    lines.join("\n")
}

const fn start(job: &v1::Foreseen) -> view::Start {
    let (min, max) = (job.starts_in_min_ms, job.starts_in_max_ms);
    view::Start { about: job.starts_in_ms, min, max }
}

fn machine(job: &v1::Foreseen) -> Value {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "worker": some(&job.worker),
        "why_there": some(&job.why_there),
        "reason": some(&job.reason),
        "detail": some(&job.detail),
        "ahead": job.ahead,
        "starts_in_ms": job.starts_in_ms,
        "estimate_basis": some(&job.estimate_basis),
        "starts_in_min_ms": job.starts_in_min_ms,
        "starts_in_max_ms": job.starts_in_max_ms,
        "checks": job.checks.iter().map(proto::json::check).collect::<Vec<Value>>(),
        "nearest": job.nearest.iter().map(proto::json::near).collect::<Vec<Value>>(),
    })
}
