//! Measurements of the worker's machine.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Duration;

use proto::v1;
use tokio::time::Instant;

use crate::lock::lock;
use crate::proc::{self, Load};

/// The weight of the latest measurement in an average: recent ones count, and one outlier does not.
const LATEST: f64 = 0.3;
/// Steps of the loop that measures a core: about 20 ms on a machine of 2025.
const SCORE_STEPS: u32 = 2_000_000;
/// A score of 1 is this number of steps in a millisecond.
const SCORE_STEPS_PER_MS: f64 = 100.0;
const SCORE_MAX: f64 = 100_000.0;
const BITS_PER_BYTE: f64 = 8.0;

/// Speeds of the network and of disks, as averages of measured transfers.
#[derive(Debug, Default)]
pub(crate) struct Speeds {
    averages: Mutex<Averages>,
}

/// `None` means not measured yet.
#[derive(Debug, Default)]
struct Averages {
    /// In megabits a second.
    net: Option<f64>,
    /// In megabytes a second.
    disk: Option<f64>,
}

impl Speeds {
    pub(crate) fn net(&self, bytes: u64, took: Duration) {
        let speed = megabytes(bytes) * BITS_PER_BYTE / took.as_secs_f64();
        average(&mut lock(&self.averages).net, speed);
    }

    pub(crate) fn disk(&self, bytes: u64, took: Duration) {
        average(&mut lock(&self.averages).disk, megabytes(bytes) / took.as_secs_f64());
    }

    fn known(&self) -> (Option<f64>, Option<f64>) {
        let averages = lock(&self.averages);
        (averages.net, averages.disk)
    }
}

/// A transfer of zero bytes or zero time is ignored.
fn average(known: &mut Option<f64>, speed: f64) {
    if speed.is_finite() && speed > 0.0 {
        *known = Some(known.map_or(speed, |known| known + LATEST * (speed - known)));
    }
}

/// The precision of kilobytes is sufficient, and fits the conversion.
fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1_000).unwrap_or(u32::MAX)) / 1e3
}

/// The latest sample of the machine. A sample may take time, so heartbeats only read this one.
#[derive(Debug)]
pub(crate) struct Gauges {
    slots: u32,
    looked: Mutex<Looked>,
}

#[derive(Debug, Default)]
struct Looked {
    load: Option<Load>,
    cpu_pct: Option<f64>,
    foreign_slots: u32,
    ram_mb: Option<(u64, u64)>,
    cpu_score: Option<f64>,
}

impl Gauges {
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots, looked: Mutex::default() }
    }

    /// Samples the machine. Blocks for some milliseconds.
    pub(crate) fn look(&self) {
        let ram_mb = proc::ram_mb();
        let load = proc::load();
        let mut looked = lock(&self.looked);
        looked.ram_mb = ram_mb;
        if let (Some(before), Some(now)) = (&looked.load, &load) {
            let busy = now.busy_since(before);
            looked.cpu_pct = busy.map(|busy| busy.all * 100.0);
            looked.foreign_slots = busy.map_or(0, |busy| self.in_slots(busy.all - busy.own));
        }
        looked.load = load;
    }

    /// Measures the speed of one core, once. Blocks for the duration of the loop.
    pub(crate) fn measure(&self) {
        let score = cpu_score();
        lock(&self.looked).cpu_score = Some(score);
    }

    pub(crate) fn metrics(&self, speeds: &Speeds) -> v1::Metrics {
        let (net_mbps, disk_mbps) = speeds.known();
        let looked = lock(&self.looked);
        v1::Metrics {
            cpu_pct: looked.cpu_pct,
            ram_free_mb: looked.ram_mb.map(|(free, _)| free),
            ram_total_mb: looked.ram_mb.map(|(_, total)| total),
            cpu_score: looked.cpu_score,
            net_mbps,
            disk_mbps,
        }
    }

    pub(crate) fn foreign_slots(&self) -> u32 {
        lock(&self.looked).foreign_slots
    }

    /// A part of the machine, from 0 to 1, in slots.
    fn in_slots(&self, share: f64) -> u32 {
        let slots = share.clamp(0.0, 1.0) * f64::from(self.slots);
        (0..=self.slots).rev().find(|n| f64::from(*n) <= slots + 0.5).unwrap_or(0)
    }
}

fn cpu_score() -> f64 {
    let start = Instant::now();
    let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
    for step in 0..SCORE_STEPS {
        state = mixed(mixed(state ^ u64::from(step)));
    }
    black_box(state);
    let ms = start.elapsed().as_secs_f64() * 1e3;
    (f64::from(SCORE_STEPS) / ms / SCORE_STEPS_PER_MS).clamp(1.0, SCORE_MAX)
}

/// Each step depends on the one before, so this measures one core without parallelism.
const fn mixed(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn speeds_are_averages_that_follow_the_latest() {
        let speeds = Speeds::default();
        assert_eq!(speeds.known(), (None, None));
        speeds.net(0, SECOND);
        speeds.net(1_000_000, Duration::ZERO);
        assert_eq!(speeds.known(), (None, None));
        speeds.net(1_000_000, SECOND);
        speeds.net(2_000_000, SECOND);
        speeds.disk(3_000_000, SECOND);
        let (net, disk) = speeds.known();
        assert!((net.unwrap() - 8.0 * 1.3).abs() < 1e-9, "{net:?}");
        assert!((disk.unwrap() - 3.0).abs() < 1e-9, "{disk:?}");
    }

    #[test]
    fn foreign_load_is_rounded_to_slots() {
        let gauges = Gauges::new(4);
        let slots = [-1.0, 0.0, 0.1, 0.25, 0.5, 1.0, 7.0].map(|share| gauges.in_slots(share));
        assert_eq!(slots, [0, 0, 0, 1, 2, 4, 4]);
    }

    #[test]
    fn first_sample_has_memory_and_second_has_load() {
        let gauges = Gauges::new(2);
        gauges.measure();
        gauges.look();
        let start = Instant::now();
        while gauges.metrics(&Speeds::default()).cpu_pct.is_none() {
            assert!(start.elapsed() < 10 * SECOND, "the machine's clock of load stands still");
            gauges.look();
        }
        let metrics = gauges.metrics(&Speeds::default());
        assert!(metrics.cpu_score.unwrap() >= 1.0);
        let (free, total) = (metrics.ram_free_mb.unwrap(), metrics.ram_total_mb.unwrap());
        assert!(0 < free && free <= total);
        assert!((0.0..=100.0).contains(&metrics.cpu_pct.unwrap()));
    }
}
