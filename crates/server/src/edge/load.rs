//! How much there is of what: what only the store can count is added to what the owner knows.

use decide::LongWait;
use model::{Millis, State};
use proto::v1;
use store::SettingKind;
use tonic::Status;

use super::{Door, answer};
use crate::load::waits;
use crate::status::Question;

/// Waits are those of jobs that ended so lately.
const WAITS_WINDOW: Millis = Millis::from_secs(5 * 60);
/// At most so many of them are looked at, the newest.
const WAITS_MAX: usize = 20_000;
/// Jobs that waited longest are told, so many.
const SLOWEST: usize = 10;

impl Door {
    pub(crate) async fn types_now(&self) -> Result<Vec<v1::TypeStatus>, Status> {
        let failed = |error: store::Error| answer::failed(&error);
        let (mut types, n_of_any) = self.ask(Question::Types).await?;
        for tally in self.store.tally().await.map_err(failed)? {
            let kind = types.entry(tally.kind.to_string()).or_default();
            match tally.state {
                State::Blocked => kind.blocked += tally.n_jobs,
                State::Queued => kind.queued += tally.n_jobs,
                State::Claimed | State::Running => kind.running += tally.n_jobs,
                State::Succeeded | State::Failed | State::Cancelled => {}
            }
        }
        for setting in self.store.settings().await.map_err(failed)? {
            if setting.kind == SettingKind::Type {
                types.entry(setting.name).or_default().json = setting.document.unwrap_or_default();
            }
        }
        let complete = |(name, kind): (String, v1::TypeStatus)| v1::TypeStatus {
            name,
            workers: kind.workers + n_of_any,
            ..kind
        };
        Ok(types.into_iter().map(complete).collect())
    }

    pub(crate) async fn load_now(&self) -> Result<v1::LoadResponse, Status> {
        let (mut load, longest) = self.ask(|answer| Question::Load(SLOWEST, answer)).await?;
        let since = self.store.now() - WAITS_WINDOW;
        let runs = self.store.runs(since, WAITS_MAX).await;
        load.waits = Some(waits(&runs.map_err(|error| answer::failed(&error))?));
        for LongWait { job, n_alike: alike, .. } in longest {
            let record = self.store.job(job).await.map_err(|error| answer::failed(&error))?;
            let Some(record) = record else { continue };
            let known = self.ask(|answer| Question::Explain(Box::new(record.clone()), answer));
            // It may have been placed in the meantime.
            let Some(explained) = known.await? else { continue };
            load.slowest.push(v1::Waiting {
                id: record.id.as_number().unwrap_or_default(),
                tenant: record.spec.tenant.to_string(),
                r#type: record.spec.kind.to_string(),
                ready_ms: record.ready.unwrap_or(record.created).0,
                reason: explained.reason,
                detail: explained.detail,
                alike,
            });
        }
        Ok(load)
    }
}
