//! Submissions: all jobs of one, or none.

use std::collections::{BTreeSet, HashMap};

use model::{Record, Spec, TenantId};
use tokio_postgres::types::ToSql;

use super::columns;
use super::desk::{Sheet, Stage};
use super::draft::{Draft, Hold};
use super::fault::{Fault, unreadable};
use super::known::Known;
use super::write::exactly;
use crate::plan::{self, Place, begin};
use crate::{Idempotency, Refusal, Repeat, Submission, Submitted, transition};

/// Submissions without a common key.
pub(super) struct Taking {
    pub(super) submissions: Vec<Submission>,
}

/// The outcome of one submission.
enum Plan {
    Refused(Refusal),
    /// A repeated submission, and its jobs.
    Answered(Vec<i64>),
    New(Vec<Place>),
}

impl Stage for Taking {
    type Answer = Vec<Result<Submitted, Refusal>>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Self::Answer, Fault> {
        let mut draft = Draft::default();
        let submissions: Vec<&Submission> = self.submissions.iter().collect();
        let known = Known::read(sheet, &submissions, &mut draft).await?;
        let mut plans = self.plan(sheet, &known);
        let n_new: usize = plans.iter().map(Plan::n_new).sum();
        let mut numbers = take_numbers(sheet, n_new).await?;
        for plan in &mut plans {
            let rest = numbers.split_off(plan.n_new());
            plan.number(&numbers);
            numbers = rest;
        }
        let mut edges = Vec::new();
        for (submission, plan) in self.submissions.iter().zip(&plans) {
            if let Plan::New(places) = plan {
                write(sheet, &mut draft, submission, places)?;
                edges.extend(places.iter().flat_map(Place::edges));
            }
        }
        draft.write(sheet).await?;
        insert_edges(sheet, &edges).await?;
        self.insert_queues(sheet, &plans).await?;
        self.remember(sheet, &plans).await?;
        let mut answers = Vec::with_capacity(plans.len());
        for plan in plans {
            answers.push(answer(sheet, &mut draft, plan).await?);
        }
        Ok(answers)
    }
}

impl Taking {
    fn plan(&self, sheet: &Sheet<'_>, known: &Known) -> Vec<Plan> {
        // The new jobs of each tenant, and of all tenants.
        let mut more: HashMap<&TenantId, u64> = HashMap::new();
        let mut n_more = 0;
        let mut plans = Vec::with_capacity(self.submissions.len());
        for submission in &self.submissions {
            let mut planned = known.answered(submission).unwrap_or_else(|| {
                let Ok(planned) = plan::plan(known, &submission.tenant, &submission.jobs);
                planned.map_or_else(Plan::Refused, Plan::New)
            });
            let n_jobs = planned.n_unfinished();
            let of_tenant = more.entry(&submission.tenant).or_default();
            let (desk, before) = (sheet.desk, (*of_tenant, n_more));
            let full = desk.room.full(&desk.options, &submission.tenant, n_jobs, before);
            if let Some(refusal) = full {
                planned = Plan::Refused(refusal);
            } else {
                *of_tenant += n_jobs;
                n_more += n_jobs;
            }
            plans.push(planned);
        }
        plans
    }

    /// Writes the keys of new submissions in their order, so that no two transactions deadlock.
    async fn remember(&self, sheet: &Sheet<'_>, plans: &[Plan]) -> Result<(), Fault> {
        let keyed =
            self.submissions.iter().zip(plans).filter_map(|(submission, plan)| match plan {
                Plan::New(places) => Some((submission.idempotency.as_ref()?, submission, places)),
                Plan::Refused(_) | Plan::Answered(_) => None,
            });
        let mut keyed: Vec<(&Idempotency, &Submission, &Vec<Place>)> = keyed.collect();
        keyed.sort_by_key(|(idempotency, submission, _)| (&idempotency.key, &submission.tenant));
        for (idempotency, submission, places) in keyed {
            remember(sheet, &submission.tenant, idempotency, places).await?;
        }
        Ok(())
    }

    /// Confirms the queues of new jobs, so that scans read them.
    async fn insert_queues(&self, sheet: &Sheet<'_>, plans: &[Plan]) -> Result<(), Fault> {
        let mut specs: HashMap<i64, &Spec> = HashMap::new();
        for (submission, plan) in self.submissions.iter().zip(plans) {
            if let Plan::New(_) = plan {
                for job in &submission.jobs {
                    specs.entry(columns::queue(&job.spec)).or_insert(&job.spec);
                }
            }
        }
        sheet.desk.queues.make_sure(sheet, specs).await
    }
}

impl Known {
    fn answered(&self, submission: &Submission) -> Option<Plan> {
        let idempotency = submission.idempotency.as_ref()?;
        let key = (submission.tenant.to_string(), idempotency.key.clone());
        let (body, jobs) = self.keys.get(&key)?;
        if body[..] == idempotency.body {
            return Some(Plan::Answered(jobs.clone()));
        }
        Some(Plan::Refused(Refusal::KeyConflict { key: idempotency.key.clone() }))
    }
}

impl Plan {
    fn places(&self) -> &[Place] {
        match self {
            Self::New(places) => places,
            Self::Refused(_) | Self::Answered(_) => &[],
        }
    }

    fn n_new(&self) -> usize {
        plan::n_new(self.places())
    }

