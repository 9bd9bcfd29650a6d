//! The operators' door to jobs that recur.

use std::collections::BTreeMap;

use model::Timestamp;
use proto::v1::schedules_server::Schedules;
use proto::{Invalid, v1};
use store::{Setting, SettingKind};
use tonic::{Request, Response, Status};

use super::guard::Caller;
use super::{Door, answer};
use crate::recur::{Kept, LEAD, Schedule};
use crate::submit::submission;

/// Schedules that there may be.
const SCHEDULES_MAX: usize = 10_000;

#[tonic::async_trait]
impl Schedules for Door {
    async fn put_schedule(
        &self,
        request: Request<v1::PutScheduleRequest>,
    ) -> Result<Response<v1::ScheduleResponse>, Status> {
        let (caller, wire) = (Caller::of(&request)?, request.into_inner().schedule);
        let schedule = Some(self.set_schedule(&caller, &wire.unwrap_or_default()).await?);
        Ok(Response::new(v1::ScheduleResponse { schedule }))
    }

    async fn remove_schedule(
        &self,
        request: Request<v1::RemoveScheduleRequest>,
    ) -> Result<Response<v1::RemoveScheduleResponse>, Status> {
        let (caller, name) = (Caller::of(&request)?, request.into_inner().name);
        let was_there = self.drop_schedule(&caller, &name).await?;
        Ok(Response::new(v1::RemoveScheduleResponse { was_there }))
    }

    async fn pause_schedule(
        &self,
        request: Request<v1::PauseScheduleRequest>,
    ) -> Result<Response<v1::ScheduleResponse>, Status> {
        let (caller, request) = (Caller::of(&request)?, request.into_inner());
        let schedule = Some(self.rest_schedule(&caller, request).await?);
        Ok(Response::new(v1::ScheduleResponse { schedule }))
    }

    async fn run_schedule(
        &self,
        request: Request<v1::RunScheduleRequest>,
    ) -> Result<Response<v1::RunScheduleResponse>, Status> {
        let (caller, name) = (Caller::of(&request)?, request.into_inner().name);
        let job = self.run_schedule_now(&caller, &name).await?;
        Ok(Response::new(v1::RunScheduleResponse { job }))
    }

    async fn list_schedules(
        &self,
        _request: Request<v1::ListSchedulesRequest>,
    ) -> Result<Response<v1::ListSchedulesResponse>, Status> {
        Ok(Response::new(self.all_schedules().await?))
    }
}

impl Door {
    /// Adds a schedule, or changes it.
    pub(crate) async fn set_schedule(
        &self,
        caller: &Caller,
        wire: &v1::Schedule,
    ) -> Result<v1::ScheduleStatus, Status> {
        let invalid = |invalid: Invalid| answer::invalid(&invalid.inside("schedule"));
        proto::name("name", &wire.name).map_err(invalid)?;
        let schedule = Schedule::checked(wire, self.store.now()).map_err(invalid)?;
        let jobs = vec![schedule.spec(&wire.name, Timestamp(0))];
        let job = v1::SubmitRequest { jobs, ..v1::SubmitRequest::default() };
        submission(job, &self.types.borrow()).map_err(invalid)?;
        let known = self.schedules().await?;
        if !known.contains_key(&wire.name) && known.len() >= SCHEDULES_MAX {
            let problem = format!("would be one of more than {SCHEDULES_MAX} schedules");
            return Err(invalid(Invalid::new("name", problem)));
        }
        self.put_whole(schedule.setting(&wire.name)).await?;
        let what = "set the schedule".to_owned();
        self.write_down(caller, ("schedule", &wire.name), what).await?;
        self.schedule_status(&wire.name).await
    }

    /// Removes a schedule; whether it was there.
    pub(crate) async fn drop_schedule(&self, caller: &Caller, name: &str) -> Result<bool, Status> {
        let was_there = self.schedules().await?.contains_key(name);
        if was_there {
            let kind = SettingKind::Schedule;
            self.put_whole(Setting { kind, name: name.to_owned(), document: None }).await?;
            let what = "removed the schedule".to_owned();
            self.write_down(caller, ("schedule", name), what).await?;
        }
        Ok(was_there)
    }

