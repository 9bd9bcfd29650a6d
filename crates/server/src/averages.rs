//! Averages over the whole fleet: the last five minutes, hour and day.

use std::collections::{BTreeMap, VecDeque};

use futures_util::FutureExt as _;
use model::{Averages, Budget, Cluster, Event, Fixed, Millis, Reason, TenantId, Timestamp};
use store::{Run, Usage};

use crate::scheduler::{Answer, Scheduler};

/// Runs are summed up in buckets of so long.
const BUCKET: Millis = Millis::from_secs(60);
/// The longest window.
const DAY: Millis = Millis::from_secs(24 * 3600);

/// What tenants used is being asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsageAsked {
    at: Timestamp,
    /// Once more after this: something changed meanwhile.
    is_asked_again: bool,
}

/// So many of the last attempts say how far lengths are apart.
const SPREAD_OVER: usize = 256;
/// Fewer attempts say nothing of that.
const SPREAD_MIN: usize = 4;

/// Sums of runs by the minute, and the lengths of the last ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    minutes: VecDeque<Bucket>,
    lately: VecDeque<Millis>,
    /// How many jobs waited for which reason, by the minute: the last hour.
    reasons: VecDeque<(i64, Counts)>,
}

/// Jobs by the reason for which they wait.
pub(crate) type Counts = BTreeMap<Reason, u64>;

/// So many minutes of counts by reason are kept.
const REASONS_MAX: usize = 60;

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    minute: i64,
    wait_ms: Sum,
    duration_ms: Sum,
    missing_paths: Sum,
    missing_bytes: Sum,
    dependencies: Sum,
    cpu_ms: Sum,
    out_of_memory: Sum,
    disk_bytes: Sum,
    /// Jobs that waited when it was last looked.
    n_queued: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    n: i64,
    total: i128,
}

impl Sum {
    fn add(&mut self, value: impl Into<i128>) {
        self.n += 1;
        self.total += value.into();
    }

    fn merge(&mut self, other: Self) {
        self.n += other.n;
        self.total += other.total;
    }

    /// The mean, each unit being `unit` of what is asked for.
    fn mean(self, unit: i128) -> Option<Fixed> {
        let thousandths = (self.total * 1_000).checked_div(i128::from(self.n) * unit)?;
        i64::try_from(thousandths).ok().map(Fixed::thousandths)
    }
}

impl Samples {
    /// One more run. Runs come in the order in which they ended, or nearly so.
    pub(crate) fn add(&mut self, run: &Run) {
        if self.lately.len() == SPREAD_OVER {
            self.lately.pop_front();
        }
        self.lately.push_back(run.duration);
        let Some(bucket) = self.bucket(run.at) else { return };
        bucket.wait_ms.add(run.wait.0);
        bucket.duration_ms.add(run.duration.0);
        bucket.dependencies.add(run.n_dependents);
        bucket.out_of_memory.add(i64::from(run.measured.out_of_memory));
        if let Some((paths, bytes)) = run.fetched {
            bucket.missing_paths.add(paths);
            bucket.missing_bytes.add(bytes);
        }
        if let Some(cpu_ms) = run.measured.cpu_ms {
            bucket.cpu_ms.add(cpu_ms);
        }
        if let Some(disk_bytes) = run.measured.disk_bytes {
            bucket.disk_bytes.add(disk_bytes);
        }
    }

    /// So many jobs wait now.
    pub(crate) fn note_queued(&mut self, now: Timestamp, n_queued: u64) {
        if let Some(bucket) = self.bucket(now) {
            bucket.n_queued = Some(n_queued);
        }
    }

    /// So many jobs wait for each reason now.
    pub(crate) fn note_reasons(&mut self, now: Timestamp, counts: Counts) {
        let minute = now.0.div_euclid(BUCKET.0);
        match self.reasons.back_mut() {
            Some((newest, known)) if *newest >= minute => *known = counts,
            Some(_) | None => self.reasons.push_back((minute, counts)),
        }
        while self.reasons.len() > REASONS_MAX {
            self.reasons.pop_front();
        }
    }

    /// How many jobs waited for which reason at the end of the minute that began then.
    pub(crate) fn reasons_at(&self, at: Timestamp) -> Option<&Counts> {
        let minute = at.0.div_euclid(BUCKET.0);
        self.reasons.iter().find(|(own, _)| *own == minute).map(|(_, counts)| counts)
    }

    /// The last hour, minute by minute: when it began, what ended in it, what waited at its end.
    pub(crate) fn last_hour(
        &self,
        now: Timestamp,
    ) -> impl Iterator<Item = (Timestamp, u64, Option<u64>)> {
        let first = now.0.div_euclid(BUCKET.0) - 59;
        self.minutes.iter().filter(move |bucket| bucket.minute >= first).map(|bucket| {
            let at = Timestamp(bucket.minute * BUCKET.0);
            (at, bucket.duration_ms.n.unsigned_abs(), bucket.n_queued)
        })
    }

