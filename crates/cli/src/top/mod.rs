//! `maitre top`: what waits and runs, as it changes.

mod draw;
mod layout;
mod live;
mod trail;

use std::time::Duration;

use clap::Args;
use proto::v1;
use serde_json::{Value, json};

use crate::client::{Target, refused};
use crate::print::{self, Failure};
use crate::settings::Length;
use trail::Trail;

/// Looking more often would be load of its own.
const EVERY_MIN: Duration = Duration::from_millis(200);

/// Options of `maitre top`.
#[derive(Args)]
#[command(after_help = "\
`q` or Ctrl-C ends it. Into a pipe it is shown once.")]
pub(crate) struct Options {
    /// Show it once, as text.
    #[arg(long)]
    once: bool,
    /// Look this often.
    #[arg(long, value_name = "LENGTH", default_value = "1s")]
    every: Length,
    /// For machines, once.
    #[arg(long)]
    json: bool,
}

/// What is shown.
struct View {
    server: String,
    policy: String,
    load: v1::LoadResponse,
    tenants: Vec<v1::TenantStatus>,
    n_succeeded: u64,
}

/// Shows the load until somebody has seen enough.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    if options.json {
        return print::json(&machine(&look(target).await?));
    }
    if options.once || !print::is_terminal() {
        // Whoever reads a text can turn the page.
        let size = (usize::from(print::width()), usize::MAX);
        return print::data(&draw::screen(&look(target).await?, &Trail::default(), size));
    }
    live::run(options.every.0.max(EVERY_MIN), target).await
}

async fn look(target: &Target) -> Result<View, Failure> {
    let mut admin = target.admin().await?;
    let status = admin.status(v1::StatusRequest {}).await.map_err(|status| refused(&status))?;
    let load = admin.load(v1::LoadRequest {}).await.map_err(|status| refused(&status))?;
    let tenants = admin.tenants(v1::TenantsRequest {}).await.map_err(|status| refused(&status))?;
    let status = status.into_inner();
    Ok(View {
        server: target.server.clone(),
        policy: status.policy,
        load: load.into_inner(),
        tenants: tenants.into_inner().tenants,
        n_succeeded: status.counters.get("succeeded").copied().unwrap_or(0),
    })
}

/// A tenant's part of the slots in use, and the part that its weight gives it among those that
/// have something to do; in percent.
fn shares(tenants: &[v1::TenantStatus], tenant: &v1::TenantStatus) -> (f64, f64) {
    let busy = |one: &&v1::TenantStatus| one.queued + one.running > 0;
    #[expect(
        clippy::cast_precision_loss,
        clippy::as_conversions,
        reason = "it is shown as percent"
    )]
    let slots = |one: &v1::TenantStatus| one.slots as f64;
    let all_slots: f64 = tenants.iter().map(slots).sum();
    let all_weights: f64 = tenants.iter().filter(busy).map(|one| one.weight).sum();
    let percent = |part: f64, all: f64| if all > 0.0 { 100.0 * part / all } else { 0.0 };
    let due = if busy(&tenant) { tenant.weight } else { 0.0 };
    (percent(slots(tenant), all_slots), percent(due, all_weights))
}

fn machine(view: &View) -> Value {
    let tenants: Vec<Value> = view
        .tenants
        .iter()
        .map(|tenant| {
            let (share, target) = shares(&view.tenants, tenant);
            json!({
                "tenant": tenant.name,
                "queued": tenant.queued,
                "running": tenant.running,
                "slots": tenant.slots,
                "share_pct": share,
                "target_pct": target,
            })
        })
        .collect();
    let mut value = proto::json::load(&view.load);
    value["policy"] = json!(view.policy);
    value["tenants"] = json!(tenants);
    value
}