    fn n_unfinished(&self) -> u64 {
        let n = self.places().iter().filter(|place| matches!(place, Place::New { .. })).count();
        u64::try_from(n).unwrap_or(u64::MAX)
    }

    fn number(&mut self, numbers: &[i64]) {
        if let Self::New(places) = self {
            plan::number(places, |n| numbers.get(n).copied().unwrap_or(0));
        }
    }
}

const NUMBERS: &str = "SELECT nextval('job_ids') FROM generate_series(1, $1)";

async fn take_numbers(sheet: &Sheet<'_>, n: usize) -> Result<Vec<i64>, Fault> {
    if n == 0 {
        return Ok(Vec::new());
    }
    let statement = sheet.transaction.prepare_cached(NUMBERS).await?;
    let n = i32::try_from(n).map_err(|_| unreadable("more jobs than can be counted"))?;
    let rows = sheet.transaction.query(&statement, &[&n]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

fn write(
    sheet: &Sheet<'_>,
    draft: &mut Draft,
    submission: &Submission,
    places: &[Place],
) -> Result<(), Fault> {
    let missing = || unreadable("a job that is there and is not");
    for (job, place) in submission.jobs.iter().zip(places) {
        match place {
            Place::Same { id } => match job.repeat {
                Repeat::Join => {
                    let record = draft.get_mut(*id).ok_or_else(missing)?;
                    transition::join(record, job.spec.priority);
                }
                Repeat::Drop => {}
            },
            Place::New { id, .. } | Place::Over { id } => {
                let mut job = job.clone();
                job.spec.tenant = submission.tenant.clone();
                plan::name_blockers(&mut job, places);
                draft.insert(*id, begin(job, place, sheet.now));
            }
        }
        if let Place::New { blockers, .. } = place {
            for blocker in blockers {
                transition::add_dependent(draft.get_mut(*blocker).ok_or_else(missing)?);
            }
        }
    }
    Ok(())
}

const EDGES: &str = "INSERT INTO waits (blocker, waiter) \
    SELECT * FROM unnest($1::bigint[], $2::bigint[])";

async fn insert_edges(sheet: &Sheet<'_>, edges: &[(i64, i64)]) -> Result<(), Fault> {
    if edges.is_empty() {
        return Ok(());
    }
    let (blockers, waiters): (Vec<i64>, Vec<i64>) = edges.iter().copied().unzip();
    exactly(sheet, EDGES, &[&blockers, &waiters], edges.len()).await
}

const REMEMBER: &str = "WITH made AS (INSERT INTO keys (tenant, key, body, jobs) \
    VALUES ($1, $2, $3, $4) RETURNING id) \
    INSERT INTO keyed (job, key) SELECT DISTINCT u.job, made.id \
    FROM made, unnest($4::bigint[]) AS u(job)";

async fn remember(
    sheet: &Sheet<'_>,
    tenant: &TenantId,
    idempotency: &Idempotency,
    places: &[Place],
) -> Result<(), Fault> {
    let jobs: Vec<i64> = places.iter().map(Place::id).collect();
    let n_jobs = jobs.iter().collect::<BTreeSet<_>>().len();
    let (tenant, body) = (tenant.to_string(), idempotency.body.as_slice());
    let values: [&(dyn ToSql + Sync); 4] = [&tenant, &idempotency.key, &body, &jobs];
    exactly(sheet, REMEMBER, &values, n_jobs).await
}

async fn answer(
    sheet: &Sheet<'_>,
    draft: &mut Draft,
    plan: Plan,
) -> Result<Result<Submitted, Refusal>, Fault> {
    let places = match plan {
        Plan::Refused(refusal) => return Ok(Err(refusal)),
        Plan::New(places) => places,
        Plan::Answered(jobs) => {
            draft.load(sheet, &jobs, Hold::Hope).await?;
            draft.load_finished(sheet, &jobs).await?;
            let jobs: Vec<Record> = jobs.iter().filter_map(|id| draft.get(*id).cloned()).collect();
            let is_new = vec![false; jobs.len()];
            return Ok(Ok(Submitted { jobs, is_new, changed: Vec::new(), claimed: Vec::new() }));
        }
    };
    let is_new = places.iter().map(|place| !matches!(place, Place::Same { .. })).collect();
    let jobs = places.iter().filter_map(|place| draft.get(place.id()).cloned()).collect();
    let touched: BTreeSet<i64> = places.iter().flat_map(Place::touched).collect();
    let changed = draft.changed().filter(|(id, _)| touched.contains(id));
    let changed = changed.map(|(_, record)| record.clone()).collect();
    Ok(Ok(Submitted { jobs, is_new, changed, claimed: Vec::new() }))
}

impl Place {
    /// Pairs of a blocker and this job.
    fn edges(&self) -> Vec<(i64, i64)> {
        match self {
            Self::New { id, blockers } => blockers.iter().map(|blocker| (*blocker, *id)).collect(),
            Self::Over { .. } | Self::Same { .. } => Vec::new(),
        }
    }

    /// Existing jobs that this job may change.
    fn touched(&self) -> Vec<i64> {
        match self {
            Self::New { blockers, .. } => blockers.iter().copied().collect(),
            Self::Same { id } => vec![*id],
            Self::Over { .. } => Vec::new(),
        }
    }
}
