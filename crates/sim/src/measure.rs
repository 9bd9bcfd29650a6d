//! What a replay was like: waits, slowdown, use of the fleet.

use std::collections::BTreeMap;

use model::{Millis, Timestamp};

use crate::engine::Start;
use crate::fleet::Fleet;
use crate::number::{count, float, ratio};
use crate::share::{self, Share};
use crate::workload::{Job, Workload};

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
    /// How the fleet was shared while all tenants wanted it; `None` if that was never so.
    pub share: Option<Share>,
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
    /// Measures the replay that led to `starts`.
    pub fn new(workload: &Workload, fleet: &Fleet, starts: &[Start]) -> Self {
        let jobs = || workload.jobs.iter().zip(starts.iter().map(|start| start.at));
        let mut parts: BTreeMap<(u8, String), Vec<(&Job, Timestamp)>> = BTreeMap::new();
        for (job, at) in jobs() {
            let tenant = workload.tenants[job.tenant].id.to_string();
            let kind = workload.fits[job.fit].kind.as_ref().map(ToString::to_string);
            let mode = if job.on_demand { "on-demand" } else { "batch" };
            parts.entry((0, tenant)).or_default().push((job, at));
            if let Some(kind) = kind {
                parts.entry((1, kind)).or_default().push((job, at));
            }
            parts.entry((2, mode.to_owned())).or_default().push((job, at));
        }
        let parts = parts.into_iter().map(|((by, name), jobs)| Part {
            by: ["tenant", "type", "mode"][usize::from(by)],
            name,
            waits: Waits::new(jobs.into_iter()),
        });
        let ends = jobs().map(|(job, at)| at + job.duration);
        Self {
            all: Waits::new(jobs()),
            parts: parts.collect(),
            utilisation: utilisation(workload, fleet, starts),
            makespan: Millis(ends.max().map_or(0, |end| end.0)),
            share: share::share(workload, starts),
        }
    }

    /// How some of the jobs waited.
    pub fn part(&self, by: &str, name: &str) -> Option<&Waits> {
        let part = self.parts.iter().find(|part| part.by == by && part.name == name);
        part.map(|part| &part.waits)
    }
}

impl Waits {
    fn new<'a>(jobs: impl Iterator<Item = (&'a Job, Timestamp)>) -> Self {
        let mut waits: Vec<i64> = Vec::new();
        let mut slowdown = 0.0;
        for (job, at) in jobs {
            let wait = at.since(job.arrival).0;
            waits.push(wait);
            let bound = job.duration.max(SLOWDOWN_BOUND);
            slowdown += ratio(i128::from(wait + job.duration.0), bound.0.into()).max(1.0);
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

fn utilisation(workload: &Workload, fleet: &Fleet, starts: &[Start]) -> f64 {
    let last = workload.last_arrival();
    let busy = workload.jobs.iter().zip(starts).map(|(job, start)| {
        let end = (start.at + job.duration).min(last);
        i128::from(end.since(start.at).0) * i128::from(job.slots)
    });
    ratio(busy.sum(), i128::from(fleet.slots()) * i128::from(last.0))
}
