//! The operators' door to work that workers find.

use ::detect::{Descriptor, Field, Lane, Phase, Policy, Run};
use model::maxima::PAGE_MAX;
use proto::v1::detection_server::Detection;
use proto::{Invalid, v1};
use serde_json::{Map, Value};
use store::{NotePage, Noted, Setting, SettingKind};
use tonic::{Request, Response, Status};

use super::{Door, answer};
use crate::detect::{
    ACTIVITY_TOPIC, Activity, KINDS, LANE_PREFIX, Published, check_context, run_topic,
};
use crate::settings::wrong;
use crate::status::{KindNow, Question};

/// Entries on a page, if nobody says how many.
const PAGE_DEFAULT: usize = 100;
/// What a type's document says in other words than its policy's.
const SHARED: [&str; 2] = ["jobs_max", "worker_max"];

#[tonic::async_trait]
impl Detection for Door {
    async fn r#type(
        &self,
        request: Request<v1::TypeRequest>,
    ) -> Result<Response<v1::TypeResponse>, Status> {
        Ok(Response::new(self.type_now(&request.into_inner().r#type).await?))
    }

    async fn set_type(
        &self,
        request: Request<v1::SetTypeRequest>,
    ) -> Result<Response<v1::TypeResponse>, Status> {
        let request = request.into_inner();
        let mut values: Vec<(String, String)> = request.values.into_iter().collect();
        values.sort();
        self.change_type(&request.r#type, &values).await?;
        Ok(Response::new(self.type_now(&request.r#type).await?))
    }

    async fn describe(
        &self,
        request: Request<v1::DescribeTypeRequest>,
    ) -> Result<Response<v1::DescribeTypeResponse>, Status> {
        let kind = request.into_inner().r#type;
        let worker = self.ask(|answer| Question::Describe(kind.clone(), answer)).await?;
        let worker = worker.ok_or_else(|| {
            Status::failed_precondition(format!(
                "no worker that is well can look for work of type `{kind}` now"
            ))
        })?;
        Ok(Response::new(v1::DescribeTypeResponse { worker }))
    }

    async fn detect(
        &self,
        request: Request<v1::DetectRequest>,
    ) -> Result<Response<v1::DetectResponse>, Status> {
        let kind = request.into_inner().r#type;
        let asked = self.ask(|answer| Question::Detect(kind, answer)).await?;
        let is_running = asked.map_err(Status::failed_precondition)?;
        Ok(Response::new(v1::DetectResponse { is_running }))
    }

    async fn cancel_run(
        &self,
        request: Request<v1::CancelRunRequest>,
    ) -> Result<Response<v1::CancelRunResponse>, Status> {
        let kind = request.into_inner().r#type;
        let run = self.ask(|answer| Question::CancelRun(kind, answer)).await?;
        Ok(Response::new(v1::CancelRunResponse { run: run.unwrap_or_default() }))
    }

    async fn runs(
        &self,
        request: Request<v1::RunsRequest>,
    ) -> Result<Response<v1::RunsResponse>, Status> {
        let topic = run_topic(&request.into_inner().r#type);
        let page = NotePage { topic, kind: None, before: None, max: PAGE_MAX };
        let notes = self.store.notes(page).await.map_err(|error| answer::failed(&error))?;
        Ok(Response::new(v1::RunsResponse { runs: notes.iter().filter_map(run).collect() }))
    }

    async fn activity(
        &self,
        request: Request<v1::ActivityRequest>,
    ) -> Result<Response<v1::ActivityResponse>, Status> {
        let request = request.into_inner();
        let page = activity_page(&request).map_err(|invalid| answer::invalid(&invalid))?;
        let max = page.max;
        let notes = self.store.notes(page).await.map_err(|error| answer::failed(&error))?;
        let last = notes.last().map(|noted| noted.number).filter(|_| notes.len() == max);
        let entries = notes.into_iter().map(entry).collect();
        Ok(Response::new(v1::ActivityResponse { entries, next_before: last.unwrap_or(0) }))
    }

    async fn get_context(
        &self,
        _request: Request<v1::GetContextRequest>,
    ) -> Result<Response<v1::ContextResponse>, Status> {
        Ok(Response::new(context(self.ask(Question::Published).await?)))
    }

    async fn put_context(
        &self,
        request: Request<v1::PutContextRequest>,
    ) -> Result<Response<v1::ContextResponse>, Status> {
        let request = request.into_inner();
        let mut published = self.ask(Question::Published).await?;
        if let Some(json) = request.json {
            check_context(&json)
                .map_err(|problem| answer::invalid(&Invalid::new("json", problem)))?;
            published.version += 1;
            published.json = json;
        }
        if let Some(publisher) = request.publisher {
            let name = proto::optional_name("publisher", &publisher);
            name.map_err(|invalid| answer::invalid(&invalid))?;
            published.publisher = publisher;
        }
        self.put_whole(published.setting()).await?;
        let what = match published.publisher.as_str() {
            "" => format!("published version {}", published.version),
            name => format!("published version {}; `{name}` may publish", published.version),
        };
        self.write_down(&Activity::by_operator("context", "", what)).await?;
        Ok(Response::new(context(published)))
    }
}

impl Door {
    pub(crate) async fn write_down(&self, activity: &Activity) -> Result<(), Status> {
        let noted = self.store.note(vec![activity.note()]).await;
        noted.map_err(|error| answer::failed(&error))
    }

    async fn type_now(&self, kind: &str) -> Result<v1::TypeResponse, Status> {
        let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
        let now = now.ok_or_else(|| {
            Status::not_found(format!(
                "there is no type `{kind}`; a worker that can look for it, or `maitre set type`, \
                 makes it known"
            ))
        })?;
        let mut response = described(kind, &now);
        response.now_ms = self.store.now().0;
        let leads = self.store.leads(LANE_PREFIX.to_owned()).await;
        for lead in leads.map_err(|error| answer::failed(&error))? {
            let Ok(lane) = serde_json::from_str::<Lane>(&lead.document) else { continue };
            let is_own = lead.name == format!("{LANE_PREFIX}{}", now.known.now.policy.lane);
            show_lane(&mut response, &lane, &lead.holder, is_own.then_some(&now.known.now.policy));
        }
        Ok(response)
    }

    /// Changes a type's document, one value at a time, and lets it take effect.
    async fn change_type(&self, kind: &str, values: &[(String, String)]) -> Result<(), Status> {
        let invalid = |invalid: Invalid| answer::invalid(&invalid);
        proto::name("type", kind).map_err(invalid)?;
        let settings = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let known = settings.iter().find(|one| one.kind == SettingKind::Type && one.name == kind);
        let document = known.and_then(|setting| setting.document.as_deref()).unwrap_or("{}");
        let mut document: Map<String, Value> = serde_json::from_str(document).unwrap_or_default();
        for (name, value) in values {
            change(&mut document, name, value).map_err(invalid)?;
        }
        let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
        if let Some(now) = &now {
            check(&document, now).map_err(invalid)?;
        }
        let (name, document) = (kind.to_owned(), Some(Value::Object(document).to_string()));
        self.put_whole(Setting { kind: SettingKind::Type, name, document }).await?;
        let set: Vec<String> =
            values.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let what = format!("set {}", set.join(", "));
        self.write_down(&Activity::by_operator("setting", kind, what)).await
    }
}

/// Sets one value of a type's document; an empty one is unset.
fn change(document: &mut Map<String, Value>, name: &str, value: &str) -> Result<(), Invalid> {
    let (place, field) = match name.split_once('.') {
        Some((place @ ("admin" | "worker"), field)) => (Some(place), field),
        Some((place, _)) => {
            let problem = format!("is in `{place}`, which is neither `admin` nor `worker`");
            return Err(Invalid::new(name, problem));
        }
        None if SHARED.contains(&name) => (None, name),
        None => (Some("detection"), name),
    };
    let fields = match place {
        None => document,
        Some(place) => {
            let fields = document.entry(place).or_insert_with(|| Value::Object(Map::new()));
            let problem = || Invalid::new(place, "is not a JSON object");
            fields.as_object_mut().ok_or_else(problem)?
        }
    };
    if value.is_empty() {
        fields.remove(field);
        return Ok(());
    }
    let word = if place.is_none() {
        let number = value.parse::<u32>();
        let problem = || Invalid::new(name, format!("is `{value}`, which is no whole number"));
        number.map_err(|_| problem())?.into()
    } else {
        Value::from(value)
    };
    fields.insert(field.to_owned(), word);
    Ok(())
}

/// Whether a type's document goes with what workers say about the type.
fn check(document: &Map<String, Value>, now: &KindNow) -> Result<(), Invalid> {
    let part =
        |name: &str| document.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
    let descriptor = now.known.descriptor.clone().unwrap_or_default();
    let mut policy = part("detection");
    for shared in SHARED {
        policy.extend(document.get(shared).map(|value| (shared.to_owned(), value.clone())));
    }
    Policy::resolve(&policy, &descriptor.policy).map_err(wrong)?;
    descriptor.admin_values(&part("admin")).map_err(wrong)?;
    descriptor.worker_values(&part("worker")).map_err(wrong)?;
    Ok(())
}

fn described(kind: &str, now: &KindNow) -> v1::TypeResponse {
    let known = &now.known;
    let descriptor = known.descriptor.clone().unwrap_or_default();
    let policy = known.now.shown.iter().map(|shown| v1::PolicyValue {
        name: shown.name.to_owned(),
        value: shown.value.clone(),
        origin: shown.origin.name().to_owned(),
        help: shown.help.to_owned(),
    });
    v1::TypeResponse {
        r#type: kind.to_owned(),
        policy: policy.collect(),
        admin: config(&descriptor.admin, &known.now.admin, &known.words.admin),
        worker: config(&descriptor.worker, &known.now.worker, &known.words.worker),
        detectors: now.detectors.clone(),
        descriptor_json: known.descriptor.as_ref().map(Descriptor::to_text).unwrap_or_default(),
        display_name: descriptor.display_name,
        description: descriptor.description,
        ..v1::TypeResponse::default()
    }
}

fn config(
    fields: &[Field],
    values: &Map<String, Value>,
    set: &Map<String, Value>,
) -> Vec<v1::ConfigValue> {
    let value = |field: &Field| v1::ConfigValue {
        name: field.name.clone(),
        value: values.get(&field.name).map(ToString::to_string).unwrap_or_default(),
        is_set: set.contains_key(&field.name),
        field_json: serde_json::to_string(field).unwrap_or_default(),
    };
    fields.iter().map(value).collect()
}

/// What a lane says about a type: when it is due, if it is the type's own, and what runs.
fn show_lane(response: &mut v1::TypeResponse, lane: &Lane, leader: &str, policy: Option<&Policy>) {
    let kind = response.r#type.as_str();
    if let Some(policy) = policy {
        response.next_due_ms = lane.due_at(kind, policy).map(|at| at.0);
        response.last_success_ms = lane.succeeded_ms.get(kind).copied();
    }
    let Some(group) = lane.group.as_ref().filter(|group| group.kind == kind) else { return };
    let phase = match group.phase {
        Phase::Detecting { .. } => "detecting",
        Phase::Executing => "executing",
        Phase::Draining { .. } => "draining",
        Phase::Stopping => "stopping",
    };
    response.running = Some(v1::RunningRun {
        run: group.run.clone(),
        phase: phase.to_owned(),
        started_ms: group.started_ms,
        until_ms: group.until_ms,
        worker: group.worker.clone(),
        proposed: group.n_proposed,
        taken: group.n_taken,
        leader: leader.to_owned(),
    });
}

fn run(noted: &Noted) -> Option<v1::RunRecord> {
    let run: Run = serde_json::from_str(&noted.document).ok()?;
    let status = serde_json::to_value(run.status).ok()?;
    Some(v1::RunRecord {
        run: run.run,
        r#type: run.kind,
        status: status.as_str()?.to_owned(),
        started_ms: run.started_ms,
        ended_ms: run.ended_ms,
        asked: run.is_asked,
        worker: run.worker,
        error: run.error,
        proposed: run.n_proposed,
        taken: run.n_taken,
        refused: run.refused.into_iter().collect(),
        succeeded: run.ends.succeeded,
        failed: run.ends.failed,
        cancelled: run.ends.cancelled,
    })
}

fn activity_page(request: &v1::ActivityRequest) -> Result<NotePage, Invalid> {
    let kind = Some(request.kind.clone()).filter(|kind| !kind.is_empty());
    if let Some(kind) = kind.as_ref().filter(|kind| !KINDS.contains(&kind.as_str())) {
        let problem = format!("is `{kind}`, which is none of {}", KINDS.join(", "));
        return Err(Invalid::new("kind", problem));
    }
    let max = match usize::try_from(request.page_size).unwrap_or(usize::MAX) {
        0 => PAGE_DEFAULT,
        size if size <= PAGE_MAX => size,
        size => {
            let problem = format!("is {size}, which is not between 1 and {PAGE_MAX}");
            return Err(Invalid::new("page_size", problem));
        }
    };
    let before = (request.before != 0).then_some(request.before);
    Ok(NotePage { topic: ACTIVITY_TOPIC.to_owned(), kind, before, max })
}

fn entry(noted: Noted) -> v1::ActivityEntry {
    let document: Value = serde_json::from_str(&noted.document).unwrap_or_default();
    let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
    v1::ActivityEntry {
        number: noted.number,
        at_ms: noted.at.0,
        kind: noted.kind,
        who: text("who"),
        what: text("what"),
        why: text("why"),
        about: text("about"),
    }
}

fn context(published: Published) -> v1::ContextResponse {
    let Published { version, json, publisher } = published;
    v1::ContextResponse { version, json, publisher }
}
