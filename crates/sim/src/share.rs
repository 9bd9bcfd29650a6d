//! How the fleet was shared while every tenant had something waiting.
//!
//! A tenant is due its part by weighted max-min of what each tenant asks for, where workers are not
//! alike as well ([`crate::due`]): one that waits for two slots out of many is due no more than
//! two.

use model::{Millis, Timestamp};

use crate::due::Kinds;
use crate::engine::Replay;
use crate::fleet::Fleet;
use crate::number::{count, float};
use crate::workload::{Job, Sharer, Workload};

/// How the fleet was shared in contended time.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// For how long every tenant had something waiting.
    pub contended: Millis,
    /// What each tenant got of the fleet then, from 0 to 1.
    pub got: Vec<f64>,
    /// What each was due, from 0 to 1.
    pub due: Vec<f64>,
    /// 1 if all got the same for what they were due.
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
pub(crate) fn share(workload: &Workload, fleet: &Fleet, replay: &Replay) -> Option<Share> {
    let n_tenants = workload.tenants.len();
    if n_tenants < 2 {
        return None;
    }
    let kinds = Kinds::new(workload, fleet);
    let mut all = Account::new(&workload.tenants);
    let mut busy = vec![Busy::default(); n_tenants];
    // Slots that each tenant asks for, waiting or running, by kind.
    let mut asks = vec![vec![0.0; kinds.count]; n_tenants];
    let mut now = Timestamp(0);
    for Change { at, tenant, fit, busy: change } in all_changes(workload, replay) {
        if at > now {
            if busy.iter().all(|own| own.n_waiting > 0) {
                let dues = kinds.due(&all.weights, &asks);
                all.pass(&busy, &dues, at.since(now));
            } else {
                all.part();
            }
            now = at;
        }
        let slots = float((change.n_waiting + change.slots).into());
        asks[tenant][kinds.of_fit[fit]] += slots;
        busy[tenant].n_waiting += change.n_waiting;
        busy[tenant].slots += change.slots;
    }
    (all.contended > Millis::ZERO).then(|| all.share())
}

/// Something that changes who waits and who runs.
struct Change {
    at: Timestamp,
    tenant: usize,
    fit: usize,
    busy: Busy,
}

/// Everything that changes who waits and who runs, by moment.
pub(crate) fn changes(workload: &Workload, replay: &Replay) -> Vec<(Timestamp, usize, Busy)> {
    let all = all_changes(workload, replay).into_iter();
    let one_each = |own: Change| {
        let n_waiting = own.busy.n_waiting.signum();
        (own.at, own.tenant, Busy { n_waiting, ..own.busy })
    };
    all.map(one_each).collect()
}

/// The same with what could run it; those that wait count as their slots.
fn all_changes(workload: &Workload, replay: &Replay) -> Vec<Change> {
    let mut changes = Vec::with_capacity(3 * replay.starts.len() + 2 * replay.lost.len());
    let mut add = |at, job: &Job, n_waiting: i64, running: i64| {
        let slots = i64::from(job.slots);
        let change = Busy { n_waiting: n_waiting * slots, slots: running * slots };
        changes.push(Change { at, tenant: job.tenant, fit: job.fit, busy: change });
    };
    for job in &workload.jobs {
        add(job.arrival, job, 1, 0);
    }
    for (job, start) in replay.attempts() {
        let job = &workload.jobs[job];
        add(start.at, job, -1, 1);
        add(start.end, job, 0, -1);
    }
    for lost in &replay.lost {
        add(lost.start.end, &workload.jobs[lost.job], 1, 0);
    }
    changes.sort_by_key(|change| change.at);
    changes
}

/// What tenants were served and due, in slot-milliseconds.
struct Account {
    weights: Vec<f64>,
    contended: Millis,
    /// In all contended time.
    served: Vec<f64>,
    due: Vec<f64>,
    /// What each was behind since the current contended interval began.
    behind: Vec<f64>,
    /// The most that a tenant was behind.
    lag: f64,
}

impl Account {
    fn new(tenants: &[Sharer]) -> Self {
        let nothing = vec![0.0; tenants.len()];
        Self {
            weights: tenants.iter().map(|tenant| f64::from(tenant.weight)).collect(),
            contended: Millis::ZERO,
            served: nothing.clone(),
            due: nothing.clone(),
            behind: nothing,
            lag: 0.0,
        }
    }

    /// The contended interval is over.
    fn part(&mut self) {
        self.behind.fill(0.0);
    }

    /// Time passes. Service is linear in it, so a lag is largest at one of the ends. What is in use
    /// is what is shared.
    fn pass(&mut self, busy: &[Busy], dues: &[f64], length: Millis) {
        self.contended.0 += length.0;
        let used = float(busy.iter().map(|own| i128::from(own.slots)).sum());
        let scale = used / dues.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let length = float(length.0.into());
        for (at, own) in busy.iter().enumerate() {
            let (served, due) = (float(own.slots.into()) * length, dues[at] * scale * length);
            self.served[at] += served;
            self.due[at] += due;
            self.behind[at] += due - served;
            self.lag = self.lag.max(self.behind[at]);
        }
    }

    fn share(&self) -> Share {
        let all = self.served.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let pairs = || self.served.iter().zip(&self.due);
        let parts: Vec<f64> = pairs().map(|(own, due)| own / due.max(1.0)).collect();
        let total: f64 = parts.iter().sum();
        let squares: f64 = parts.iter().map(|own| own * own).sum();
        let errors = parts.iter().map(|part| (part - 1.0).abs());
        Share {
            contended: self.contended,
            got: self.served.iter().map(|own| own / all).collect(),
            due: self.due.iter().map(|own| own / all).collect(),
            jain: total * total / (count(parts.len()) * squares).max(f64::MIN_POSITIVE),
            error: errors.fold(0.0, f64::max),
            lag_s: self.lag / 1_000.0,
        }
    }
}
