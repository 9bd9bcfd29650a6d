//! The operators' door to work that workers find.

mod kind;
mod change;

use ::detect::{Lane, Run};
use model::maxima::PAGE_MAX;
use proto::v1::detection_server::Detection;
use proto::{Invalid, v1};
use serde_json::Value;
use store::{NotePage, Noted, SettingKind};
use tonic::{Request, Response, Status};

use super::guard::Caller;
use super::{Door, answer};
use crate::detect::{
    ACTIVITY_TOPIC, Activity, Asked, KINDS, LANE_PREFIX, Published, What, check_context, run_topic,
};
use crate::status::Question;

/// Entries on a page, if nobody says how many.
const PAGE_DEFAULT: usize = 100;

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
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let mut values: Vec<(String, String)> = request.values.into_iter().collect();
        values.sort();
        Ok(Response::new(self.change_type(&caller, &request.r#type, &values).await?))
    }

    async fn describe(
        &self,
        request: Request<v1::DescribeTypeRequest>,
    ) -> Result<Response<v1::DescribeTypeResponse>, Status> {
        let (caller, kind) = (Caller::of(&request)?, request.into_inner().r#type);
        Ok(Response::new(self.describe_type(&caller, &kind).await?))
    }

    async fn detect(
        &self,
        request: Request<v1::DetectRequest>,
    ) -> Result<Response<v1::DetectResponse>, Status> {
        let (caller, kind) = (Caller::of(&request)?, request.into_inner().r#type);
        Ok(Response::new(self.detect_now(&caller, &kind).await?))
    }

    async fn cancel_run(
        &self,
        request: Request<v1::CancelRunRequest>,
    ) -> Result<Response<v1::CancelRunResponse>, Status> {
        let (caller, kind) = (Caller::of(&request)?, request.into_inner().r#type);
        Ok(Response::new(self.call_off_run(&caller, &kind).await?))
    }

    async fn runs(
        &self,
        request: Request<v1::RunsRequest>,
    ) -> Result<Response<v1::RunsResponse>, Status> {
        Ok(Response::new(self.runs_of(&request.into_inner().r#type).await?))
    }

    async fn activity(
        &self,
        request: Request<v1::ActivityRequest>,
    ) -> Result<Response<v1::ActivityResponse>, Status> {
        Ok(Response::new(self.activities(&request.into_inner()).await?))
    }

    async fn get_context(
        &self,
        _request: Request<v1::GetContextRequest>,
    ) -> Result<Response<v1::ContextResponse>, Status> {
        Ok(Response::new(self.context_now().await?))
    }

    async fn put_context(
        &self,
        request: Request<v1::PutContextRequest>,
    ) -> Result<Response<v1::ContextResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        Ok(Response::new(self.publish(&caller, request).await?))
    }
}

impl Door {
    /// Writes down what somebody did.
    pub(crate) async fn write_down(
        &self,
        caller: &Caller,
        (kind, about): (&'static str, &str),
        what: String,
    ) -> Result<(), Status> {
        let activity = Activity::new(kind, caller.who(), about, what);
        let noted = self.store.note(vec![activity.note()]).await;
        noted.map_err(|error| answer::failed(&error))
    }

    /// Asks for a run of a type. Whoever leads its lane sees to it.
    pub(crate) async fn detect_now(
        &self,
        caller: &Caller,
        kind: &str,
    ) -> Result<v1::DetectResponse, Status> {
        let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
        let refused = |problem| Err(Status::failed_precondition(problem));
        let Some(now) = now.filter(|now| now.known.descriptor.is_some()) else {
            return refused(format!(
                "no worker ever said that it can look for work of type `{kind}`; hint: {}",
                self.looked_for().await?
            ));
        };
        if !now.known.now.policy.is_enabled {
            return refused(format!(
                "type `{kind}` is not enabled; `maitre types set {kind} enabled=true` changes that"
            ));
        }
        if now.detectors.is_empty() && !now.is_elsewhere {
            return refused(no_detector(kind));
        }
        let is_running = self.run_of(kind).await?.is_some();
        self.ask_for(What::Detect, kind).await?;
        let what = format!("asked for a run of `{kind}` now");
        self.write_down(caller, ("detection", kind), what).await?;
        Ok(v1::DetectResponse { is_running })
    }

    /// The types that workers said they can look for, in words.
    async fn looked_for(&self) -> Result<String, Status> {
        let settings = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let described = settings.iter().filter(|setting| setting.kind == SettingKind::Descriptor);
        let kinds: Vec<String> = described.map(|setting| format!("`{}`", setting.name)).collect();
        Ok(if kinds.is_empty() {
            "nor of any other type; start a worker that does, see docs/detection.md".to_owned()
        } else {
            format!("the types that workers can look for are {}", kinds.join(", "))
        })
    }

    /// Calls off the run of a type, if there is one.
    pub(crate) async fn call_off_run(
        &self,
        caller: &Caller,
        kind: &str,
    ) -> Result<v1::CancelRunResponse, Status> {
        let Some(run) = self.run_of(kind).await? else {
            return Ok(v1::CancelRunResponse::default());
        };
        self.ask_for(What::CallOff(run.clone()), kind).await?;
        let what = format!("called off run {run} of `{kind}`");
        self.write_down(caller, ("group", kind), what).await?;
        Ok(v1::CancelRunResponse { run })
    }

    /// Has a worker asked what it says about a type.
    pub(crate) async fn describe_type(
        &self,
        caller: &Caller,
        kind: &str,
    ) -> Result<v1::DescribeTypeResponse, Status> {
        let worker = self.ask(|answer| Question::Describe(kind.to_owned(), answer)).await?;
        if worker.is_none() {
            let now = self.ask(|answer| Question::Kind(kind.to_owned(), answer)).await?;
            if !now.is_some_and(|now| now.is_elsewhere) {
                return Err(Status::failed_precondition(no_detector(kind)));
            }
            self.ask_for(What::Describe, kind).await?;
        }
        let what = format!("asked what `{kind}` is");
        self.write_down(caller, ("descriptor", kind), what).await?;
        Ok(v1::DescribeTypeResponse { worker: worker.unwrap_or_default() })
    }

    async fn ask_for(&self, what: What, kind: &str) -> Result<(), Status> {
        let asked = Asked { what, kind: kind.to_owned(), at_ms: self.store.now().0 };
        self.put_whole(asked.setting()).await
    }

    /// What the run of a type is called that is under way.
    async fn run_of(&self, kind: &str) -> Result<Option<String>, Status> {
        let groups = self.lanes().await?.into_iter().filter_map(|(_, _, lane)| lane.group);
        Ok(groups.into_iter().find(|group| group.kind == kind).map(|group| group.run))
    }

    /// Every lane that was ever led: what it is called, who led it last, and what was kept.
    async fn lanes(&self) -> Result<Vec<(String, String, Lane)>, Status> {
        let leads = self.store.leads(LANE_PREFIX.to_owned()).await;
        let leads = leads.map_err(|error| answer::failed(&error))?;
        let lane = |lead: store::Lead| {
            let name = lead.name.strip_prefix(LANE_PREFIX)?.to_owned();
            Some((name, lead.holder, serde_json::from_str(&lead.document).ok()?))
        };
        Ok(leads.into_iter().filter_map(lane).collect())
    }

    pub(crate) async fn runs_of(&self, kind: &str) -> Result<v1::RunsResponse, Status> {
        let page = NotePage { topic: run_topic(kind), kind: None, before: None, max: PAGE_MAX };
        let notes = self.store.notes(page).await.map_err(|error| answer::failed(&error))?;
        Ok(v1::RunsResponse { runs: notes.iter().filter_map(run).collect() })
    }

    pub(crate) async fn activities(
        &self,
        request: &v1::ActivityRequest,
    ) -> Result<v1::ActivityResponse, Status> {
        let page = activity_page(request).map_err(|invalid| answer::invalid(&invalid))?;
        let max = page.max;
        let notes = self.store.notes(page).await.map_err(|error| answer::failed(&error))?;
        let last = notes.last().map(|noted| noted.number).filter(|_| notes.len() == max);
        let entries = notes.into_iter().map(entry).collect();
        Ok(v1::ActivityResponse { entries, next_before: last.unwrap_or(0) })
    }

    pub(crate) async fn context_now(&self) -> Result<v1::ContextResponse, Status> {
        Ok(context(self.ask(Question::Published).await?))
    }

    pub(crate) async fn publish(
        &self,
        caller: &Caller,
        request: v1::PutContextRequest,
    ) -> Result<v1::ContextResponse, Status> {
        if let Some(json) = &request.json {
            check_context(json)
                .map_err(|problem| answer::invalid(&Invalid::new("json", problem)))?;
        }
        let publisher = request.publisher.as_deref().unwrap_or_default();
        proto::optional_name("publisher", publisher)
            .map_err(|invalid| answer::invalid(&invalid))?;
        let change = move |was: Option<&str>| {
            let v1::PutContextRequest { json, publisher } = request.clone();
            let mut published = Published::kept(was);
            if let Some(json) = json {
                published = published.followed_by(json);
            }
            published.publisher = publisher.unwrap_or(published.publisher);
            Ok(published.document())
        };
        let document = self.revise_whole(SettingKind::Context, "", change).await?;
        let published = Published::kept(Some(&document));
        let what = match published.publisher.as_str() {
            "" => format!("published version {}", published.version),
            name => format!("published version {}; `{name}` may publish", published.version),
        };
        self.write_down(caller, ("context", ""), what).await?;
        Ok(context(published))
    }
}

fn no_detector(kind: &str) -> String {
    format!("no worker that is well can look for work of type `{kind}` now")
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
