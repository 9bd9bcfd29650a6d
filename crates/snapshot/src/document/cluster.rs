//! Averages over the fleet.

use model::Fixed;

use super::list::Object;
use super::number::{Number, Rate};
use super::unless;

record! {
    /// Averages over the whole fleet.
    #[expect(clippy::struct_field_names, reason = "the names of the fields are those of JSON")]
    Cluster {
        /// Over the last five minutes.
        avg_5m: Option<Object<Averages>>,
        /// Over the last hour.
        avg_1h: Option<Object<Averages>>,
        /// Over the last day.
        avg_24h: Option<Object<Averages>>,
    }
}

record! {
    /// Averages over one window. Left out means no samples, which is not zero.
    Averages {
        /// Seconds from ready to placed.
        wait_s: Option<Number>,
        /// Seconds from placed to ended.
        duration_s: Option<Number>,
        /// Paths that a worker had to fetch for a job.
        missing_paths: Option<Number>,
        /// MiB that a worker had to fetch for a job.
        missing_mib: Option<Number>,
        /// Dependents of a job.
        dependencies: Option<Number>,
        /// CPU time of a job.
        cpu_ms: Option<Number>,
        /// Fraction of attempts that ran out of memory.
        oom_rate: Option<Rate>,
        /// Network speed of workers.
        network_mbps: Option<Number>,
        /// Bytes that a job reads and writes.
        disk_bytes: Option<Number>,
    }
}

impl Cluster {
    pub(crate) fn read(self) -> model::Cluster {
        let window = |given: Option<Object<Averages>>| {
            given.map_or_else(Default::default, |Object(averages)| averages.read())
        };
        model::Cluster {
            avg_5m: window(self.avg_5m),
            avg_1h: window(self.avg_1h),
            avg_24h: window(self.avg_24h),
        }
    }

    pub(crate) fn write(cluster: &model::Cluster) -> Self {
        let window = |averages: model::Averages| {
            let given = unless(averages, &model::Averages::default());
            given.map(|averages| Object(Averages::write(averages)))
        };
        Self {
            avg_5m: window(cluster.avg_5m),
            avg_1h: window(cluster.avg_1h),
            avg_24h: window(cluster.avg_24h),
        }
    }
}

impl Averages {
    fn read(self) -> model::Averages {
        model::Averages {
            wait_s: self.wait_s.map(Fixed::from),
            duration_s: self.duration_s.map(Fixed::from),
            missing_paths: self.missing_paths.map(Fixed::from),
            missing_mib: self.missing_mib.map(Fixed::from),
            dependencies: self.dependencies.map(Fixed::from),
            cpu_ms: self.cpu_ms.map(Fixed::from),
            oom_rate: self.oom_rate.map(Fixed::from),
            network_mbps: self.network_mbps.map(Fixed::from),
            disk_bytes: self.disk_bytes.map(Fixed::from),
        }
    }

    fn write(averages: model::Averages) -> Self {
        Self {
            wait_s: averages.wait_s.map(Number),
            duration_s: averages.duration_s.map(Number),
            missing_paths: averages.missing_paths.map(Number),
            missing_mib: averages.missing_mib.map(Number),
            dependencies: averages.dependencies.map(Number),
            cpu_ms: averages.cpu_ms.map(Number),
            oom_rate: averages.oom_rate.map(Rate),
            network_mbps: averages.network_mbps.map(Number),
            disk_bytes: averages.disk_bytes.map(Number),
        }
    }
}
