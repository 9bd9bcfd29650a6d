//! Attempts: each is counted in when it starts, and out when it ends.

use std::sync::Arc;

use model::{Attempt, Ended, Fixed, Millis};

use crate::account;
use crate::register::Place;
use crate::table::{AttemptIx, TenantIx};
use crate::waiting::AskIx;
use crate::world::{Running, World};

/// The usual length is a mean over about so many jobs.
const USUAL_MEMORY: i64 = 64;

impl World {
    /// Takes in an attempt that somebody else says is running.
    pub(super) fn start_reported(&mut self, attempt: &Attempt) {
        let worker = self.fleet.find(&attempt.worker);
        if let (Some(worker), Some(ix)) = (worker, self.register.running(&attempt.job))
            && self.attempts[ix].worker == worker
        {
            // As decided: it has started now.
            let running = &mut self.attempts[ix];
            let before = std::mem::replace(&mut running.started, attempt.started);
            running.placed_in = 0;
            let (tenant, slots, is_contested) =
                (running.tenant, running.slots, running.is_contested);
            self.tenants.change(tenant, |own| {
                own.restart(slots, before, attempt.started);
                own.contested.end(is_contested.then_some((slots, before)));
                own.contested.start(is_contested.then_some((slots, attempt.started)));
            });
            return;
        }
        self.forget(&attempt.job);
        let Some(worker) = self.fleet.find(&attempt.worker) else { return };
        let running = Running {
            job: attempt.job.clone(),
            entry: self.enter(&attempt.job),
            tenant: self.tenants.find_or_default(&attempt.tenant, &mut self.names),
            worker,
            pool: self.fleet.workers[worker].pool,
            kind: attempt.kind.as_ref().map(|kind| self.names.intern(kind)),
            needs: Arc::new(attempt.needs.clone()),
            slots: attempt.slots,
            amounts: self.intern_amounts(&attempt.amounts),
            priority: attempt.priority,
            ready: attempt.ready,
            started: attempt.started,
            cost: attempt.cost,
            estimate: attempt.estimate,
            on_demand: attempt.on_demand,
            is_contested: attempt.is_contested,
            limit: attempt.limit,
            evictions: attempt.evictions,
            traits: attempt.traits,
            holds: attempt.holds.as_ref().map(|ask| self.intern_ask(ask)),
            stopping_for: None,
            placed_in: 0,
        };
        self.start(running);
        if let Some(preemptor) = &attempt.stopping_for {
            self.stop(&attempt.job, preemptor);
        }
    }

    /// Counts an attempt in.
    pub(crate) fn start(&mut self, running: Running) -> AttemptIx {
        let Running { tenant, worker, kind, slots, cost, pool, holds, started, .. } = running;
        let slots_interactive = i64::from(if running.on_demand { slots } else { 0 });
        let contested = running.is_contested.then_some((slots, started));
        let (entry, job) = (running.entry, running.job.clone());
        self.fleet.change(worker, |seated| seated.take(slots, &running.amounts, kind));
        self.tenants.change(tenant, |sharer| {
            sharer.start(pool, slots, cost, started);
            sharer.slots_interactive += slots_interactive;
            sharer.contested.start(contested);
            sharer.workspaces_used += u32::from(holds == Some(AskIx::Any));
        });
        self.in_flight += cost;
        if let Some(kind) = kind {
            self.kind(kind).n_running += 1;
        }
        if let Some(AskIx::Named(name)) = holds {
            self.set_holder(name, Some(job));
        }
        let ix = self.attempts.insert(running);
        self.fleet.workers[worker].attempts.push(ix);
        self.register.set(entry, Place::Running(ix));
        ix
    }

    /// Counts an attempt out again.
    pub(super) fn release(&mut self, ix: AttemptIx) -> Running {
        let running = self.attempts.remove(ix);
        let Running { tenant, worker, kind, slots, cost, pool, holds, started, .. } = running;
        let slots_interactive = i64::from(if running.on_demand { slots } else { 0 });
        let contested = running.is_contested.then_some((slots, started));
        self.register.remove(running.entry);
        let seated = &mut self.fleet.workers[worker].attempts;
        // In the order of their starts, so the one that ends is mostly among the first.
        if let Some(at) = seated.iter().position(|other| *other == ix) {
            seated.remove(at);
        }
        self.fleet.change(worker, |seated| seated.give_back(slots, &running.amounts, kind));
        self.tenants.change(tenant, |sharer| {
            sharer.end(pool, slots, cost, started);
            sharer.slots_interactive -= slots_interactive;
            sharer.contested.end(contested);
            sharer.workspaces_used -= u32::from(holds == Some(AskIx::Any));
        });
        self.in_flight -= cost;
        if let Some(kind) = kind {
            self.kind(kind).n_running -= 1;
        }
        if let Some(AskIx::Named(name)) = holds {
            self.set_holder(name, None);
        }
        if let Some(preemptor) = &running.stopping_for {
            self.stopped(preemptor, ix, worker);
        }
        self.forget_if_empty(worker);
        running
    }

    pub(super) fn end(&mut self, ended: &Ended) {
        let Some(ix) = self.register.running(&ended.job) else { return };
        let running = self.release(ix);
        let ran = ended.at.since(running.started).max(Millis::ZERO);
        if ended.completed {
            self.learn_length(&running, ran);
        }
        let had = i64::from(running.slots).saturating_mul(ran.0);
        let contested = if running.is_contested { had } else { 0 };
        self.tenants.change(running.tenant, |sharer| {
            let account = &mut sharer.tenant.account;
            account.served = account.served.saturating_add(had);
            sharer.contested.ended += i128::from(contested);
        });
        self.settle(running.tenant, ended.cost, u64::from(ended.completed));
    }

    /// A job ran for so long: what was said of its length is judged by it.
    fn learn_length(&mut self, running: &Running, ran: Millis) {
        let ran = ran.max(Millis(1));
        let usual = self.usual.unwrap_or(ran);
        self.usual = Some(Millis(usual.0 + (ran.0 - usual.0) / USUAL_MEMORY).max(Millis(1)));
        let Some(said) = running.estimate else { return };
        self.tenants.change(running.tenant, |sharer| {
            account::judge(&mut sharer.tenant.account.trust, said, ran);
        });
    }

    fn settle(&mut self, tenant: TenantIx, cost: Fixed, completed: u64) {
        self.tenants.change(tenant, |sharer| {
            sharer.tenant.used += cost;
            sharer.tenant.completed += completed;
        });
        if let Some(budget) = &mut self.budget {
            budget.used += cost;
        }
    }
}
