//! Revival of jobs that failed or were cancelled.

use std::collections::HashMap;

use model::{JobId, Record, State, TenantId};

use super::columns;
use super::desk::{Sheet, Stage};
use super::draft::{Draft, Hold};
use super::fault::Fault;
use super::known::holders;
use crate::{Revived, number, transition};

/// Jobs to revive.
pub(super) struct Reviving {
    pub(super) jobs: Vec<JobId>,
}

type Key = (String, String, String);

impl Stage for Reviving {
    type Answer = Vec<Revived>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Revived>, Fault> {
        let ids: Vec<i64> = self.jobs.iter().filter_map(number::of).collect();
        let mut draft = Draft::default();
        draft.load(sheet, &ids, Hold::Lock).await?;
        draft.load_finished(sheet, &ids).await?;
        let keys: Vec<Key> = ids.iter().filter_map(|id| draft.get(*id).and_then(key_of)).collect();
        let mut holders = holders(sheet, &keys).await?;
        let mut n_more: HashMap<TenantId, u64> = HashMap::new();
        let mut answers = Vec::with_capacity(self.jobs.len());
        for job in &self.jobs {
            answers.push(one(sheet, &mut draft, job, (&mut holders, &mut n_more)));
        }
        let revived = draft.changed().map(|(_, record)| &*record.spec);
        let specs = revived.map(|spec| (columns::queue(spec), spec)).collect();
        sheet.desk.queues.make_sure(sheet, specs).await?;
        draft.write(sheet).await?;
        Ok(answers)
    }
}

fn key_of(record: &Record) -> Option<Key> {
    let key = record.spec.dedupe_key.clone()?;
    Some((record.spec.tenant.to_string(), record.spec.kind.to_string(), key))
}

fn one(
    sheet: &Sheet<'_>,
    draft: &mut Draft,
    job: &JobId,
    (holders, n_more): (&mut HashMap<Key, i64>, &mut HashMap<TenantId, u64>),
) -> Revived {
    let found = number::of(job).and_then(|id| Some((id, draft.get_mut(id)?)));
    let Some((id, record)) = found else { return Revived::Unknown };
    match record.state {
        State::Failed | State::Cancelled => {}
        State::Blocked | State::Queued | State::Claimed | State::Running | State::Succeeded => {
            return Revived::NotFinished(record.state);
        }
    }
    let key = key_of(record);
    if let Some(holder) = key.as_ref().and_then(|key| holders.get(key)) {
        return Revived::Taken(number::id(*holder));
    }
    let tenant = record.spec.tenant.clone();
    let before = (n_more.get(&tenant).copied().unwrap_or(0), n_more.values().sum());
    let desk = sheet.desk;
    if let Some(refusal) = desk.room.full(&desk.options, &tenant, 1, before) {
        return Revived::Full(refusal);
    }
    *n_more.entry(tenant).or_default() += 1;
    holders.extend(key.map(|key| (key, id)));
    transition::revive(record, sheet.now);
    Revived::Done(Box::new(record.clone()))
}