    /// How long attempts took on average: in the last hour, or the last day.
    pub(crate) fn mean_duration(&self, now: Timestamp) -> Option<Millis> {
        let over = |minutes: i64| {
            let first = now.0.div_euclid(BUCKET.0) - minutes;
            let mut all = Sum::default();
            for bucket in self.minutes.iter().filter(|bucket| bucket.minute > first) {
                all.merge(bucket.duration_ms);
            }
            all.total.checked_div(i128::from(all.n))
        };
        let mean = over(60).or_else(|| over(24 * 60))?;
        i64::try_from(mean).ok().map(Millis)
    }

    /// The lengths that a tenth and nine tenths of the last attempts did not exceed; `None` if
    /// there were too few.
    pub(crate) fn spread(&self) -> Option<(Millis, Millis)> {
        let mut lengths: Vec<Millis> = self.lately.iter().copied().collect();
        lengths.sort_unstable();
        let last = lengths.len().checked_sub(1).filter(|last| *last + 1 >= SPREAD_MIN)?;
        Some((lengths[last / 10], lengths[last - last / 10]))
    }

    /// The bucket of this moment, or the newest if that is newer.
    fn bucket(&mut self, at: Timestamp) -> Option<&mut Bucket> {
        let minute = at.0.div_euclid(BUCKET.0);
        if self.minutes.back().is_none_or(|bucket| bucket.minute < minute) {
            self.minutes.push_back(Bucket { minute, ..Bucket::default() });
        }
        self.minutes.back_mut()
    }

    /// The averages over the windows that end now.
    fn cluster(&mut self, now: Timestamp, network_mbps: Option<Fixed>) -> Cluster {
        let oldest = (now - DAY).0.div_euclid(BUCKET.0);
        while self.minutes.front().is_some_and(|bucket| bucket.minute < oldest) {
            self.minutes.pop_front();
        }
        let over = |minutes: i64| {
            let first = now.0.div_euclid(BUCKET.0) - minutes;
            let mut all = Bucket::default();
            for bucket in self.minutes.iter().filter(|bucket| bucket.minute > first) {
                all.merge(bucket);
            }
            Averages { network_mbps, ..all.averages() }
        };
        Cluster { avg_5m: over(5), avg_1h: over(60), avg_24h: over(24 * 60) }
    }
}

impl Bucket {
    fn merge(&mut self, other: &Self) {
        self.wait_ms.merge(other.wait_ms);
        self.duration_ms.merge(other.duration_ms);
        self.missing_paths.merge(other.missing_paths);
        self.missing_bytes.merge(other.missing_bytes);
        self.dependencies.merge(other.dependencies);
        self.cpu_ms.merge(other.cpu_ms);
        self.out_of_memory.merge(other.out_of_memory);
        self.disk_bytes.merge(other.disk_bytes);
    }

    fn averages(self) -> Averages {
        Averages {
            wait_s: self.wait_ms.mean(1_000),
            duration_s: self.duration_ms.mean(1_000),
            missing_paths: self.missing_paths.mean(1),
            missing_mib: self.missing_bytes.mean(1 << 20),
            dependencies: self.dependencies.mean(1),
            cpu_ms: self.cpu_ms.mean(1),
            oom_rate: self.out_of_memory.mean(1),
            network_mbps: None,
            disk_bytes: self.disk_bytes.mean(1),
        }
    }
}

impl Scheduler {
    /// Counts the averages anew, and asks what tenants used in the window.
    pub(crate) fn average(&mut self, now: Timestamp) {
        let mut network = Sum::default();
        for seat in self.fleet.seats.values() {
            if let Some(mbps) = seat.said.metrics.net_mbps {
                network.add(mbps.in_thousandths());
            }
        }
        let n_queued = u64::try_from(self.world.n_queued()).unwrap_or(u64::MAX);
        self.samples.note_queued(now, n_queued);
        let mut counts = Counts::new();
        for waiters in self.world.waiting_by_reason(now) {
            *counts.entry(waiters.reason).or_default() += waiters.n_jobs;
        }
        self.samples.note_reasons(now, counts);
        let cluster = self.samples.cluster(now, network.mean(1_000));
        self.world.apply(Event::Cluster(Box::new(cluster)));
        self.ask_usage();
    }

    pub(crate) fn ask_usage(&mut self) {
        if let Some(asked) = &mut self.usage_asked {
            asked.is_asked_again = true;
            return;
        }
        let at = self.store.now();
        self.usage_asked = Some(UsageAsked { at, is_asked_again: false });
        let since = at - self.config.usage_window;
        self.settled.clear();
        self.call(|store| async move { Answer::Used(store.usage(since).await) }.boxed());
    }

