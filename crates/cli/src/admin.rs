//! `maitre workers`, `drain` and `tenants`: how the fleet and those who share it are.

use clap::Args;
use proto::{json, v1};
use serde_json::{Value, json};

use crate::client::{Target, refused};
use crate::print::{self, Failure};
use crate::settings::Length;
use crate::view;

/// Options of listings.
#[derive(Args)]
pub(crate) struct ListOptions {
    /// For machines.
    #[arg(long)]
    json: bool,
}

impl ListOptions {
    /// Whether a machine reads it.
    pub(crate) const fn json(&self) -> bool {
        self.json
    }
}

/// Options of `maitre workers`.
#[derive(Args)]
pub(crate) struct WorkersOptions {
    /// Slots that waiting work wants beyond those that are free, by what it needs.
    #[arg(long)]
    wanted: bool,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre drain`.
#[derive(Args)]
pub(crate) struct DrainOptions {
    /// The worker.
    worker: String,
    /// Let it take work again.
    #[arg(long)]
    undo: bool,
    /// Once it is empty, it exits.
    #[arg(long, conflicts_with = "undo")]
    then_exit: bool,
    /// It stops what it runs within so long, and exits.
    #[arg(long, value_name = "LENGTH", conflicts_with_all = ["undo", "then_exit"])]
    stop_within: Option<Length>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Lists the workers.
pub(crate) async fn workers(options: &WorkersOptions, target: &Target) -> Result<(), Failure> {
    if options.wanted {
        return wanted(options.json, target).await;
    }
    let mut admin = target.admin().await?;
    let response = admin.workers(v1::WorkersRequest {}).await.map_err(|status| refused(&status))?;
    let workers = response.into_inner().workers;
    if options.json {
        let workers: Vec<Value> = workers.iter().map(json::worker).collect();
        return print::json(&workers);
    }
    if workers.is_empty() {
        print::note("no workers\n\nhint: start one with `maitre work --exec`");
        return Ok(());
    }
    let status = admin.status(v1::StatusRequest {}).await.map_err(|status| refused(&status))?;
    let now = status.into_inner().now_ms;
    let rows = workers.iter().map(|worker| worker_row(worker, now)).collect();
    let header = ["worker", "pool", "state", "slots", "types", "jobs", "cpu", "ram free", "heard"];
    print::data(&print::table(&header, rows, &[3]))
}

/// Lists what waits for want of workers.
async fn wanted(is_json: bool, target: &Target) -> Result<(), Failure> {
    let response = target.admin().await?.demand(v1::DemandRequest {}).await;
    let wanted = response.map_err(|status| refused(&status))?.into_inner().wanted;
    if is_json {
        let one = |wanted: &v1::Wanted| {
            let needs = wanted.needs.iter().map(|(key, values)| (key, &values.values));
            let needs: std::collections::BTreeMap<_, _> = needs.collect();
            json!({
                "type": wanted.r#type,
                "pool": (!wanted.pool.is_empty()).then_some(&wanted.pool),
                "needs": needs,
                "slots": wanted.slots,
                "amounts": wanted.amounts,
                "jobs": wanted.jobs,
                "slots_wanted": wanted.slots_wanted,
                "slots_fitting": wanted.slots_fitting,
            })
        };
        return print::json(&wanted.iter().map(one).collect::<Vec<Value>>());
    }
    if wanted.is_empty() {
        print::note("nothing waits for want of workers");
        return Ok(());
    }
    let row = |wanted: &v1::Wanted| {
        let needs = wanted.needs.iter().map(|(key, any)| format!("{key}={}", any.values.join("|")));
        let amounts = wanted.amounts.iter().map(|(name, n)| format!("{name}={n}"));
        let mut needs: Vec<String> = needs.chain(amounts).collect();
        needs.sort();
        let slots = (wanted.slots > 1).then(|| print::count(wanted.slots, "slot"));
        needs.splice(0..0, slots);
        vec![
            wanted.r#type.clone(),
            if wanted.pool.is_empty() { "(any)".to_owned() } else { wanted.pool.clone() },
            needs.join(", "),
            wanted.jobs.to_string(),
            wanted.slots_wanted.to_string(),
            wanted.slots_fitting.to_string(),
        ]
    };
    let header = ["type", "pool", "needs", "jobs", "slots wanted", "slots there"];
    print::data(&print::table(&header, wanted.iter().map(row).collect(), &[3, 4, 5]))
}

fn worker_row(worker: &v1::WorkerStatus, now: i64) -> Vec<String> {
    let jobs: Vec<String> = worker.jobs.iter().map(ToString::to_string).collect();
    let types = if worker.types.is_empty() { "any".to_owned() } else { worker.types.join(", ") };
    vec![
        worker.name.clone(),
        worker.pool.clone(),
        json::worker_state(worker).to_owned(),
        format!("{}/{}", worker.slots_used, worker.slots),
        types,
        jobs.join(", "),
        worker.cpu_pct.map(|pct| format!("{pct:.0} %")).unwrap_or_default(),
        worker.ram_free_mb.map(|mb| format!("{mb} MB")).unwrap_or_default(),
        view::ago(worker.heard_ms, now),
    ]
}

/// Lets a worker take no more work, or take work again.
pub(crate) async fn drain(options: &DrainOptions, target: &Target) -> Result<(), Failure> {
    let request = v1::DrainWorkerRequest {
        worker: options.worker.clone(),
        draining: !options.undo,
        then_exit: options.then_exit,
        shutdown_ms: options.stop_within.map(|length| length.millis().0.unsigned_abs()),
    };
    let response = target.admin().await?.drain_worker(request).await;
    let jobs = response.map_err(|status| refused(&status))?.into_inner().jobs;
    if options.json {
        return print::json(&json!({ "worker": options.worker, "jobs": jobs }));
    }
    let worker = &options.worker;
    print::data(&if options.undo {
        format!("worker {worker} takes work again")
    } else {
        let jobs = print::count(jobs, "job");
        format!("worker {worker} takes no more work; {jobs} to finish")
    })
}

/// Lists the tenants with what they have and use.
pub(crate) async fn tenants(options: &ListOptions, target: &Target) -> Result<(), Failure> {
    let response = target.admin().await?.tenants(v1::TenantsRequest {}).await;
    let response = response.map_err(|status| refused(&status))?.into_inner();
    if options.json {
        let tenants: Vec<Value> = response.tenants.iter().map(tenant).collect();
        return print::json(&json!({
            "tenants": tenants,
            "budget_limit": response.budget_limit,
            "budget_used": response.budget_used,
        }));
    }
    let rows = response.tenants.iter().map(tenant_row).collect();
    let header =
        ["tenant", "weight", "queued", "running", "slots", "used", "budget", "completed", "quotas"];
    print::data(&print::table(&header, rows, &[1, 2, 3, 4, 5, 6, 7]))
}

fn tenant_row(tenant: &v1::TenantStatus) -> Vec<String> {
    let most = |max: Option<u32>| max.map_or_else(|| "-".to_owned(), |max| max.to_string());
    let quotas = tenant.quotas.iter().map(|quota| {
        format!("{} {}..{} ({} now)", quota.pool, quota.min, most(quota.max), quota.slots)
    });
    let paused = if tenant.paused { " (paused)" } else { "" };
    vec![
        format!("{}{paused}", tenant.name),
        tenant.weight.to_string(),
        tenant.queued.to_string(),
        tenant.running.to_string(),
        tenant.slots.to_string(),
        tenant.used.to_string(),
        tenant.budget.map_or_else(|| "-".to_owned(), |budget| budget.to_string()),
        tenant.completed.to_string(),
        quotas.collect::<Vec<String>>().join(", "),
    ]
}

fn tenant(tenant: &v1::TenantStatus) -> Value {
    let quotas: Vec<Value> = tenant
        .quotas
        .iter()
        .map(|quota| {
            let (pool, min, max) = (&quota.pool, quota.min, quota.max);
            json!({ "pool": pool, "min": min, "max": max, "slots": quota.slots })
        })
        .collect();
    json!({
        "tenant": tenant.name,
        "active": !tenant.paused,
        "weight": tenant.weight,
        "queued": tenant.queued,
        "running": tenant.running,
        "slots": tenant.slots,
        "used": tenant.used,
        "completed": tenant.completed,
        "budget": tenant.budget,
        "jobs_max": tenant.jobs_max,
        "quotas": quotas,
    })
}
