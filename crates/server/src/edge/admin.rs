//! The operators' door: settings, tenants, workers, the world written down.

use std::pin::Pin;

use model::{Fixed, TenantId, WorkerId};
use proto::v1::admin_server::Admin;
use proto::{Invalid, v1};
use store::{Setting, SettingKind};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::guard::Caller;
use super::{Door, answer};
use crate::revise::revise;
use crate::scheduler::Message;
use crate::settings::understand;
use crate::status::{Leave, Question};
use crate::tokens::Scope;
use crate::webhook;

/// Bytes of a snapshot in one answer.
const PIECE_BYTES: usize = 256 << 10;
/// Characters of a setting's document that are written down.
const VIEW_CHARACTERS: usize = 200;
/// Bytes in a setting's document.
const DOCUMENT_BYTES_MAX: usize = 64 << 10;

#[tonic::async_trait]
impl Admin for Door {
    type SnapshotStream = Pin<Box<dyn Stream<Item = Result<v1::SnapshotResponse, Status>> + Send>>;

    async fn set(
        &self,
        request: Request<v1::SetRequest>,
    ) -> Result<Response<v1::SetResponse>, Status> {
        let caller = Caller::of(&request)?;
        let setting = request.into_inner().setting.unwrap_or_default();
        if setting.json.len() > DOCUMENT_BYTES_MAX {
            let problem =
                format!("has {} bytes of at most {DOCUMENT_BYTES_MAX}", setting.json.len());
            return Err(answer::invalid(&Invalid::new("setting.json", problem)));
        }
        let stored = Setting {
            kind: kind(setting.kind())?,
            name: setting.name.clone(),
            document: Some(setting.json.clone()),
        };
        let about = named(&stored);
        self.put_whole(stored).await?;
        let what = format!("set {about} to {}", view_of(&setting.json));
        self.write_down(&caller, ("setting", &setting.name), what).await?;
        Ok(Response::new(v1::SetResponse { setting: Some(setting) }))
    }

