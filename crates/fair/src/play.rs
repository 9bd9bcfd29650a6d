//! Plays one scenario, and collects evidence while a share breaks.

use std::time::Duration;

use faults::{now_ms, until};
use serde_json::Value;

use crate::Error;
use crate::notes::{Run, runs};
use crate::scenario::{Due, Scenario, Step};
use crate::share::{Share, Window, lacks, out_of_turn, shares, used};
use crate::stage::Stage;
use crate::verdict::{Evidence, Finding};

/// How long a condition may take to come true, on a busy machine.
const LATE: Duration = Duration::from_secs(90);
/// Milliseconds between two looks at a window that is open.
const LOOK_EVERY_MS: i64 = 500;

/// Takes each step in turn, and answers what each window showed.
pub(crate) async fn play(stage: &mut Stage, scenario: &Scenario) -> Result<Vec<Finding>, Error> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut from_ms = now_ms();
    for step in &scenario.steps {
        match step {
            Step::Tell(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                stage.tell(&words).await?;
            }
            Step::Submit(load) => stage.submit(load).await?,
            Step::Cancel(tenant) => stage.cancel(tenant).await?,
            Step::Starts(n) => {
                stage.notes.read()?;
                let n_starts = stage.notes.n_starts() + n;
                until("enough jobs start", LATE, async || {
                    Some(stage.notes.read()).filter(|_| stage.notes.n_starts() >= n_starts)
                })
                .await??;
            }
            Step::StartsOf(tenant, n) => {
                until(&format!("{n} jobs of `{tenant}` start"), LATE, async || {
                    Some(stage.notes.read()).filter(|_| stage.notes.n_starts_of(tenant) >= *n)
                })
                .await??;
            }
            Step::KillScheduler(scheduler) => stage.kill_scheduler(*scheduler),
            Step::StartScheduler(scheduler) => stage.start_scheduler(*scheduler).await?,
            Step::KillWorker(worker) => stage.kill_worker(*worker),
            Step::StartWorker(worker) => stage.start_worker(*worker).await?,
            Step::Open { warm_ms } => from_ms = now_ms() + warm_ms,
            Step::Close(due) => {
                let window = Window { from_ms, to_ms: from_ms + due.ms };
                findings.push(close(stage, window, (findings.len(), due)).await?);
            }
        }
    }
    Ok(findings)
}

/// Waits until the notes are past the window, and judges them.
async fn close(
    stage: &mut Stage,
    window: Window,
    (nth, due): (usize, &Due),
) -> Result<Finding, Error> {
    let mut evidence: Option<Evidence> = None;
    let mut next_look_ms = window.from_ms + LOOK_EVERY_MS;
    until("the notes are past the window", LATE, async || {
        if let Err(error) = stage.notes.read() {
            return Some(Err(error));
        }
        let newest_ms = stage.notes.newest_ms().unwrap_or(0);
        if newest_ms >= next_look_ms {
            next_look_ms = now_ms() + LOOK_EVERY_MS;
            let so_far = Window { to_ms: newest_ms.min(window.to_ms), ..window };
            look(stage, so_far, (nth, due), &mut evidence).await;
        }
        (newest_ms >= window.to_ms).then_some(Ok(()))
    })
    .await??;
    let runs = runs(&stage.notes.all, &stage.lost);
    let shares = shares(&used(&runs, window), due);
    let is_held = shares.iter().all(Share::is_held);
    Ok(Finding {
        idle: idle(stage, &runs, window, due),
        out_of_turn: if is_held { Vec::new() } else { out_of_turn(&runs, window, due) },
        evidence: evidence.filter(|_| !is_held),
        shares,
    })
}

/// A tenant that is due some, and had no job left that could start within the window: then the
/// window says nothing.
fn idle(stage: &Stage, runs: &[Run], window: Window, due: &Due) -> Option<String> {
    let is_idle = |tenant: &&str| {
        let started = runs.iter().filter(|run| run.tenant == **tenant);
        let started = started.filter(|run| run.start_ms < window.to_ms).map(|run| run.job);
        let n_started = started.collect::<std::collections::BTreeSet<u64>>().len();
        n_started >= stage.n_submitted(tenant)
    };
    due.parts.iter().filter(|part| part.1 > 0).map(|part| part.0).find(is_idle).map(str::to_owned)
}

/// Asks the scheduler while the largest error is in force: evidence of an earlier look is replaced
/// by that of a larger error.
async fn look(
    stage: &Stage,
    window: Window,
    (nth, due): (usize, &Due),
    evidence: &mut Option<Evidence>,
) {
    let runs = runs(&stage.notes.all, &stage.lost);
    let used = used(&runs, window);
    // A share of a part of the window may be off by as much slot-time as that of the whole.
    let total: i64 = used.values().sum();
    let so_far = Due { ms: window.to_ms - window.from_ms, ..due.clone() };
    if total == 0 || shares(&used, &so_far).iter().all(Share::is_held) {
        return;
    }
    let lacks = lacks(&used, due);
    let Some((tenant, lacked_ms)) = lacks.into_iter().max_by_key(|(_, ms)| *ms) else { return };
    if evidence.as_ref().is_some_and(|before| before.lacked_ms >= lacked_ms) {
        return;
    }
    if let Ok(found) = ask(stage, (nth, window), (tenant, lacked_ms)).await {
        *evidence = Some(found);
    }
}

/// Collects answers of the scheduler at this moment. A scheduler that was killed has none.
async fn ask(
    stage: &Stage,
    (nth, window): (usize, Window),
    (tenant, lacked_ms): (String, i64),
) -> Result<Evidence, Error> {
    let snapshot = stage.dir.join(format!("snapshot-{}.json", nth + 1));
    let text = stage.tell(&["snapshot"]).await?;
    std::fs::write(&snapshot, text).map_err(Error::system("write a snapshot"))?;
    let tenants = stage.tell(&["tenants", "--json"]).await?;
    let waiting = ["jobs", "--tenant", &tenant, "--state", "queued", "--json", "-n", "1"];
    let waiting: Value = serde_json::from_str(&stage.tell(&waiting).await?).unwrap_or(Value::Null);
    let why = match waiting["jobs"][0]["id"].as_u64() {
        Some(id) => stage.tell(&["why", &id.to_string()]).await?,
        None => "no job waits".to_owned(),
    };
    Ok(Evidence {
        after_ms: window.to_ms - window.from_ms,
        tenant,
        lacked_ms,
        snapshot,
        tenants: serde_json::from_str(&tenants).unwrap_or(Value::Null),
        why: why.trim().to_owned(),
    })
}
