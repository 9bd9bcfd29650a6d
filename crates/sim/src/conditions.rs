//! What a replay is under: when passes are, whether workers fail, what it costs to fetch inputs.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use model::{Fixed, Millis, Timestamp};

use crate::chance::Chance;
use crate::fleet::Fleet;
use crate::number::{float, whole};

/// What a replay is under. By default, passes are at every event, workers never fail, and every
/// worker has every input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// Passes are at the multiples of this alone.
    pub tick: Option<Millis>,
    /// Workers fail and come back.
    pub failures: Option<Failures>,
    /// Workers fetch what they lack.
    pub transfer: Option<Transfer>,
    /// The replay ends here, though jobs are left. A job that has not started by then has a
    /// [`crate::Start`] of no length.
    pub until: Option<Timestamp>,
}

/// Workers fail and come back, by chance. What ran on one is lost and runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failures {
    /// The mean time for which a worker lasts.
    pub lasts: Millis,
    /// For how long it is gone.
    pub repair: Millis,
    /// What draws come from.
    pub seed: u64,
}

/// A job's inputs are fetched by a worker that has not had them lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The size of what stands behind one label.
    pub megabytes: u32,
    /// How fast a worker fetches it.
    pub megabytes_per_s: u32,
    /// The labels that a worker keeps: those of its last jobs.
    pub kept_max: usize,
}

impl Transfer {
    /// How long it takes to fetch what stands behind one label.
    pub fn time(self) -> Millis {
        let (size, speed) = (i64::from(self.megabytes), i64::from(self.megabytes_per_s.max(1)));
        Millis((size * 1_000).div_euclid(speed) + i64::from(size * 1_000 % speed > 0))
    }
}

/// What a worker does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Turn {
    /// It comes back.
    Join,
    /// It fails.
    Leave,
}

/// When workers fail and come back.
pub(crate) struct Weather {
    failures: Failures,
    chances: Vec<Chance>,
    turns: BinaryHeap<Reverse<(Timestamp, Turn, usize)>>,
}

impl Weather {
    pub(crate) fn new(failures: Failures, n_workers: usize) -> Self {
        let streams = (0_u64..).take(n_workers);
        let chances = streams.map(|stream| Chance::new(failures.seed, stream)).collect();
        let mut weather = Self { failures, chances, turns: BinaryHeap::new() };
        for worker in 0..n_workers {
            weather.will_fail(worker, Timestamp(0));
        }
        weather
    }

    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.turns.peek().map(|Reverse((at, ..))| *at)
    }

    /// What happens up to `now`, one thing at a time.
    pub(crate) fn take(&mut self, now: Timestamp) -> Option<(Turn, usize)> {
        let Reverse((_, turn, worker)) =
            self.turns.peek().copied().filter(|Reverse((at, ..))| *at <= now)?;
        self.turns.pop();
        match turn {
            Turn::Leave => {
                let back = now + self.failures.repair.max(Millis(1));
                self.turns.push(Reverse((back, Turn::Join, worker)));
            }
            Turn::Join => self.will_fail(worker, now),
        }
        Some((turn, worker))
    }

    fn will_fail(&mut self, worker: usize, now: Timestamp) {
        let lasts = self.chances[worker].exponential(float(self.failures.lasts.0.into()));
        let at = now + Millis(whole(lasts).max(1));
        self.turns.push(Reverse((at, Turn::Leave, worker)));
    }
}

/// What each worker has, the latest last.
pub(crate) struct Caches {
    transfer: Transfer,
    kept: Vec<VecDeque<usize>>,
}

impl Caches {
    pub(crate) fn new(transfer: Transfer, n_workers: usize) -> Self {
        Self { transfer, kept: vec![VecDeque::new(); n_workers] }
    }

    /// The worker needs what stands behind a label: how long that takes, and what it has then if
    /// that is not what it had.
    pub(crate) fn fetch(&mut self, worker: usize, label: usize) -> (Millis, Option<Vec<usize>>) {
        let kept = &mut self.kept[worker];
        if let Some(at) = kept.iter().position(|own| *own == label) {
            kept.remove(at);
            kept.push_back(label);
            return (Millis::ZERO, None);
        }
        kept.push_back(label);
        if kept.len() > self.transfer.kept_max.max(1) {
            kept.pop_front();
        }
        (self.transfer.time(), Some(kept.iter().copied().collect()))
    }

    /// A worker that comes back has nothing.
    pub(crate) fn forget(&mut self, worker: usize) {
        self.kept[worker].clear();
    }
}

/// How long a job runs on a worker.
pub(crate) fn run_time(fleet: &Fleet, worker: usize, duration: Millis) -> Millis {
    let speed = fleet.speed(worker).in_thousandths().max(1);
    if speed == Fixed::ONE.in_thousandths() {
        return duration;
    }
    let thousandths = i128::from(duration.0) * 1_000;
    let length = (thousandths + i128::from(speed) - 1) / i128::from(speed);
    Millis(i64::try_from(length).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_take_time_once() {
        let transfer = Transfer { megabytes: 100, megabytes_per_s: 40, kept_max: 1 };
        let mut caches = Caches::new(transfer, 1);
        assert_eq!(caches.fetch(0, 7), (Millis(2_500), Some(vec![7])));
        assert_eq!(caches.fetch(0, 7), (Millis::ZERO, None));
        assert_eq!(caches.fetch(0, 8), (Millis(2_500), Some(vec![8])));
        assert_eq!(caches.fetch(0, 7).0, Millis(2_500));
    }

    #[test]
    fn a_worker_fails_and_comes_back_in_turn() {
        let failures = Failures { lasts: Millis(1_000), repair: Millis(50), seed: 3 };
        let mut weather = Weather::new(failures, 1);
        for _ in 0..100 {
            let at = weather.next().expect("something happens next");
            assert_eq!(weather.take(at), Some((Turn::Leave, 0)));
            assert_eq!(weather.next(), Some(at + Millis(50)));
            assert_eq!(weather.take(at + Millis(50)), Some((Turn::Join, 0)));
        }
    }
}
