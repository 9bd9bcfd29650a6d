//! Converts workers and their measurements from protobuf.

use model::maxima::{
    HINTS_MAX, NAME_BYTES_MAX, RANK_MAX, SLOTS_MAX, TEXT_BYTES_MAX, WORKER_ATTEMPTS_MAX,
    WORKER_TYPES_MAX,
};
use model::worker::POOL_DEFAULT;
use model::{Fixed, Metrics, Name, Worker, WorkerId};

use crate::check::{Invalid, amounts, at_most, name, number, optional_name, text, values, within};
use crate::v1;

impl v1::Hello {
    /// Whether it runs jobs. Otherwise it only detects.
    pub fn runs_jobs(&self) -> bool {
        self.types.is_empty() || self.types.iter().any(|kind| !kind.detects_only)
    }

    /// The worker of this hello.
    pub fn checked(&self) -> Result<Worker, Invalid> {
        name("worker", &self.worker)?;
        name("instance", &self.instance)?;
        at_most("types", self.types.len(), WORKER_TYPES_MAX)?;
        at_most("attempts", self.attempts.len(), WORKER_ATTEMPTS_MAX)?;
        let mut worker = Worker::new(WorkerId::new(&self.worker));
        worker.pool = optional_name("pool", &self.pool)?.unwrap_or_else(|| Name::new(POOL_DEFAULT));
        for kind in &self.types {
            let kind_name = name("types.name", &kind.name)?;
            text("types.display_name", &kind.display_name, NAME_BYTES_MAX)?;
            text("types.description", &kind.description, TEXT_BYTES_MAX)?;
            if kind.detects_only {
                continue;
            }
            if kind.execute_max > 0 {
                worker.type_max.insert(kind_name.clone(), kind.execute_max);
            }
            worker.types.push(kind_name);
        }
        worker.types.sort();
        worker.types.dedup();
        worker.has = values("has", &self.has)?;
        worker.slots = within("slots", self.slots, (1, SLOTS_MAX))?;
        worker.amounts = amounts("amounts", &self.amounts)?;
        worker.rank = within("rank", self.rank, (-RANK_MAX, RANK_MAX))?;
        worker.hints = hints(&self.hints)?;
        Ok(worker)
    }
}

/// Locality labels, sorted.
fn hints(hints: &[String]) -> Result<Vec<Name>, Invalid> {
    at_most("hints", hints.len(), HINTS_MAX)?;
    let mut names: Vec<Name> =
        hints.iter().map(|hint| name("hints", hint)).collect::<Result<_, _>>()?;
    names.sort();
    names.dedup();
    Ok(names)
}

impl v1::Hints {
    /// The labels, sorted.
    pub fn checked(&self) -> Result<Vec<Name>, Invalid> {
        hints(&self.hints)
    }
}

impl v1::Metrics {
    /// The checked measurements.
    pub fn checked(&self) -> Result<Metrics, Invalid> {
        Ok(Metrics {
            cpu_pct: number("metrics.cpu_pct", self.cpu_pct)?,
            ram_free_mb: self.ram_free_mb.map(cut),
            ram_total_mb: self.ram_total_mb.map(cut),
            cpu_score: number("metrics.cpu_score", self.cpu_score)?,
            net_mbps: number("metrics.net_mbps", self.net_mbps)?,
            disk_mbps: number("metrics.disk_mbps", self.disk_mbps)?,
        })
    }
}

impl From<Metrics> for v1::Metrics {
    fn from(metrics: Metrics) -> Self {
        Self {
            cpu_pct: metrics.cpu_pct.map(Fixed::to_f64),
            ram_free_mb: metrics.ram_free_mb,
            ram_total_mb: metrics.ram_total_mb,
            cpu_score: metrics.cpu_score.map(Fixed::to_f64),
            net_mbps: metrics.net_mbps.map(Fixed::to_f64),
            disk_mbps: metrics.disk_mbps.map(Fixed::to_f64),
        }
    }
}

fn cut(number: u64) -> u64 {
    number.min(model::maxima::NUMBER_MAX.unsigned_abs())
}