    async fn unset(
        &self,
        request: Request<v1::UnsetRequest>,
    ) -> Result<Response<v1::UnsetResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let kind = kind(request.kind())?;
        let all = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let was_set =
            all.iter().any(|setting| setting.kind == kind && setting.name == request.name);
        if was_set {
            let setting = Setting { kind, name: request.name.clone(), document: None };
            let what = format!("unset {}", named(&setting));
            self.put_whole(setting).await?;
            self.write_down(&caller, ("setting", &request.name), what).await?;
        }
        Ok(Response::new(v1::UnsetResponse { was_set }))
    }

    async fn settings(
        &self,
        request: Request<v1::SettingsRequest>,
    ) -> Result<Response<v1::SettingsResponse>, Status> {
        let wanted = request.into_inner().kind();
        let all = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let settings = all.into_iter().filter_map(|setting| {
            let kind = wire_kind(setting.kind)?;
            let is_wanted = wanted == v1::SettingKind::Unspecified || wanted == kind;
            is_wanted.then(|| v1::Setting {
                kind: kind.into(),
                name: setting.name,
                json: setting.document.unwrap_or_default(),
            })
        });
        Ok(Response::new(v1::SettingsResponse { settings: settings.collect() }))
    }

    async fn tenants(
        &self,
        request: Request<v1::TenantsRequest>,
    ) -> Result<Response<v1::TenantsResponse>, Status> {
        let caller = Caller::of(&request)?;
        let (mut tenants, mut limit) = self.ask(Question::Tenants).await?;
        if caller.tenant().is_some() {
            tenants.retain(|status| caller.grant().reaches(&status.tenant.id));
            limit = None;
        }
        let used: Fixed = tenants.iter().map(|status| status.tenant.used + status.in_flight).sum();
        Ok(Response::new(v1::TenantsResponse {
            tenants: tenants.iter().map(tenant).collect(),
            budget_limit: limit.map(Fixed::to_f64),
            budget_used: used.to_f64(),
        }))
    }

    async fn workers(
        &self,
        _request: Request<v1::WorkersRequest>,
    ) -> Result<Response<v1::WorkersResponse>, Status> {
        let workers = self.ask(Question::Workers).await?;
        Ok(Response::new(v1::WorkersResponse { workers }))
    }

    async fn drain_worker(
        &self,
        request: Request<v1::DrainWorkerRequest>,
    ) -> Result<Response<v1::DrainWorkerResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let worker = WorkerId::new(&request.worker);
        let how = match (request.draining, request.shutdown_ms, request.then_exit) {
            (true, Some(grace_ms), _) => Leave::Within { grace_ms },
            (true, None, true) => Leave::OnceEmpty,
            (_, _, _) => Leave::Stay,
        };
        let jobs = self
            .ask(|answer| Question::Drain { worker, how, answer })
            .await?
            .ok_or_else(|| Status::not_found(format!("there is no worker `{}`", request.worker)))?;
        let document = request.draining.then(|| r#"{"draining":true}"#.to_owned());
        let name = request.worker.clone();
        self.put_whole(Setting { kind: SettingKind::Worker, name, document }).await?;
        let what = if request.draining { "drains the worker" } else { "lets the worker work" };
        self.write_down(&caller, ("setting", &request.worker), what.to_owned()).await?;
        Ok(Response::new(v1::DrainWorkerResponse { jobs }))
    }

    async fn snapshot(
        &self,
        _request: Request<v1::SnapshotRequest>,
    ) -> Result<Response<Self::SnapshotStream>, Status> {
        let snapshot = self.ask(Question::Snapshot).await?;
        let text = snapshot::write_text(&snapshot).into_bytes();
        let pieces: Vec<Result<v1::SnapshotResponse, Status>> = text
            .chunks(PIECE_BYTES.min(self.config.limits.message_bytes_max / 2).max(1))
            .map(|piece| Ok(v1::SnapshotResponse { piece: piece.to_vec() }))
            .collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(pieces))))
    }

    async fn types(
        &self,
        _request: Request<v1::TypesRequest>,
    ) -> Result<Response<v1::TypesResponse>, Status> {
        Ok(Response::new(v1::TypesResponse { types: self.types_now().await? }))
    }

    async fn load(
        &self,
        _request: Request<v1::LoadRequest>,
    ) -> Result<Response<v1::LoadResponse>, Status> {
        Ok(Response::new(self.load_now().await?))
    }

    async fn status(
        &self,
        request: Request<v1::StatusRequest>,
    ) -> Result<Response<v1::StatusResponse>, Status> {
        let caller = Caller::of(&request)?;
        let status = *self.ask(Question::Status).await?;
        let is_for_all = caller.tenant().is_none() && caller.grant().allows(Scope::Read);
        Ok(Response::new(if is_for_all { status } else { version_and_time(status) }))
    }

    async fn demand(
        &self,
        _request: Request<v1::DemandRequest>,
    ) -> Result<Response<v1::DemandResponse>, Status> {
        let wanted = self.ask(Question::Demand).await?;
        Ok(Response::new(v1::DemandResponse {
            wanted: wanted.into_iter().map(wanted_on_the_wire).collect(),
        }))
    }

    async fn new_token(
        &self,
        request: Request<v1::NewTokenRequest>,
    ) -> Result<Response<v1::NewTokenResponse>, Status> {
        let (caller, door) = (Caller::of(&request)?, self.clone());
        let made = async move { door.make_token(caller, request.into_inner()).await };
        Ok(Response::new(self.whole(made).await?))
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Result<Response<v1::RevokeTokenResponse>, Status> {
        let (caller, door) = (Caller::of(&request)?, self.clone());
        let gone = async move { door.remove_token(caller, request.into_inner()).await };
        Ok(Response::new(self.whole(gone).await?))
    }

    async fn tokens(
        &self,
        request: Request<v1::TokensRequest>,
    ) -> Result<Response<v1::TokensResponse>, Status> {
        Ok(Response::new(self.list_tokens(Caller::of(&request)?).await?))
    }

    async fn webhook_key(
        &self,
        request: Request<v1::WebhookKeyRequest>,
    ) -> Result<Response<v1::WebhookKeyResponse>, Status> {
        let (caller, mut request) = (Caller::of(&request)?, request.into_inner());
        caller.own("tenant", &mut request.tenant)?;
        let tenant = TenantId::new(&request.tenant);
        let key = webhook::tenant_key(&self.config.webhooks, &tenant);
        let key = key.ok_or_else(|| {
            Status::failed_precondition("there is no secret; hint: set `webhook_secret`")
        })?;
        Ok(Response::new(v1::WebhookKeyResponse { key: key.reveal().to_owned() }))
    }
}

impl Door {
    pub(crate) async fn put_whole(&self, setting: Setting) -> Result<(), Status> {
        let door = self.clone();
        self.whole(async move { door.put(setting).await }).await
    }

    /// Keeps a setting that is understood, and lets it take effect.
    async fn put(&self, setting: Setting) -> Result<(), Status> {
        let understood = understand(&setting).map_err(|invalid| answer::invalid(&invalid))?;
        let _turn = self.turn.lock().await;
        let kept = self.store.set(vec![setting]).await;
        kept.map_err(|error| answer::failed(&error))?;
        self.tell_done(Message::Set(Box::new(understood))).await;
        Ok(())
    }

