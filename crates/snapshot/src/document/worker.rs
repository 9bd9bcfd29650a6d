//! Workers and their measurements.

use std::collections::BTreeMap;

use model::{Fixed, Name, WorkerId, maxima};

use super::facts::{AmountsByName, NamesByKey};
use super::facts::{read_amounts, read_has, write_amounts, write_names};
use super::list::{List, Object, Table};
use super::name::{Id, Label, sorted};
use super::number::{Count, Number, Percent, Quantity, Rank, Slots, SlotsFree};
use super::{or, unless};
use crate::error::Problem;

record! {
    /// A connected process that runs jobs.
    Worker {
        /// Its id.
        id: Id<WorkerId>,
        /// The pool it belongs to. `default` if left out.
        pool: Option<Label>,
        /// The types it runs. Any, if empty or left out.
        types: Option<List<Label, { maxima::WORKER_TYPES_MAX }>>,
        /// The limit of attempts of each type. No limit for types that are left out.
        type_max: Option<Table<Label, Count, { maxima::WORKER_TYPES_MAX }>>,
        /// Its attributes: for each key, every value it has.
        has: Option<NamesByKey>,
        /// The number of its slots. 1 if left out.
        slots: Option<Slots>,
        /// Slots that it reports as free. All that its attempts leave if left out.
        slots_free: Option<SlotsFree>,
        /// The total of each amount, such as `ram_mb`.
        amounts: Option<AmountsByName>,
        /// The operator's order: lower is preferred. 0 if left out.
        rank: Option<Rank>,
        /// Whether it can take jobs. True if left out.
        healthy: Option<bool>,
        /// Whether it takes no more jobs and leaves once it is empty. False if left out.
        draining: Option<bool>,
        /// Locality labels that it has.
        hints: Option<List<Label, { maxima::HINTS_MAX }>>,
        /// Its measurements.
        metrics: Option<Object<Metrics>>,
    }
}

record! {
    /// The measurements of a worker. Left out means not reported.
    Metrics {
        /// CPU in use, in percent.
        cpu_pct: Option<Percent>,
        /// Free memory.
        ram_free_mb: Option<Quantity>,
        /// Total memory.
        ram_total_mb: Option<Quantity>,
        /// Speed of one core, by a fixed loop.
        cpu_score: Option<Number>,
        /// Network speed, measured in transfers of inputs.
        net_mbps: Option<Number>,
        /// Disk speed, measured in runs of jobs.
        disk_mbps: Option<Number>,
    }
}

impl Worker {
    #[expect(clippy::unnecessary_wraps, reason = "read as all others that are listed")]
    pub(crate) fn read(self) -> Result<model::Worker, Problem> {
        let default = model::Worker::new(self.id.0);
        Ok(model::Worker {
            pool: or(self.pool, default.pool),
            types: read_labels(self.types),
            type_max: read_type_max(self.type_max),
            has: read_has(self.has),
            slots: or(self.slots, default.slots),
            slots_free: self.slots_free.map(u32::from),
            amounts: read_amounts(self.amounts),
            rank: or(self.rank, default.rank),
            healthy: or(self.healthy, default.healthy),
            draining: or(self.draining, default.draining),
            hints: read_labels(self.hints),
            metrics: self.metrics.map_or_else(Default::default, |Object(metrics)| metrics.read()),
            ..default
        })
    }

    pub(crate) fn write(worker: &model::Worker) -> Self {
        let default = model::Worker::new(worker.id.clone());
        let type_max = worker.type_max.iter().map(|(name, n)| (Label(name.clone()), Count(*n)));
        Self {
            id: Id(worker.id.clone()),
            pool: unless(worker.pool.clone(), &default.pool).map(Label),
            types: write_labels(&worker.types),
            type_max: (!worker.type_max.is_empty()).then(|| Table(type_max.collect())),
            has: write_names(&worker.has),
            slots: unless(worker.slots, &default.slots).map(Slots),
            slots_free: worker.slots_free.map(SlotsFree),
            amounts: write_amounts(&worker.amounts),
            rank: unless(worker.rank, &default.rank).map(Rank),
            healthy: unless(worker.healthy, &default.healthy),
            draining: unless(worker.draining, &default.draining),
            hints: write_labels(&worker.hints),
            metrics: unless(worker.metrics, &default.metrics)
                .map(|metrics| Object(Metrics::write(metrics))),
        }
    }
}

impl Metrics {
    fn read(self) -> model::Metrics {
        model::Metrics {
            cpu_pct: self.cpu_pct.map(Fixed::from),
            ram_free_mb: self.ram_free_mb.map(u64::from),
            ram_total_mb: self.ram_total_mb.map(u64::from),
            cpu_score: self.cpu_score.map(Fixed::from),
            net_mbps: self.net_mbps.map(Fixed::from),
            disk_mbps: self.disk_mbps.map(Fixed::from),
        }
    }

    fn write(metrics: model::Metrics) -> Self {
        Self {
            cpu_pct: metrics.cpu_pct.map(Percent),
            ram_free_mb: metrics.ram_free_mb.map(Quantity),
            ram_total_mb: metrics.ram_total_mb.map(Quantity),
            cpu_score: metrics.cpu_score.map(Number),
            net_mbps: metrics.net_mbps.map(Number),
            disk_mbps: metrics.disk_mbps.map(Number),
        }
    }
}

fn read_type_max<const MAX: usize>(given: Option<Table<Label, Count, MAX>>) -> BTreeMap<Name, u32> {
    let entries = given.into_iter().flat_map(|table| table.0);
    entries.map(|(Label(name), Count(most))| (name, most)).collect()
}

fn read_labels<const MAX: usize>(given: Option<List<Label, MAX>>) -> Vec<Name> {
    sorted(given.into_iter().flat_map(|list| list.0).map(Name::from).collect())
}

fn write_labels<const MAX: usize>(names: &[Name]) -> Option<List<Label, MAX>> {
    (!names.is_empty()).then(|| List(names.iter().cloned().map(Label).collect()))
}
