//! Jobs are submitted: all of a submission, or none.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cause, IfFailed, Record, State, TenantId, Timestamp};

use super::World;
use crate::{NewJob, Refusal, Repeat, Submission, Submitted, number, transition};

impl World {
    pub(super) fn submit(
        &mut self,
        submission: Submission,
        now: Timestamp,
    ) -> Result<Submitted, Refusal> {
        let Submission { tenant, idempotency, jobs, first, claims } = submission;
        if first.is_some() {
            let n_ahead = self.n_ahead.entry(tenant.clone()).or_default();
            *n_ahead = n_ahead.saturating_sub(jobs.len());
        }
        if let Some(idempotency) = &idempotency {
            let key = (tenant.clone(), idempotency.key.clone());
            if let Some((body, numbers)) = self.keys.get(&key) {
                if *body != idempotency.body {
                    return Err(Refusal::KeyConflict { key: idempotency.key.clone() });
                }
                let jobs: Vec<Record> =
                    numbers.iter().filter_map(|number| self.jobs.get(number).cloned()).collect();
                let is_new = vec![false; jobs.len()];
                return Ok(Submitted { jobs, is_new, changed: Vec::new(), claimed: Vec::new() });
            }
        }
        self.check(&tenant, &jobs)?;

        // Jobs that may get a new priority, or more dependents.
        let held = jobs.iter().filter_map(|job| self.holder(&tenant, job));
        let named = jobs.iter().flat_map(|job| job.spec.after.iter().filter_map(number::of));
        let fences: BTreeMap<i64, u64> =
            held.chain(named).filter_map(|id| Some((id, self.jobs.get(&id)?.fence))).collect();
        let first = first.as_ref().and_then(number::of);
        let (mut next, mut numbers, mut is_new) = (first, Vec::new(), Vec::new());
        for job in jobs {
            let held = self.holder(&tenant, &job);
            is_new.push(held.is_none());
            if let Some(number) = held {
                self.repeat(number, &job);
                numbers.push(number);
            } else {
                let number = next.unwrap_or_else(|| self.number(1));
                next = next.map(|next| next + 1);
                self.take_in((&tenant, number), job, &numbers, now);
                numbers.push(number);
            }
        }
        if let Some(idempotency) = idempotency {
            self.keyed.extend(&numbers);
            self.keys.insert((tenant, idempotency.key), (idempotency.body, numbers.clone()));
        }
        let changed = fences.iter().map(|(id, fence)| (&self.jobs[id], *fence));
        let changed = changed.filter(|(record, fence)| record.fence != *fence);
        let changed = changed.map(|(record, _)| record.clone()).collect();
        let jobs = numbers.iter().map(|number| self.jobs[number].clone()).collect();
        let claimed = claims.into_iter().map(|claim| self.claim(claim, now)).collect();
        Ok(Submitted { jobs, is_new, changed, claimed })
    }

    /// The first of `n_jobs` reserved numbers, if there is room for the jobs.
    pub(super) fn number_ahead(&mut self, tenant: &TenantId, n_jobs: usize) -> Option<i64> {
        self.check_room(tenant, u64::try_from(n_jobs).unwrap_or(u64::MAX)).ok()?;
        *self.n_ahead.entry(tenant.clone()).or_default() += n_jobs;
        Some(self.number(n_jobs))
    }

    /// The first of `n_jobs` numbers, which are never handed out again.
    pub(super) fn number(&mut self, n_jobs: usize) -> i64 {
        let first = self.next_job;
        self.next_job += i64::try_from(n_jobs).unwrap_or(i64::MAX);
        first
    }

    /// A repeated job with this dedupe key. It may raise the priority.
    fn repeat(&mut self, number: i64, job: &NewJob) {
        match job.repeat {
            Repeat::Join => _ = transition::join(self.known(number), job.spec.priority),
            Repeat::Drop => {}
        }
    }

