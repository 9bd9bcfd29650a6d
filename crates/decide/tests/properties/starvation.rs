//! A long job starts although shorter ones of its tenant come for ever.

use decide::World;
use model::tenant::Trust;
use model::{
    Action, Ended, Event, Fixed, Job, JobId, Millis, Preset, Tenant, TenantId, Timestamp, Worker,
    WorkerId,
};
use proptest::prelude::*;

const SECOND: Millis = Millis::from_secs(1);

/// A tenant with jobs of known lengths, and perhaps another that floods the fleet.
struct Flood {
    world: World,
    now: Timestamp,
    n_jobs: u64,
    /// Job, tenant, when it started and when it ends.
    running: Vec<(JobId, u64, Timestamp, Timestamp)>,
    /// Lengths of all jobs, by number.
    lengths: Vec<Millis>,
    waiting: Vec<(JobId, u64)>,
    /// Slot-milliseconds of the first tenant's jobs that ended.
    served: i64,
    /// The most work of the first tenant that waited at once.
    most: i64,
}

impl Flood {
    fn new(slots: u32, is_trusted: bool) -> Self {
        let mut world = World::new(Preset::Balanced.policy(), 0);
        let worker = Worker { slots, ..Worker::new(WorkerId::new("w")) };
        world.apply(Event::Joined(Box::new(worker)));
        let mut tenant = Tenant::new(TenantId::number(1));
        if is_trusted {
            let (runs, sum, squares) = (Fixed::whole(1_000), 10_000_000, 110_000_000_000);
            tenant.account.trust = Trust { runs, sum, squares, errors: 0 };
        }
        world.apply(Event::Tenant(tenant));
        let (now, lengths) = (Timestamp(1_000_000), vec![Millis::ZERO]);
        let (running, waiting) = (Vec::new(), Vec::new());
        Self { world, now, n_jobs: 0, running, lengths, waiting, served: 0, most: 0 }
    }

    fn submit(&mut self, tenant: u64, length: Millis) -> JobId {
        self.n_jobs += 1;
        let id = JobId::number(self.n_jobs);
        self.lengths.push(length);
        self.waiting.push((id.clone(), tenant));
        let job = Job::new(id.clone(), TenantId::number(tenant), self.now);
        self.world.apply(Event::Queued(Box::new(Job { estimate: Some(length), ..job })));
        id
    }

    fn length(&self, job: &JobId) -> Millis {
        let at = job.to_string().parse::<usize>().expect("jobs are numbered");
        self.lengths[at]
    }

    /// A second passes.
    fn tick(&mut self) {
        self.decide();
        self.now = self.now + SECOND;
        let now = self.now;
        for (job, tenant, started, _) in self.running.extract_if(.., |(.., end)| *end <= now) {
            self.served += if tenant == 1 { now.since(started).0 } else { 0 };
            let (cost, completed, at) = (Fixed::ONE, true, now);
            self.world.apply(Event::Ended(Ended { job, cost, completed, at }));
        }
    }

    fn decide(&mut self) {
        let own = self.waiting.iter().filter(|(_, tenant)| *tenant == 1);
        self.most = self.most.max(own.map(|(job, _)| self.length(job).0).sum());
        for action in self.world.decide(self.now) {
            let Action::Place(placement) = action else { continue };
            let at = self.waiting.iter().position(|(job, _)| *job == placement.job);
            let (job, tenant) = self.waiting.swap_remove(at.expect("it waits"));
            let end = self.now + self.length(&job);
            self.running.push((job, tenant, self.now, end));
        }
    }

    fn served(&self) -> i64 {
        let own = self.running.iter().filter(|(_, tenant, ..)| *tenant == 1);
        self.served + own.map(|(_, _, started, _)| self.now.since(*started).0).sum::<i64>()
    }

    fn has_started(&self, job: &JobId) -> bool {
        self.waiting.iter().all(|(own, _)| own != job)
    }
}

/// How much its tenant is served before the last of some old long jobs starts, while shorter ones
/// keep coming; and the most that waited at once.
fn until_started(
    (slots, is_trusted): (u32, bool),
    (n_old, old_s): (u32, i64),
    short_s: i64,
    others: u32,
) -> (i64, i64) {
    let mut flood = Flood::new(slots, is_trusted);
    let old: Vec<JobId> = (0..n_old).map(|_| flood.submit(1, Millis::from_secs(old_s))).collect();
    let last = old.last().expect("there is one").clone();
    for _ in 0..200_000 {
        // Enough shorter ones that one always waits, and of another tenant's too.
        let n_waiting = |tenant| flood.waiting.iter().filter(|(_, own)| *own == tenant).count();
        let n_short = n_waiting(1);
        let n_others = n_waiting(2);
        let n_old = flood.waiting.iter().filter(|(job, _)| old.contains(job)).count();
        if n_short - n_old < usize::try_from(slots).expect("few") + 1 {
            (0..=slots).for_each(|_| drop(flood.submit(1, Millis::from_secs(short_s))));
        }
        if n_others < usize::try_from(others).expect("few") {
            (0..others).for_each(|_| drop(flood.submit(2, SECOND)));
        }
        flood.tick();
        if flood.has_started(&last) {
            return (flood.served(), flood.most);
        }
    }
    (i64::MAX, flood.most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A single long job: what goes before it is at most twice the longest queue. Then one longest
    /// job on each slot may still run.
    #[test]
    fn a_long_job_starts_once_its_tenant_was_served_twice_its_longest_queue(
        slots in 1..4_u32,
        is_trusted: bool,
        old_s in 20..200_i64,
        short_s in 1..10_i64,
        others in 0..9_u32,
    ) {
        let (served, most) = until_started((slots, is_trusted), (1, old_s), short_s, others);
        let longest = i64::from(slots) * old_s.max(short_s) * 1_000;
        let bound = 2 * most + most / 8 + longest;
        prop_assert!(served <= bound, "{served} after a queue of {most}: at most {bound}");
    }

    /// Of many old jobs the last waits for the others too: for three times the longest queue.
    #[test]
    fn the_last_of_many_long_jobs_starts_after_three_times_the_longest_queue(
        slots in 1..4_u32,
        is_trusted: bool,
        n_old in 1..30_u32,
        old_s in 20..60_i64,
        short_s in 1..10_i64,
        others in 0..9_u32,
    ) {
        let (served, most) = until_started((slots, is_trusted), (n_old, old_s), short_s, others);
        let longest = i64::from(slots) * old_s * 1_000;
        let bound = 3 * most + most / 8 + longest;
        prop_assert!(served <= bound, "{served} after a queue of {most}: at most {bound}");
    }
}

#[test]
fn another_tenants_flood_moves_the_start_of_a_long_job_by_no_slot_time_of_its_own_tenant() {
    let beside = |others| until_started((2, true), (5, 60), 3, others).0;
    let (alone, flooded) = (beside(0), beside(20));
    assert!((alone - flooded).abs() <= 2 * 60_000, "{alone} {flooded}");
}