    /// A tenant was charged: counted apart while the store is asked what all have used.
    pub(crate) fn settled(&mut self, tenant: &TenantId, cost: Fixed, is_completed: bool) {
        let (costs, completed) = self.settled.entry(tenant.clone()).or_default();
        *costs += cost;
        *completed += u64::from(is_completed);
    }

    /// Old usage has aged out of the window.
    ///
    /// What was charged since the store was asked may or may not be in its answer, so it is added:
    /// for a moment a tenant may seem to have used more than it did, and never less.
    pub(crate) fn used(&mut self, answer: Result<Vec<Usage>, store::Error>) {
        let asked = self.usage_asked.take();
        // It is asked again in a moment.
        let Some(usages) = self.ok_beside(answer) else { return };
        self.usage_from = asked.map_or(self.usage_from, |asked| asked.at);
        self.count_usage(usages);
        if asked.is_some_and(|asked| asked.is_asked_again) {
            self.ask_usage();
        }
    }

    /// Takes in what tenants used.
    pub(crate) fn count_usage(&mut self, usages: Vec<Usage>) {
        let mut by_tenant = std::mem::take(&mut self.settled);
        for usage in usages {
            let (cost, completed) = by_tenant.entry(usage.tenant).or_default();
            *cost += usage.cost;
            *completed += usage.completed;
        }
        for status in self.world.tenants() {
            by_tenant.entry(status.tenant.id).or_default();
        }
        let total = by_tenant.values().map(|(cost, _)| *cost).sum();
        for (tenant, (used, completed)) in by_tenant {
            self.world.apply(Event::Usage { tenant, used, completed });
        }
        let budget = self.budget_limit.map(|limit| Budget { limit, used: total });
        self.world.apply(Event::Budget(budget));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Ending, Measured, Name};

    fn run(at_s: i64, wait_s: i64) -> Run {
        Run {
            tenant: TenantId::new("a"),
            kind: Name::new("pdf"),
            history_key: String::new(),
            at: Timestamp(at_s * 1_000),
            wait: Millis::from_secs(wait_s),
            duration: Millis::from_secs(1),
            ending: Ending::Succeeded,
            measured: Measured::default(),
            fetched: Some((2, 3 << 20)),
            n_dependents: 4,
        }
    }

    #[test]
    fn each_window_has_its_own_average_and_absent_is_not_zero() {
        let mut samples = Samples::default();
        samples.add(&run(0, 100));
        samples.add(&run(23 * 3_600, 50));
        samples.add(&run(23 * 3_600 + 3_500, 10));
        let now = Timestamp((23 * 3_600 + 3_590) * 1_000);
        let cluster = samples.cluster(now, None);
        assert_eq!(cluster.avg_5m.wait_s, Some(Fixed::whole(10)));
        assert_eq!(cluster.avg_1h.wait_s, Some(Fixed::whole(30)));
        assert_eq!(cluster.avg_24h.wait_s, Some(Fixed::thousandths(53_333)));
        assert_eq!(cluster.avg_1h.missing_mib, Some(Fixed::whole(3)));
        assert_eq!(cluster.avg_1h.cpu_ms, None);
    }

    #[test]
    fn the_spread_leaves_out_the_tenth_at_each_end() {
        let mut samples = Samples::default();
        for at in 0..3 {
            samples.add(&run(at, 0));
        }
        assert_eq!(samples.spread(), None, "three attempts say nothing");
        for length in [100, 2, 3, 4, 5, 6, 7, 8] {
            samples.add(&Run { duration: Millis::from_secs(length), ..run(9, 0) });
        }
        assert_eq!(samples.spread(), Some((Millis(1_000), Millis(8_000))));
    }

    #[test]
    fn counts_by_reason_are_kept_for_an_hour() {
        let mut samples = Samples::default();
        let at = |minute: i64| Timestamp(minute * 60_000 + 1);
        for minute in 0..70_i64 {
            let n_jobs = minute.unsigned_abs();
            samples.note_reasons(at(minute), Counts::from([(Reason::WorkersFull, n_jobs)]));
        }
        let n_at =
            |minute| samples.reasons_at(at(minute)).map(|counts| counts[&Reason::WorkersFull]);
        assert_eq!((n_at(9), n_at(10), n_at(69)), (None, Some(10), Some(69)));
    }

    #[test]
    fn what_is_older_than_a_day_is_gone() {
        let mut samples = Samples::default();
        samples.add(&run(0, 100));
        let cluster = samples.cluster(Timestamp(25 * 3_600 * 1_000), None);
        assert_eq!(cluster, Cluster::default());
        assert!(samples.minutes.is_empty());
    }
}
