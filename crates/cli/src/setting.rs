//! `maitre policy`, `quota`, `set` and `snapshot`: what operators set, and what comes of it.

use std::io::Write;

use clap::{Args, Subcommand};
use proto::v1;
use serde_json::{Value, json};

use crate::admin::ListOptions;
use crate::client::{Admin, Target, refused};
use crate::print::{self, Failure};

/// Options of `maitre quota`.
#[derive(Args)]
pub(crate) struct QuotaOptions {
    /// The tenant.
    tenant: String,
    /// The pool.
    #[arg(default_value = "default")]
    pool: String,
    /// Slots that it paid for: below this its jobs come first.
    #[arg(long)]
    min: Option<u32>,
    /// Slots that it never exceeds.
    #[arg(long)]
    max: Option<u32>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre policy`.
#[derive(Args)]
pub(crate) struct PolicyOptions {
    /// A preset's name, or a JSON object; nothing shows the policy.
    policy: Option<String>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre set`.
#[derive(Args)]
#[command(after_help = "\
Documents are JSON, in the words of a snapshot; `-` removes one. They hold at
once, and replace what was set under the name before.

Examples:
  maitre set tenant acme '{\"weight\": 2, \"budget\": 500, \"active\": true}'
  maitre set type train '{\"pool\": \"gpu\", \"retry\": {\"attempts_max\": 5}}'
  maitre set pool gpu '{\"paused\": true}'
  maitre set budget -")]
pub(crate) struct SetOptions {
    #[command(subcommand)]
    what: Set,
    /// For machines: what is set now; `null` if it was removed.
    #[arg(long, global = true)]
    json: bool,
}

/// What `maitre set` can set: a JSON document in the words of a snapshot.
#[derive(Subcommand)]
enum Set {
    /// Set a tenant: `{"weight": 2, "budget": 100, "jobs_max": 50}`.
    Tenant(Named),
    /// Set a type of jobs: `{"pool": "gpu", "jobs_max": 9}`.
    Type(Named),
    /// Set a named resource: `{"tenant": "a"}`.
    Resource(Named),
    /// Set a pool: `{"paused": true}`.
    Pool(Named),
    /// Set what all tenants together may use: `{"limit": 1000}`.
    Budget {
        /// The document; `-` removes it.
        document: String,
    },
}

/// A name and a document.
#[derive(Args)]
struct Named {
    /// What it is called.
    name: String,
    /// The document; `-` removes it.
    document: String,
}

/// Shows or sets the policy.
pub(crate) async fn policy(options: &PolicyOptions, target: &Target) -> Result<(), Failure> {
    let mut admin = target.admin().await?;
    if let Some(policy) = &options.policy {
        put(&mut admin, v1::SettingKind::Policy, "", policy).await?;
    }
    let status = admin.status(v1::StatusRequest {}).await.map_err(|status| refused(&status))?;
    let preset = status.into_inner().policy;
    let set = settings(&mut admin, v1::SettingKind::Policy).await?;
    let document = set.first().map_or_else(|| preset.clone(), |setting| setting.json.clone());
    if options.json {
        return print::json(&json!({ "preset": preset, "policy": document }));
    }
    print::data(&document)
}

/// Shows or sets what a tenant may have in a pool.
pub(crate) async fn quota(options: &QuotaOptions, target: &Target) -> Result<(), Failure> {
    let mut admin = target.admin().await?;
    let mut document = of_tenant(&options.tenant, target).await?;
    let mut quotas: Vec<Value> = document["quotas"].as_array().cloned().unwrap_or_default();
    let own = quotas.iter().position(|quota| quota["pool"] == options.pool.as_str());
    let mut quota = own.map_or_else(|| json!({ "pool": options.pool }), |at| quotas.remove(at));
    if options.min.is_some() || options.max.is_some() {
        for (field, slots) in [("min", options.min), ("max", options.max)] {
            if let Some(slots) = slots {
                quota[field] = slots.into();
            }
        }
        check(&quota)?;
        quotas.push(quota.clone());
        document["quotas"] = quotas.into();
        put(&mut admin, v1::SettingKind::Tenant, &options.tenant, &document.to_string()).await?;
    }
    if options.json {
        return print::json(&quota);
    }
    let most = quota["max"]
        .as_u64()
        .map_or_else(|| "no maximum".to_owned(), |max| format!("at most {max}"));
    let least = quota["min"].as_u64().unwrap_or(0);
    let (tenant, pool) = (&options.tenant, &options.pool);
    print::data(&format!("tenant {tenant} in pool {pool}: at least {least} slots, {most}"))
}

/// What is set for a tenant; an empty document if nothing is.
pub(crate) async fn of_tenant(tenant: &str, target: &Target) -> Result<Value, Failure> {
    let set = settings(&mut target.admin().await?, v1::SettingKind::Tenant).await?;
    let set = set.into_iter().find(|setting| setting.name == tenant);
    let document = set.and_then(|setting| serde_json::from_str(&setting.json).ok());
    Ok(document.unwrap_or_else(|| json!({})))
}

/// Whether the least is not more than the most. Either may have been set before.
fn check(quota: &Value) -> Result<(), Failure> {
    let (Some(min), Some(max)) = (quota["min"].as_u64(), quota["max"].as_u64()) else {
        return Ok(());
    };
    if min <= max {
        return Ok(());
    }
    Err(Failure::Input {
        error: format!("at least {min} slots would be more than at most {max}"),
        hint: Some("change both, `--min` and `--max`; what is not given stays as it is".to_owned()),
    })
}

/// Sets a document, or removes it.
pub(crate) async fn set(options: &SetOptions, target: &Target) -> Result<(), Failure> {
    let mut admin = target.admin().await?;
    let (kind, name, document) = match &options.what {
        Set::Tenant(named) => (v1::SettingKind::Tenant, named.name.as_str(), &named.document),
        Set::Type(named) => (v1::SettingKind::Type, named.name.as_str(), &named.document),
        Set::Resource(named) => (v1::SettingKind::Resource, named.name.as_str(), &named.document),
        Set::Pool(named) => (v1::SettingKind::Pool, named.name.as_str(), &named.document),
        Set::Budget { document } => (v1::SettingKind::Budget, "", document),
    };
    if document == "-" {
        let request = v1::UnsetRequest { kind: kind.into(), name: name.to_owned() };
        admin.unset(request).await.map_err(|status| refused(&status))?;
    } else {
        put(&mut admin, kind, name, document).await?;
    }
    if !options.json {
        return Ok(());
    }
    let set = settings(&mut admin, kind).await?;
    print::json(&set.iter().find(|setting| setting.name == name).map(machine))
}

/// Lists everything that is set.
pub(crate) async fn list(options: &ListOptions, target: &Target) -> Result<(), Failure> {
    let mut admin = target.admin().await?;
    let all = settings(&mut admin, v1::SettingKind::Unspecified).await?;
    if options.json() {
        return print::json(&all.iter().map(machine).collect::<Vec<Value>>());
    }
    if all.is_empty() {
        print::note("nothing is set\n\nhint: `maitre set --help` shows what can be");
        return Ok(());
    }
    let rows = all.iter();
    let rows = rows.map(|one| vec![kind(one), one.name.clone(), one.json.clone()]).collect();
    print::data(&print::table(&["kind", "name", "document"], rows, &[]))
}

fn kind(setting: &v1::Setting) -> String {
    let name = setting.kind().as_str_name();
    name.trim_start_matches("SETTING_KIND_").to_ascii_lowercase()
}

fn machine(setting: &v1::Setting) -> Value {
    let document = serde_json::from_str(&setting.json);
    let document = document.unwrap_or_else(|_| Value::from(setting.json.as_str()));
    json!({ "kind": kind(setting), "name": setting.name, "document": document })
}

/// Writes the live world down.
pub(crate) async fn snapshot(target: &Target) -> Result<(), Failure> {
    let stream = target.admin().await?.snapshot(v1::SnapshotRequest {}).await;
    let mut stream = stream.map_err(|status| refused(&status))?.into_inner();
    let mut out = std::io::stdout().lock();
    while let Some(response) = stream.message().await.map_err(|status| refused(&status))? {
        out.write_all(&response.piece).map_err(|error| Failure::Other(error.into()))?;
    }
    out.flush().map_err(|error| Failure::Other(error.into()))
}

async fn settings(admin: &mut Admin, kind: v1::SettingKind) -> Result<Vec<v1::Setting>, Failure> {
    let response = admin.settings(v1::SettingsRequest { kind: kind.into() }).await;
    Ok(response.map_err(|status| refused(&status))?.into_inner().settings)
}

pub(crate) async fn put(
    admin: &mut Admin,
    kind: v1::SettingKind,
    name: &str,
    json: &str,
) -> Result<(), Failure> {
    let setting = v1::Setting { kind: kind.into(), name: name.to_owned(), json: json.to_owned() };
    let request = v1::SetRequest { setting: Some(setting) };
    admin.set(request).await.map_err(|status| refused(&status))?;
    Ok(())
}
