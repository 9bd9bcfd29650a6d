//! How many jobs go before one: its place among its rivals.

use std::collections::BTreeMap;

use model::policy::Turn;
use model::{Fixed, JobId, Timestamp};

use crate::order::OrderKey;
use crate::table::{ClassIx, JobIx, TenantIx};
use crate::turn::Scope;
use crate::world::World;

/// Nobody is helped by knowing more than this, and counting takes time.
const AHEAD_MAX: usize = 100_000;

/// Jobs that may go before one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// As [`World::ahead`] counts them.
    pub n_jobs: usize,
    /// Those of its own tenant.
    pub n_own: usize,
    /// All jobs of other tenants that want the same workers.
    pub n_others: usize,
}

impl World {
    /// How many waiting jobs go before `job` to the workers that could run it, as things are now.
    /// `None` if it stands in no line.
    ///
    /// Where tenants take turns by their shares, jobs of another tenant go before it as often as
    /// its own tenant's do, by their weights; so that part is an estimate.
    pub fn ahead(&mut self, job: &JobId, now: Timestamp) -> Option<usize> {
        self.advance(now);
        let ix = self.register.waiting(job)?;
        let before = self.rivals_before(ix)?;
        Some(self.count_ahead(self.queue.jobs[ix].tenant, &before).min(AHEAD_MAX))
    }

    /// The same, by whose they are.
    pub fn ahead_by(&mut self, job: &JobId, now: Timestamp) -> Option<Ahead> {
        self.advance(now);
        let ix = self.register.waiting(job)?;
        let own = self.queue.jobs[ix].tenant;
        let before = self.rivals_before(ix)?;
        let others = before.iter().filter(|(tenant, _)| **tenant != own);
        let n_others: usize = others.map(|(_, rivals)| rivals.n_all).sum();
        Some(Ahead {
            n_jobs: self.count_ahead(own, &before).min(AHEAD_MAX),
            n_own: before.get(&own).map_or(0, |rivals| rivals.n_first).min(AHEAD_MAX),
            n_others: n_others.min(AHEAD_MAX),
        })
    }

    /// The jobs that want the same workers, by tenant, its own included. `None` if the job stands
    /// in no line.
    pub(crate) fn rivals_before(&self, ix: JobIx) -> Option<BTreeMap<TenantIx, Rivals>> {
        let waiting = &self.queue.jobs[ix];
        let (tenant, class) = (waiting.tenant, waiting.class);
        let line = &self.queue.lines[waiting.line?];
        let (major, ready, id) = (waiting.major, waiting.standing.ready, waiting.id.clone());
        let key = OrderKey { major, ready, id };
        let own = self.shared(line.lane_key(), Scope::default()).rank(&key);
        let mut before: BTreeMap<TenantIx, Rivals> = BTreeMap::new();
        for rival in self.rival_classes(class) {
            let lines = self.queue.lines_of(&self.fleet.catalogue.classes[rival]);
            for line in lines.map(|line| &self.queue.lines[line]) {
                // What holds back others is no help to them; what holds back one's own tenant
                // holds back all of it.
                if line.key.tenant != tenant && self.is_held_back(line) {
                    continue;
                }
                let shared = self.shared(line.lane_key(), Scope::default());
                let rivals = before.entry(line.key.tenant).or_default();
                rivals.n_all += line.jobs.len();
                let keys = line.jobs.keys().take(AHEAD_MAX);
                rivals.n_first += keys.take_while(|key| shared.rank(key) < own).count();
            }
        }
        Some(before)
    }

    fn count_ahead(&self, own: TenantIx, before: &BTreeMap<TenantIx, Rivals>) -> usize {
        let takes_turns = matches!(self.policy.turn, Turn::Deficit | Turn::FairQueue);
        let n_own = before.get(&own).map_or(0, |rivals| rivals.n_first);
        let weight = |tenant: TenantIx| self.tenants[tenant].tenant.weight.max(Fixed::ONE);
        let others = before.iter().filter(|(tenant, _)| **tenant != own);
        let n_others: usize = others
            .map(|(tenant, rivals)| {
                if !takes_turns {
                    return rivals.n_first;
                }
                let turns = i64::try_from(n_own + 1).unwrap_or(i64::MAX);
                let due = Fixed::whole(turns.min(1_000_000))
                    .scale(weight(*tenant).in_thousandths(), weight(own).in_thousandths());
                let due = usize::try_from(due.in_thousandths() / 1_000).unwrap_or(0);
                rivals.n_all.min(due)
            })
            .sum();
        n_own + n_others
    }

    /// Classes with waiting jobs that some worker could hold that could also run `class`.
    fn rival_classes(&self, class: ClassIx) -> impl Iterator<Item = ClassIx> {
        let own = self.fleet.catalogue.classes[class].key.fit;
        let all = self.fleet.catalogue.classes.iter();
        let all = all.filter(|(_, class)| !class.lines.is_empty()).map(|(ix, _)| ix);
        all.filter(move |rival| *rival == class || self.fleet.is_shared(own, *rival))
    }
}

/// Jobs of one tenant that the same workers could run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rivals {
    pub(crate) n_all: usize,
    /// Those that stand before.
    pub(crate) n_first: usize,
}