    /// Keeps what `change` makes of a document that others may change too, and lets it take effect.
    pub(crate) async fn revise_whole(
        &self,
        kind: SettingKind,
        name: &str,
        change: impl Fn(Option<&str>) -> Result<String, Status> + Send + Sync + 'static,
    ) -> Result<String, Status> {
        let (door, name) = (self.clone(), name.to_owned());
        self.whole(async move {
            let understood = |document: String| {
                let setting = Setting { kind, name: name.clone(), document: Some(document) };
                understand(&setting).map_err(|invalid| answer::invalid(&invalid))
            };
            let checked = |was: Option<&str>| {
                let document = change(was)?;
                understood(document.clone()).map(|_| document)
            };
            let _turn = door.turn.lock().await;
            let kept = revise(&*door.store, (kind, &name), checked).await;
            let document = kept.map_err(|error| answer::failed(&error))??;
            let understood = understood(document.clone())?;
            door.tell_done(Message::Set(Box::new(understood))).await;
            Ok(document)
        })
        .await
    }
}

/// A setting's kind and name, for people.
fn named(setting: &Setting) -> String {
    format!("{} {}", setting.kind.name(), setting.name).trim_end().to_owned()
}

/// The beginning of a document, for people.
fn view_of(json: &str) -> String {
    let short: String = json.chars().take(VIEW_CHARACTERS).collect();
    if short.len() < json.len() { format!("{short}...") } else { short }
}

fn wanted_on_the_wire(wanted: decide::Wanted) -> v1::Wanted {
    let text = |name: Option<model::Name>| name.map(|name| name.to_string()).unwrap_or_default();
    let needs = wanted.needs.into_iter().map(|(key, values)| {
        let values = values.iter().map(ToString::to_string).collect();
        (key.to_string(), v1::Values { values })
    });
    v1::Wanted {
        r#type: text(wanted.kind),
        pool: text(wanted.pool),
        needs: needs.collect(),
        slots: wanted.slots,
        amounts: wanted.amounts.into_iter().map(|(key, n)| (key.to_string(), n)).collect(),
        jobs: wanted.n_jobs,
        slots_wanted: wanted.slots_wanted,
        slots_fitting: wanted.slots_fitting,
    }
}

/// What everybody may know.
fn version_and_time(status: v1::StatusResponse) -> v1::StatusResponse {
    let v1::StatusResponse { version, now_ms, .. } = status;
    v1::StatusResponse { version, now_ms, ..v1::StatusResponse::default() }
}

fn kind(kind: v1::SettingKind) -> Result<SettingKind, Status> {
    match kind {
        v1::SettingKind::Policy => Ok(SettingKind::Policy),
        v1::SettingKind::Budget => Ok(SettingKind::Budget),
        v1::SettingKind::Tenant => Ok(SettingKind::Tenant),
        v1::SettingKind::Type => Ok(SettingKind::Type),
        v1::SettingKind::Resource => Ok(SettingKind::Resource),
        v1::SettingKind::Pool => Ok(SettingKind::Pool),
        v1::SettingKind::Unspecified => {
            Err(answer::invalid(&Invalid::new("setting.kind", "is missing")))
        }
    }
}

/// The kind on the wire; `None` for what is set in other ways (`DrainWorker`, `NewToken`).
const fn wire_kind(kind: SettingKind) -> Option<v1::SettingKind> {
    match kind {
        SettingKind::Policy => Some(v1::SettingKind::Policy),
        SettingKind::Budget => Some(v1::SettingKind::Budget),
        SettingKind::Tenant => Some(v1::SettingKind::Tenant),
        SettingKind::Type => Some(v1::SettingKind::Type),
        SettingKind::Resource => Some(v1::SettingKind::Resource),
        SettingKind::Pool => Some(v1::SettingKind::Pool),
        SettingKind::Worker
        | SettingKind::Token
        | SettingKind::Descriptor
        | SettingKind::Context
        | SettingKind::Schedule
        | SettingKind::Asked => None,
    }
}

fn tenant(status: &decide::TenantStatus) -> v1::TenantStatus {
    let tenant = &status.tenant;
    let quotas = tenant.quotas.iter().map(|quota| {
        let slots = status.slots.get(&quota.pool).copied().unwrap_or(0);
        v1::QuotaStatus {
            pool: quota.pool.to_string(),
            min: quota.min,
            max: quota.max,
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
        }
    });
    v1::TenantStatus {
        name: tenant.id.to_string(),
        paused: !tenant.active,
        weight: tenant.weight.to_f64(),
        queued: u64::from(status.n_queued),
        running: u64::from(status.n_running),
        slots: status.slots.values().sum(),
        used: tenant.used.to_f64(),
        completed: tenant.completed,
        budget: tenant.budget.map(Fixed::to_f64),
        jobs_max: tenant.jobs_max,
        quotas: quotas.collect(),
    }
}
