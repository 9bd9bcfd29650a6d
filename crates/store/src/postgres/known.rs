//! The state of jobs that submissions name, read before the plan.

use std::collections::HashMap;
use std::convert::Infallible;

use model::{Name, State};

use super::desk::Sheet;
use super::draft::{Draft, Hold};
use super::fault::Fault;
use super::row::{self, finished_these};
use crate::plan;
use crate::{Submission, number};

/// Existing jobs and keys that submissions refer to.
#[derive(Default)]
pub(super) struct Known {
    /// Unfinished jobs by tenant, type and dedupe key.
    holders: HashMap<(String, String, String), i64>,
    /// Named blockers: the tenant and the state of each.
    states: HashMap<i64, (String, State)>,
    /// The digest of the submission and the jobs of each known idempotency key.
    pub(super) keys: HashMap<(String, String), (Vec<u8>, Vec<i64>)>,
}

impl plan::Known for Known {
    type Fault = Infallible;

    fn holder(&self, tenant: &str, (kind, key): (&Name, &str)) -> Result<Option<i64>, Infallible> {
        let key = (tenant.to_owned(), kind.to_string(), key.to_owned());
        Ok(self.holders.get(&key).copied())
    }

    fn state(&self, tenant: &str, id: i64) -> Result<Option<State>, Infallible> {
        let found = self.states.get(&id).filter(|(owner, _)| owner == tenant);
        Ok(found.map(|(_, state)| *state))
    }
}

const KEYS: &str = "SELECT k.tenant, k.key, k.body, k.jobs FROM keys k \
    JOIN unnest($1::text[], $2::text[]) AS u(tenant, key) \
    ON k.tenant = u.tenant AND k.key = u.key";

const HOLDERS: &str = "SELECT j.id, j.tenant, j.kind, j.dedupe_key FROM jobs j \
    JOIN unnest($1::text[], $2::text[], $3::text[]) AS u(tenant, kind, key) \
    ON j.tenant = u.tenant AND j.kind = u.kind AND j.dedupe_key = u.key";

/// The unfinished jobs that have these dedupe keys.
pub(super) async fn holders(
    sheet: &Sheet<'_>,
    keys: &[(String, String, String)],
) -> Result<HashMap<(String, String, String), i64>, Fault> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let column = |of: fn(&(String, String, String)) -> &String| keys.iter().map(of).collect();
    let (tenants, kinds, names): (Vec<&String>, Vec<&String>, Vec<&String>) =
        (column(|key| &key.0), column(|key| &key.1), column(|key| &key.2));
    let statement = sheet.transaction.prepare_cached(HOLDERS).await?;
    let mut holders = HashMap::new();
    for row in sheet.transaction.query(&statement, &[&tenants, &kinds, &names]).await? {
        holders.insert((row.try_get(1)?, row.try_get(2)?, row.try_get(3)?), row.try_get(0)?);
    }
    Ok(holders)
}

pub(super) const STATES: &str = concat!("SELECT j.id, j.tenant, j.state FROM ", finished_these!());

impl Known {
    /// Reads the jobs and keys that the submissions name. Blockers and joined jobs are in the draft
    /// afterwards.
    pub(super) async fn read(
        sheet: &Sheet<'_>,
        submissions: &[&Submission],
        draft: &mut Draft,
    ) -> Result<Self, Fault> {
        let mut known = Self::default();
        known.read_keys(sheet, submissions).await?;
        let dedupe_keys: Vec<(String, String, String)> = submissions
            .iter()
            .flat_map(|submission| submission.jobs.iter().map(|job| (&submission.tenant, job)))
            .filter_map(|(tenant, job)| {
                let key = job.spec.dedupe_key.clone()?;
                Some((tenant.to_string(), job.spec.kind.to_string(), key))
            })
            .collect();
        known.holders = holders(sheet, &dedupe_keys).await?;
        let held: Vec<i64> = known.holders.values().copied().collect();
        draft.load(sheet, &held, Hold::Hope).await?;
        let named: Vec<i64> = submissions
            .iter()
            .flat_map(|submission| submission.jobs.iter())
            .flat_map(|job| job.spec.after.iter().filter_map(number::of))
            .collect();
        known.read_states(sheet, &named, draft).await?;
        Ok(known)
    }

    async fn read_keys(
        &mut self,
        sheet: &Sheet<'_>,
        submissions: &[&Submission],
    ) -> Result<(), Fault> {
        let keys = submissions.iter().filter_map(|submission| {
            Some((submission.tenant.to_string(), submission.idempotency.as_ref()?.key.clone()))
        });
        let (tenants, keys): (Vec<String>, Vec<String>) = keys.unzip();
        if keys.is_empty() {
            return Ok(());
        }
        let statement = sheet.transaction.prepare_cached(KEYS).await?;
        for row in sheet.transaction.query(&statement, &[&tenants, &keys]).await? {
            let key = (row.try_get(0)?, row.try_get(1)?);
            self.keys.insert(key, (row.try_get(2)?, row.try_get(3)?));
        }
        Ok(())
    }

    /// Locks each blocker, so that it cannot end before the new edge is written.
    async fn read_states(
        &mut self,
        sheet: &Sheet<'_>,
        named: &[i64],
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        if named.is_empty() {
            return Ok(());
        }
        draft.load(sheet, named, Hold::Lock).await?;
        let mut rest = Vec::new();
        for id in named {
            match draft.get(*id) {
                Some(record) => {
                    self.states.insert(*id, (record.spec.tenant.to_string(), record.state));
                }
                None => rest.push(*id),
            }
        }
        if rest.is_empty() {
            return Ok(());
        }
        let statement = sheet.transaction.prepare_cached(STATES).await?;
        for row in sheet.transaction.query(&statement, &[&rest]).await? {
            if let Some(state) = row::named(&row, 2, State::named)? {
                self.states.insert(row.try_get(0)?, (row.try_get(1)?, state));
            }
        }
        Ok(())
    }
}
