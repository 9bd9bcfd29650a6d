//! The clients' door: jobs.

use std::pin::Pin;
use std::sync::Arc;

use model::maxima::{IDS_MAX, PAGE_MAX};
use model::{Cause, Ending, JobId, Name, Record, State, TenantId, WorkerId};
use proto::v1::jobs_server::Jobs;
use proto::{Invalid, v1};
use store::{Filter, Past, Submission};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_stream::Stream;
use tonic::{Request, Response, Status};

use super::changes::Named;
use super::guard::Caller;
use super::told::told;
use super::{Door, answer, stopping};
use crate::early::{self, Outcome, Taking};
use crate::explain::Explained;
use crate::limits::exceeded;
use crate::scheduler::Message;
use crate::status::Question;
use crate::submit::submission;
use crate::watch::Change;
use crate::webhook;

/// Jobs on a page, if nobody says how many.
const PAGE_DEFAULT: usize = 100;

/// The last attempts of a job are shown, at most so many.
const ATTEMPTS_SHOWN: usize = 100;

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Jobs for Door {
    type WatchStream = Answers<v1::WatchResponse>;
    type LogsStream = Answers<v1::LogsResponse>;

    async fn submit(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::SubmitResponse>, Status> {
        let taken = match self.submittable(request) {
            Ok(request) => {
                let door = self.clone();
                self.whole(async move { door.take_in(request).await }).await
            }
            Err(status) => Err(status),
        };
        match &taken {
            Ok(taken) => self.tolls.submitted(taken.jobs.len()),
            Err(_) => self.tolls.refused(),
        }
        taken.map(Response::new)
    }

    async fn dry_run(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<Response<v1::DryRunResponse>, Status> {
        Ok(Response::new(self.foresee(self.submittable(request)?).await?))
    }

    async fn limits(
        &self,
        _: Request<v1::LimitsRequest>,
    ) -> Result<Response<v1::LimitsResponse>, Status> {
        Ok(Response::new(self.config.limits.told()))
    }

    async fn get(
        &self,
        request: Request<v1::GetRequest>,
    ) -> Result<Response<v1::GetResponse>, Status> {
        let (caller, id) = (Caller::of(&request)?, request.into_inner().id);
        let record = self.record(&caller, id).await?;
        let past = self.past(JobId::number(id)).await?;
        let n_older = past.len().saturating_sub(ATTEMPTS_SHOWN);
        let attempts = past.into_iter().skip(n_older).map(attempt).collect();
        Ok(Response::new(v1::GetResponse { job: Some(record.into()), attempts }))
    }

    async fn list(
        &self,
        request: Request<v1::ListRequest>,
    ) -> Result<Response<v1::ListResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let size = usize::try_from(request.page_size).unwrap_or(PAGE_MAX);
        if size > PAGE_MAX {
            let problem = format!("is {size}, which is not between 1 and {PAGE_MAX}");
            return Err(answer::invalid(&Invalid::new("page_size", problem)));
        }
        let max = if size == 0 { PAGE_DEFAULT } else { size };
        let mut filter = filter(&caller, request.filter.unwrap_or_default())?;
        filter.before = (request.before != 0).then(|| JobId::number(request.before));
        filter.max = max;
        let records = self.store.jobs(filter).await.map_err(|error| answer::failed(&error))?;
        let last = records.last().and_then(|record| record.id.as_number());
        let next_before = last.filter(|_| records.len() == max).unwrap_or_default();
        let jobs = records.into_iter().map(without_bytes).collect();
        Ok(Response::new(v1::ListResponse { jobs, next_before }))
    }

    async fn watch(
        &self,
        request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        ids(&request.ids)?;
        let filter = filter(&caller, request.filter.unwrap_or_default())?;
        watchable(&filter).map_err(|error| answer::invalid(&error))?;
        let place = self.place_to_watch()?;
        Ok(Response::new(self.changes_of(filter, request.ids, place)))
    }

    async fn wait(
        &self,
        request: Request<v1::WaitRequest>,
    ) -> Result<Response<v1::WaitResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let ids = ids(&request.ids)?;
        let _place = self.place_to_watch()?;
        Ok(Response::new(self.wait_for(&caller, ids, request.timeout_ms).await?))
    }

    async fn cancel(
        &self,
        request: Request<v1::CancelRequest>,
    ) -> Result<Response<v1::ChangeResponse>, Status> {
        let (door, caller) = (self.clone(), Caller::of(&request)?);
        let ids = self.named(&caller, &request.into_inner().ids).await?;
        Ok(Response::new(self.whole(async move { door.cancel_jobs(ids).await }).await?))
    }

    async fn retry(
        &self,
        request: Request<v1::RetryRequest>,
    ) -> Result<Response<v1::ChangeResponse>, Status> {
        let (door, caller) = (self.clone(), Caller::of(&request)?);
        let ids = self.named(&caller, &request.into_inner().ids).await?;
        Ok(Response::new(self.whole(async move { door.revive_jobs(ids).await }).await?))
    }

    async fn amend(
        &self,
        request: Request<v1::AmendRequest>,
    ) -> Result<Response<v1::ChangeResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let (door, ids) = (self.clone(), self.named(&caller, &request.ids).await?);
        let amended = self.whole(async move { door.amend_jobs(ids, request.change).await });
        Ok(Response::new(amended.await?))
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let (caller, id) = (Caller::of(&request)?, request.into_inner().id);
        let record = self.record(&caller, id).await?;
        let mut explained = None;
        if matches!(record.state, State::Blocked | State::Queued) {
            let asked = Box::new(record.clone());
            explained = self.ask(|answer| Question::Explain(asked, answer)).await?;
        }
        let explained = explained.unwrap_or_else(Explained::nothing);
        let explained = self.with_blockers(&record, explained).await?;
        Ok(Response::new(v1::ExplainResponse {
            id,
            state: v1::State::from(record.state).into(),
            why_there: self.why_there(&record).await?,
            ..told(explained)
        }))
    }

    async fn logs(
        &self,
        request: Request<v1::LogsRequest>,
    ) -> Result<Response<Self::LogsStream>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        self.record(&caller, request.id).await?;
        let place = self.place_to_watch()?;
        Ok(Response::new(self.follow(caller, request, place)))
    }
}