    /// Lets a schedule rest, or go on.
    pub(crate) async fn rest_schedule(
        &self,
        caller: &Caller,
        request: v1::PauseScheduleRequest,
    ) -> Result<v1::ScheduleStatus, Status> {
        let v1::PauseScheduleRequest { name, paused } = request;
        let known = self.schedules().await?.remove(&name).ok_or_else(|| no_such(&name))?;
        if known.is_paused != paused {
            let (now, gone) = (self.store.now(), name.clone());
            let change = move |was: Option<&str>| {
                let mut schedule = was.and_then(|text| Schedule::read(text).ok());
                let schedule = schedule.as_mut().ok_or_else(|| no_such(&gone))?;
                schedule.is_paused = paused;
                // What would have been due while it was paused is not caught up with.
                schedule.since_ms = now.0;
                Ok(schedule.document())
            };
            self.revise_whole(SettingKind::Schedule, &name, change).await?;
            let what = if paused { "paused the schedule" } else { "resumed the schedule" };
            self.write_down(caller, ("schedule", &name), what.to_owned()).await?;
        }
        self.schedule_status(&name).await
    }

    /// Submits the job of a schedule now, whatever is due; its number.
    pub(crate) async fn run_schedule_now(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<u64, Status> {
        let schedule = self.schedules().await?.remove(name).ok_or_else(|| no_such(name))?;
        let jobs = vec![schedule.spec(name, self.store.now())];
        let request = v1::SubmitRequest { jobs, ..v1::SubmitRequest::default() };
        let door = self.clone();
        let taken = self.whole(async move { door.take_in(request).await }).await?;
        let job = taken.jobs.first().map(|job| job.id).unwrap_or_default();
        let what = format!("submitted job {job} now");
        self.write_down(caller, ("schedule", name), what).await?;
        Ok(job)
    }

    pub(crate) async fn all_schedules(&self) -> Result<v1::ListSchedulesResponse, Status> {
        let (schedules, kept) = (self.schedules().await?, self.schedules_kept().await?);
        let now = self.store.now();
        let status = |(name, schedule): (&String, &Schedule)| status(name, schedule, &kept, now);
        let schedules = schedules.iter().map(status).collect();
        Ok(v1::ListSchedulesResponse { schedules, now_ms: now.0 })
    }

    async fn schedules(&self) -> Result<BTreeMap<String, Schedule>, Status> {
        let settings = self.store.settings().await.map_err(|error| answer::failed(&error))?;
        let schedules = settings.into_iter().filter(|one| one.kind == SettingKind::Schedule);
        let read = |one: Setting| {
            let schedule = Schedule::read(one.document.as_deref().unwrap_or_default()).ok()?;
            Some((one.name, schedule))
        };
        Ok(schedules.filter_map(read).collect())
    }

    async fn schedules_kept(&self) -> Result<Kept, Status> {
        let leads = self.store.leads(LEAD.to_owned()).await;
        let leads = leads.map_err(|error| answer::failed(&error))?;
        let kept = leads.first().and_then(|lead| serde_json::from_str(&lead.document).ok());
        Ok(kept.unwrap_or_default())
    }

    async fn schedule_status(&self, name: &str) -> Result<v1::ScheduleStatus, Status> {
        let schedule = self.schedules().await?.remove(name).ok_or_else(|| no_such(name))?;
        let kept = self.schedules_kept().await?;
        Ok(status(name, &schedule, &kept, self.store.now()))
    }
}

fn no_such(name: &str) -> Status {
    Status::not_found(format!("there is no schedule `{name}`"))
}

fn status(name: &str, schedule: &Schedule, kept: &Kept, now: Timestamp) -> v1::ScheduleStatus {
    let last = kept.done_ms.get(name).copied();
    let done = Timestamp(last.unwrap_or(i64::MIN).max(schedule.since_ms));
    let beat = schedule.beat().ok().filter(|_| !schedule.is_paused);
    v1::ScheduleStatus {
        schedule: Some(schedule.shown(name)),
        next_ms: beat.and_then(|beat| beat.next(done.max(now))).map(|at| at.0),
        last_ms: last,
        last_job: kept.jobs.get(name).copied().unwrap_or(0),
    }
}