    /// Stores one job that passed the checks.
    fn take_in(
        &mut self,
        (tenant, number): (&TenantId, i64),
        job: NewJob,
        numbers: &[i64],
        now: Timestamp,
    ) {
        let mut spec = job.spec;
        spec.tenant = tenant.clone();

        let named = spec.after.iter().filter_map(number::of);
        let placed = job.after_indexes.iter().map(|place| numbers[*place]);
        let waits: BTreeSet<i64> = named.chain(placed).collect();
        if !job.after_indexes.is_empty() {
            // The record names its blockers for as long as it exists.
            spec.after = waits.iter().map(|id| number::id(*id)).collect();
        }
        let in_state = |wanted: fn(State) -> bool| {
            let found = waits.iter().filter(|id| self.state(**id).is_some_and(wanted));
            found.copied().collect::<Vec<i64>>()
        };
        let failed = in_state(|state| matches!(state, State::Failed | State::Cancelled));
        let blockers = in_state(|state| !state.is_terminal());
        if !failed.is_empty() && spec.if_failed == IfFailed::Cancel {
            let mut record = transition::submit(number::id(number), spec, 0, now);
            transition::finish(&mut record, State::Cancelled, Some(Cause::Dependency), now);
            self.jobs.insert(number, record);
            self.note(number);
            return;
        }
        let n_blockers = u32::try_from(blockers.len()).unwrap_or(u32::MAX);
        let mut record = transition::submit(number::id(number), spec, n_blockers, now);
        record.on_hold = job.on_hold;
        self.jobs.insert(number, record);
        self.list(number);
        for blocker in blockers {
            transition::add_dependent(self.known(blocker));
            self.waits.insert((blocker, number));
        }
    }

    fn holder(&self, tenant: &TenantId, job: &NewJob) -> Option<i64> {
        let key = job.spec.dedupe_key.clone()?;
        self.dedupe.get(&(tenant.clone(), job.spec.kind.clone(), key)).copied()
    }

    /// The reason to refuse the jobs.
    fn check(&self, tenant: &TenantId, jobs: &[NewJob]) -> Result<(), Refusal> {
        let mut keys = BTreeSet::new();
        // For each job: whether it is final at once.
        let mut is_over = Vec::new();
        let mut n_new = 0;
        for (index, job) in jobs.iter().enumerate() {
            let key = job.spec.dedupe_key.as_ref().map(|key| (&job.spec.kind, key));
            if self.holder(tenant, job).is_some() || key.is_some_and(|key| keys.contains(&key)) {
                is_over.push(false);
                continue;
            }
            let mut has_failed = false;
            for id in &job.spec.after {
                let known = self.job(id).filter(|(_, record)| record.spec.tenant == *tenant);
                let Some((_, record)) = known else {
                    return Err(Refusal::NoSuchJob { index, job: id.clone() });
                };
                has_failed |= matches!(record.state, State::Failed | State::Cancelled);
            }
            for place in &job.after_indexes {
                let Some(is_over) = is_over.get(*place) else {
                    return Err(Refusal::no_such_place(index, *place));
                };
                has_failed |= *is_over;
            }
            let over = has_failed && job.spec.if_failed == IfFailed::Cancel;
            is_over.push(over);
            if !over {
                n_new += 1;
                keys.extend(key);
            }
        }
        self.check_room(tenant, n_new)
    }

    pub(super) fn check_room(&self, tenant: &TenantId, n_new: u64) -> Result<(), Refusal> {
        let count = |records: usize| u64::try_from(records).unwrap_or(u64::MAX);
        let of_tenant = |number: &&i64| self.jobs[*number].spec.tenant == *tenant;
        let n_ahead = self.n_ahead.get(tenant).copied().unwrap_or(0);
        let jobs = count(self.unfinished.iter().filter(of_tenant).count() + n_ahead);
        let max = self.options.tenant_jobs_max;
        if n_new > 0 && jobs + n_new > max {
            return Err(Refusal::TenantFull { tenant: tenant.to_string(), jobs, max });
        }
        let n_all_ahead: usize = self.n_ahead.values().sum();
        let (jobs, max) = (count(self.unfinished.len() + n_all_ahead), self.options.jobs_max);
        if n_new > 0 && jobs + n_new > max {
            return Err(Refusal::StoreFull { jobs, max });
        }
        Ok(())
    }
}
