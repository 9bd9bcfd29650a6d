//! How much there is of what: what only the store can count is added to what the owner knows.

use model::{Millis, Record, State};
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
/// Unfinished jobs that are looked at for them, a page at a time.
const LOOKED_AT: usize = 1_000;
const PAGES_MAX: usize = 5;

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
        let mut load = self.ask(Question::Load).await?;
        let since = self.store.now() - WAITS_WINDOW;
        let runs = self.store.runs(since, WAITS_MAX).await;
        load.waits = Some(waits(&runs.map_err(|error| answer::failed(&error))?));
        for (record, alike) in self.oldest_queued().await? {
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

    /// Jobs that wait, the first submitted first: one of those that are alike, and how many more
    /// there are. Those that somebody holds wait by intent.
    async fn oldest_queued(&self) -> Result<Vec<(Record, u64)>, Status> {
        let mut found: Vec<(Record, u64)> = Vec::new();
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let records = self.store.look(after.take(), LOOKED_AT).await;
            let records = records.map_err(|error| answer::failed(&error))?;
            let is_last = records.len() < LOOKED_AT;
            after = records.last().map(|record| record.id.clone());
            let queued = records.into_iter();
            for record in queued.filter(|one| one.state == State::Queued && !one.on_hold) {
                let known = found.iter().position(|(known, _)| are_alike(known, &record));
                if let Some(at) = known {
                    found[at].1 += 1;
                } else if found.len() < SLOWEST {
                    found.push((record, 0));
                }
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }
}

fn are_alike(one: &Record, other: &Record) -> bool {
    let (one, other) = (&one.spec, &other.spec);
    one.tenant == other.tenant
        && one.kind == other.kind
        && one.pool == other.pool
        && one.needs == other.needs
        && one.slots == other.slots
        && one.amounts == other.amounts
}