impl Door {
    pub(crate) async fn take_in(
        &self,
        request: v1::SubmitRequest,
    ) -> Result<v1::SubmitResponse, Status> {
        let types = self.types.borrow().clone();
        let submission =
            submission(request, &types).map_err(|invalid| answer::invalid(&invalid))?;
        let is_plain = early::is_plain(&submission);
        let outcome = if is_plain {
            self.submit_ahead(submission).await?
        } else {
            self.store.submit(submission).await
        };
        let answer = outcome.map_err(|error| answer::failed(&error))?;
        let submitted = answer.map_err(|refusal| answer::refused(&refusal))?;
        let jobs =
            submitted.jobs.iter().zip(&submitted.is_new).map(|(record, is_new)| v1::Submitted {
                id: record.id.as_number().unwrap_or_default(),
                is_new: *is_new,
                state: v1::State::from(record.state).into(),
            });
        let response = v1::SubmitResponse { jobs: jobs.collect() };
        if is_plain {
            return Ok(response);
        }
        // Also those that were there before: whoever asked first may not have got this far.
        let waiting: Vec<Record> = submitted.jobs.into_iter().chain(submitted.changed).collect();
        self.announce(&waiting);
        self.tell_done(Message::Waiting(waiting)).await;
        Ok(response)
    }

    /// Lets the owner of the world have them written down.
    async fn submit_ahead(&self, submission: Submission) -> Result<Outcome, Status> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Submit(Box::new(Taking { submission, answer }))).await?;
        answered.await.map_err(|_| stopping())
    }

    /// A submission that the caller may make, and that is within the limits.
    fn submittable(
        &self,
        request: Request<v1::SubmitRequest>,
    ) -> Result<v1::SubmitRequest, Status> {
        let (caller, mut request) = (Caller::of(&request)?, request.into_inner());
        self.config.limits.submission(&request)?;
        for (index, job) in request.jobs.iter_mut().enumerate() {
            caller.own(&format!("jobs[{index}].tenant"), &mut job.tenant)?;
            if !job.webhook.is_empty() {
                webhook::check(&self.config.webhooks, &job.webhook)?;
            }
        }
        Ok(request)
    }

    /// A job that the caller may see. What others have does not exist.
    pub(crate) async fn record(&self, caller: &Caller, id: u64) -> Result<Record, Status> {
        let record = self.store.job(JobId::number(id)).await;
        let record = record.map_err(|error| answer::failed(&error))?;
        record.filter(|record| caller.sees(record)).ok_or_else(|| answer::no_such_job(id))
    }

    /// The jobs that a request names. A job never changes its tenant, so what is seen here holds.
    async fn named(&self, caller: &Caller, numbers: &[u64]) -> Result<Vec<Named>, Status> {
        let mut named = Vec::with_capacity(numbers.len());
        for asked in ids(numbers)? {
            let is_seen = caller.tenant().is_none() || {
                let record = self.store.job(asked.clone()).await;
                let record = record.map_err(|error| answer::failed(&error))?;
                record.is_some_and(|record| caller.sees(&record))
            };
            let job = if is_seen { asked.clone() } else { JobId::number(0) };
            named.push(Named { asked, job });
        }
        Ok(named)
    }

    /// A place among the requests that stay open.
    fn place_to_watch(&self) -> Result<OwnedSemaphorePermit, Status> {
        Arc::clone(&self.watches).try_acquire_owned().map_err(|_| {
            let max = self.config.limits.watches_max;
            let would_be = format!("there would be {} requests that watch or wait", max + 1);
            exceeded(("watches_max", max), would_be, "try later")
        })
    }

    /// How many requests stay open.
    pub(crate) fn n_watching(&self) -> usize {
        self.config.limits.watches_max.saturating_sub(self.watches.available_permits())
    }

    /// Tells those who watch.
    pub(crate) fn announce(&self, records: &[Record]) {
        if !self.hub.is_heard() {
            return;
        }
        let now = self.store.now();
        self.hub.tell(records.iter().map(|record| Change::of(record, now)).collect());
    }

    /// Why its current or last attempt was placed where it was.
    async fn why_there(&self, record: &Record) -> Result<String, Status> {
        if let Some(current) = &record.current {
            return Ok(format!("on `{}`: {}", current.worker, current.why));
        }
        let past = self.past(record.id.clone()).await?;
        let last = past.last().map(|past| {
            // It may be placed on another worker soon: that one lost nothing.
            let is_lost = past.ending == Ending::Lost;
            let error = past.error.as_deref().unwrap_or("no word of it");
            let lost = if is_lost { format!(" (lost: {error})") } else { String::new() };
            format!("on `{}`{lost}: {}", past.worker, past.why)
        });
        Ok(last.unwrap_or_default())
    }

    /// The ended attempts of a job.
    async fn past(&self, job: JobId) -> Result<Vec<Past>, Status> {
        let pasts = self.store.attempts(vec![job]).await;
        let mut pasts = pasts.map_err(|error| answer::failed(&error))?;
        Ok(pasts.pop().unwrap_or_default())
    }
}

