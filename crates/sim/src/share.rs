//! How the fleet was shared while every tenant had something waiting.

use model::{Millis, Timestamp};

use crate::engine::Replay;
use crate::number::{count, float, ratio};
use crate::workload::{Sharer, Workload};

/// How the fleet was shared in contended time.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// For how long every tenant had something waiting.
    pub contended: Millis,
    /// What each tenant got of the fleet then, from 0 to 1.
    pub got: Vec<f64>,
    /// What each was due, from 0 to 1.
    pub due: Vec<f64>,
    /// 1 if all got the same for their weight.
    pub jain: f64,
    /// The most that a tenant got too much or too little, as a part of its due.
    pub error: f64,
    /// The most that a tenant was ever behind within a contended interval, in slot-seconds.
    pub lag_s: f64,
}

/// A tenant's part in what is going on.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    pub(crate) n_waiting: i64,
    pub(crate) slots: i64,
}

/// How the fleet was shared; `None` without contended time or with a single tenant.
pub(crate) fn share(workload: &Workload, replay: &Replay) -> Option<Share> {
    let n_tenants = workload.tenants.len();
    if n_tenants < 2 {
        return None;
    }
    let mut all = Account::new(&workload.tenants);
    let mut busy = vec![Busy::default(); n_tenants];
    let mut now = Timestamp(0);
    for (at, tenant, change) in changes(workload, replay) {
        if at > now {
            all.pass(&busy, at.since(now));
            now = at;
        }
        busy[tenant].n_waiting += change.n_waiting;
        busy[tenant].slots += change.slots;
    }
    (all.contended > Millis::ZERO).then(|| all.share())
}

/// Everything that changes who waits and who runs, by moment.
pub(crate) fn changes(workload: &Workload, replay: &Replay) -> Vec<(Timestamp, usize, Busy)> {
    let mut changes = Vec::with_capacity(3 * replay.starts.len() + 2 * replay.lost.len());
    for job in &workload.jobs {
        changes.push((job.arrival, job.tenant, Busy { n_waiting: 1, slots: 0 }));
    }
    for (job, start) in replay.attempts() {
        let job = &workload.jobs[job];
        let slots = i64::from(job.slots);
        changes.push((start.at, job.tenant, Busy { n_waiting: -1, slots }));
        changes.push((start.end, job.tenant, Busy { n_waiting: 0, slots: -slots }));
    }
    for lost in &replay.lost {
        let tenant = workload.jobs[lost.job].tenant;
        changes.push((lost.start.end, tenant, Busy { n_waiting: 1, slots: 0 }));
    }
    changes.sort_by_key(|(at, ..)| *at);
    changes
}

/// What tenants were served, in slot-milliseconds.
struct Account {
    weights: Vec<i128>,
    contended: Millis,
    /// In all contended time.
    served: Vec<i128>,
    /// Since the current contended interval began.
    lately: Vec<i128>,
    /// The most that anybody was behind, times all weights.
    lag: i128,
}

impl Account {
    fn new(tenants: &[Sharer]) -> Self {
        Self {
            weights: tenants.iter().map(|tenant| i128::from(tenant.weight)).collect(),
            contended: Millis::ZERO,
            served: vec![0; tenants.len()],
            lately: vec![0; tenants.len()],
            lag: 0,
        }
    }

    /// Time passes. Service is linear in it, so a lag is largest at one of the ends.
    fn pass(&mut self, busy: &[Busy], length: Millis) {
        if busy.iter().any(|own| own.n_waiting == 0) {
            self.lately.fill(0);
            return;
        }
        self.contended.0 += length.0;
        for (at, own) in busy.iter().enumerate() {
            let area = i128::from(own.slots) * i128::from(length.0);
            self.served[at] += area;
            self.lately[at] += area;
        }
        let (sum, weights): (i128, i128) = (self.lately.iter().sum(), self.weights.iter().sum());
        let behind = self.lately.iter().zip(&self.weights);
        let behind = behind.map(|(own, weight)| weight * sum - own * weights);
        self.lag = self.lag.max(behind.max().unwrap_or(0));
    }

    fn share(&self) -> Share {
        let (sum, weights): (i128, i128) = (self.served.iter().sum(), self.weights.iter().sum());
        let pairs = || self.served.iter().zip(&self.weights);
        let per_weight: Vec<f64> = pairs().map(|(own, weight)| ratio(*own, *weight)).collect();
        let total: f64 = per_weight.iter().sum();
        let squares: f64 = per_weight.iter().map(|own| own * own).sum();
        let errors = pairs().map(|(own, weight)| {
            (float(*own) * float(weights) - float(*weight) * float(sum)).abs()
                / (float(*weight) * float(sum)).max(1.0)
        });
        Share {
            contended: self.contended,
            got: self.served.iter().map(|own| ratio(*own, sum)).collect(),
            due: self.weights.iter().map(|weight| ratio(*weight, weights)).collect(),
            jain: total * total / (count(per_weight.len()) * squares).max(f64::MIN_POSITIVE),
            error: errors.fold(0.0, f64::max),
            lag_s: ratio(self.lag, weights * 1_000),
        }
    }
}
