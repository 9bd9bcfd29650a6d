//! What a replay was like: waits, slowdown, use of the fleet.

use std::collections::BTreeSet;

use model::{Millis, Name, Timestamp};

use crate::engine::{Loss, Replay, Start};
use crate::fleet::Fleet;
use crate::number::{count, float, ratio};
use crate::share::{self, Busy, Share};
use crate::workload::{Fit, Job, Workload};

/// Shorter jobs count as this long where slowdown is measured.
pub const SLOWDOWN_BOUND: Millis = Millis::from_secs(10);

/// What a replay was like.
#[derive(Clone, Debug, PartialEq)]
pub struct Measures {
    /// All jobs.
    pub all: Waits,
    /// The jobs of each tenant, type and mode, by name.
    pub parts: Vec<Part>,
    /// The part of the fleet's time, up to the last arrival, in which it worked.
    pub utilisation: f64,
    /// When the last job ended.
    pub makespan: Millis,
    /// The longest time from an arrival to the end of the job.
    pub flow_max: Millis,
    /// Attempts that were stopped to make room for others.
    pub preempted: Losses,
    /// Attempts that were lost because a worker failed.
    pub failed: Losses,
    /// For how long tenants were below their minimum at a stretch, by tenant; those without one are
    /// left out.
    pub below_min: Vec<BelowMin>,
    /// How the fleet was shared while all tenants wanted it; `None` if that was never so.
    pub share: Option<Share>,
}

/// Attempts that came to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// How many.
    pub n_attempts: usize,
    /// Slot-seconds that they ran for.
    pub slot_s: f64,
    /// The part of all slot time that attempts took.
    pub part: f64,
}

/// For how long a tenant had something waiting and fewer slots than are its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BelowMin {
    /// Whose: a place in [`Workload::tenants`].
    pub tenant: usize,
    /// At most at a stretch.
    pub longest: Millis,
    /// In all.
    pub total: Millis,
}

/// Some of the jobs.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What tells them from others: `tenant`, `type` or `mode`.
    pub by: &'static str,
    /// Which.
    pub name: String,
    /// How they waited.
    pub waits: Waits,
}

/// How jobs waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waits {
    /// How many jobs.
    pub n_jobs: usize,
    /// The mean wait, in milliseconds.
    pub mean_ms: f64,
    /// Half of them waited no longer.
    pub p50: Millis,
    /// 95 of a hundred waited no longer.
    pub p95: Millis,
    /// 99 of a hundred waited no longer.
    pub p99: Millis,
    /// Nobody waited longer.
    pub max: Millis,
    /// The mean of how many times longer a job took than it ran.
    pub slowdown: f64,
}

impl Measures {
    /// Measures a replay.
    pub fn new(workload: &Workload, fleet: &Fleet, replay: &Replay) -> Self {
        let starts = &replay.starts;
        let jobs = || workload.jobs.iter().zip(starts);
        Self {
            all: Waits::new(jobs()),
            parts: parts(workload, replay),
            utilisation: utilisation(workload, fleet, replay),
            makespan: Millis(starts.iter().map(|start| start.end.0).max().unwrap_or(0)),
            flow_max: jobs()
                .map(|(job, start)| start.end.since(job.arrival))
                .max()
                .unwrap_or_default(),
            preempted: losses(workload, replay, Loss::Preempted),
            failed: losses(workload, replay, Loss::Failed),
            below_min: below_min(workload, replay),
            share: share::share(workload, fleet, replay),
        }
    }

    /// How some of the jobs waited.
    pub fn part(&self, by: &str, name: &str) -> Option<&Waits> {
        let part = self.parts.iter().find(|part| part.by == by && part.name == name);
        part.map(|part| &part.waits)
    }
}