/// The jobs that a request names.
pub(crate) fn ids(ids: &[u64]) -> Result<Vec<JobId>, Status> {
    if ids.len() > IDS_MAX {
        let problem = format!("has {} entries of at most {IDS_MAX}", ids.len());
        return Err(answer::invalid(&Invalid::new("ids", problem)));
    }
    Ok(ids.iter().map(|id| JobId::number(*id)).collect())
}

/// Which jobs are asked for, of those that the caller may see.
fn filter(caller: &Caller, mut filter: v1::JobFilter) -> Result<Filter, Status> {
    caller.own("filter.tenant", &mut filter.tenant)?;
    understood(filter).map_err(|error| answer::invalid(&error))
}

fn understood(filter: v1::JobFilter) -> Result<Filter, Invalid> {
    let states = filter.states().map(|state| {
        state.known().ok_or_else(|| Invalid::new("filter.states", "has a state that is unknown"))
    });
    let states: Result<Vec<State>, Invalid> = states.collect();
    let cause = match filter.cause.as_str() {
        "" => None,
        cause => Some(Cause::named(cause).ok_or_else(|| {
            let all: Vec<&str> = Cause::ALL.iter().map(|cause| cause.name()).collect();
            let problem = format!("is `{cause}`, which is none of {}", all.join(", "));
            Invalid::new("filter.cause", problem)
        })?),
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Ok(Filter {
        tenant: some(&filter.tenant).map(|tenant| TenantId::new(&tenant)),
        states: states?,
        kind: some(&filter.r#type).map(|kind| Name::new(&kind)),
        group: some(&filter.group),
        parent: (filter.parent != 0).then(|| JobId::number(filter.parent)),
        worker: some(&filter.worker).map(|worker| WorkerId::new(&worker)),
        cause,
        labels: filter.labels.into_iter().collect(),
        before: None,
        max: PAGE_DEFAULT,
    })
}

/// A change says little of its job: what it does not say cannot be asked for.
fn watchable(filter: &Filter) -> Result<(), Invalid> {
    let fields = [
        ("labels", !filter.labels.is_empty()),
        ("group", filter.group.is_some()),
        ("parent", filter.parent.is_some()),
        ("cause", filter.cause.is_some()),
    ];
    let given = fields.into_iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(field, _)| {
        let problem = "cannot be watched for; list such jobs, and watch them by their ids";
        Err(Invalid::new(&format!("filter.{field}"), problem))
    })
}

/// A job as it is listed: what may be large is left out.
pub(crate) fn without_bytes(mut record: Record) -> v1::Job {
    Arc::make_mut(&mut record.spec).payload.clear();
    record.result = None;
    record.into()
}

fn attempt(past: Past) -> v1::Attempt {
    v1::Attempt {
        number: past.number,
        worker: past.worker.to_string(),
        claimed_ms: past.claimed.0,
        started_ms: past.started.map(|at| at.0),
        ended_ms: past.ended.0,
        ending: v1::Ending::from(past.ending).into(),
        error: past.error.unwrap_or_default(),
        exit_code: past.exit_code,
        measured: Some(past.measured.into()),
        why: past.why,
    }
}