fn parts(workload: &Workload, replay: &Replay) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |by, names: Vec<Option<String>>, group: &dyn Fn(&Job) -> usize| {
        let mut jobs: Vec<Vec<(&Job, &Start)>> = vec![Vec::new(); names.len()];
        for (job, start) in workload.jobs.iter().zip(&replay.starts) {
            jobs[group(job)].push((job, start));
        }
        for (name, jobs) in names.into_iter().zip(jobs) {
            if let (Some(name), false) = (name, jobs.is_empty()) {
                parts.push(Part { by, name, waits: Waits::new(jobs.into_iter()) });
            }
        }
    };
    let tenants = workload.tenants.iter().map(|tenant| Some(tenant.id.to_string()));
    add("tenant", tenants.collect(), &|job| job.tenant);
    let kinds: BTreeSet<&Name> = workload.fits.iter().filter_map(|fit| fit.kind.as_ref()).collect();
    let kinds: Vec<&Name> = kinds.into_iter().collect();
    let place = |fit: &Fit| {
        let kind = fit.kind.as_ref().and_then(|kind| kinds.binary_search(&kind).ok());
        kind.map_or(0, |at| 1 + at)
    };
    let of_fit: Vec<usize> = workload.fits.iter().map(place).collect();
    let names = kinds.iter().map(|kind| Some(kind.to_string()));
    add("type", std::iter::once(None).chain(names).collect(), &|job| of_fit[job.fit]);
    let modes = ["batch", "on-demand"].map(|mode| Some(mode.to_owned()));
    add("mode", modes.to_vec(), &|job| usize::from(job.on_demand));
    parts
}

fn below_min(workload: &Workload, replay: &Replay) -> Vec<BelowMin> {
    let tenants = workload.tenants.iter().enumerate().filter(|(_, own)| own.quota.min > 0);
    let mut below: Vec<BelowMin> =
        tenants.map(|(tenant, _)| BelowMin { tenant, ..BelowMin::default() }).collect();
    if below.is_empty() {
        return below;
    }
    let mut busy = vec![Busy::default(); workload.tenants.len()];
    // Since when each is below; what lasts no time is nothing.
    let mut since: Vec<Option<Timestamp>> = vec![None; below.len()];
    let changes = share::changes(workload, replay);
    for (ix, (at, tenant, change)) in changes.iter().enumerate() {
        busy[*tenant].n_waiting += change.n_waiting;
        busy[*tenant].slots += change.slots;
        if changes.get(ix + 1).is_some_and(|(next, ..)| next == at) {
            continue;
        }
        for (own, since) in below.iter_mut().zip(&mut since) {
            let min = i64::from(workload.tenants[own.tenant].quota.min);
            let is_below = busy[own.tenant].n_waiting > 0 && busy[own.tenant].slots < min;
            if let (Some(from), false) = (*since, is_below) {
                own.longest = own.longest.max(at.since(from));
                own.total.0 += at.since(from).0;
                *since = None;
            } else if since.is_none() && is_below {
                *since = Some(*at);
            }
        }
    }
    below
}

fn losses(workload: &Workload, replay: &Replay, loss: Loss) -> Losses {
    let area = |job: usize, start: &Start| {
        i128::from(start.end.since(start.at).0) * i128::from(workload.jobs[job].slots)
    };
    let all: i128 = replay.attempts().map(|(job, start)| area(job, &start)).sum();
    let lost = || replay.lost.iter().filter(|lost| lost.loss == loss);
    let sum: i128 = lost().map(|lost| area(lost.job, &lost.start)).sum();
    Losses { n_attempts: lost().count(), slot_s: float(sum) / 1_000.0, part: ratio(sum, all) }
}

impl Waits {
    fn new<'a>(jobs: impl Iterator<Item = (&'a Job, &'a Start)>) -> Self {
        let mut waits: Vec<i64> = Vec::new();
        let mut slowdown = 0.0;
        for (job, start) in jobs {
            waits.push(start.at.since(job.arrival).0);
            let bound = job.duration.max(SLOWDOWN_BOUND);
            let flow = start.end.since(job.arrival);
            slowdown += ratio(flow.0.into(), bound.0.into()).max(1.0);
        }
        waits.sort_unstable();
        let Some(max) = waits.last().copied() else { return Self::default() };
        let sum: i128 = waits.iter().map(|wait| i128::from(*wait)).sum();
        let rank = |percent: usize| Millis(waits[(waits.len() * percent).div_ceil(100) - 1]);
        Self {
            n_jobs: waits.len(),
            mean_ms: float(sum) / count(waits.len()),
            p50: rank(50),
            p95: rank(95),
            p99: rank(99),
            max: Millis(max),
            slowdown: slowdown / count(waits.len()),
        }
    }
}

fn utilisation(workload: &Workload, fleet: &Fleet, replay: &Replay) -> f64 {
    let last = workload.last_arrival();
    let busy = replay.attempts().map(|(job, start)| {
        let end = start.end.min(last);
        i128::from(end.since(start.at).0) * i128::from(workload.jobs[job].slots)
    });
    ratio(busy.sum(), i128::from(fleet.slots()) * i128::from(last.0))
}
