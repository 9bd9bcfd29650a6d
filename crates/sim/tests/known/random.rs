//! Any workload, under anything: what must hold always.

use model::{Millis, policy};
use proptest::prelude::*;
use sim::preset::{Options, Preset};
use sim::workload::Quota;
use sim::{Conditions, Estimates, Failures, Loss, Many, Replay, Transfer};

use crate::bench::Bench;
use crate::small;

/// For how long a worker that failed is gone.
const REPAIR: Millis = Millis(700);

/// A workload, a fleet, limits and conditions, small enough to be told.
#[derive(Clone, Debug)]
struct World {
    jobs: Vec<(i64, i64, u8, u32, u8)>,
    fleet: (u32, u32),
    maxima: [Option<u32>; 2],
    minima: [u32; 2],
    preset: usize,
    estimates: usize,
    preempts: bool,
    fails: bool,
    fetches: bool,
    schedulers: u16,
    tick: Option<i64>,
}

prop_compose! {
    fn worlds()(
        jobs in prop::collection::vec(
            (0..20_000_i64, 0..5_000_i64, 0..2_u8, 1..3_u32, 0..3_u8),
            1..60,
        ),
        fleet in (1..6_u32, 2..4_u32),
        maxima in [prop::option::of(2..6_u32), prop::option::of(2..6_u32)],
        minima in [0..3_u32, 0..3_u32],
        (preset, estimates) in (0..policy::Preset::ALL.len(), 0..4_usize),
        (preempts, fails, fetches) in (any::<bool>(), any::<bool>(), any::<bool>()),
        schedulers in prop_oneof![Just(1_u16), 2..4_u16],
        tick in prop::option::of(1..700_i64),
    ) -> World {
        World {
            jobs, fleet, maxima, minima, preset, estimates, preempts, fails, fetches, schedulers,
            tick,
        }
    }
}

impl World {
    fn bench(&self) -> Bench {
        let jobs =
            self.jobs.iter().enumerate().map(|(id, (arrival, duration, tenant, slots, _))| {
                let tenant = ["a", "b"][usize::from(*tenant)];
                format!("{id} {arrival} {duration} {tenant} {slots}\n")
            });
        let (n_workers, slots) = self.fleet;
        let mut bench = small::bench(&jobs.collect::<String>(), &format!("{n_workers}x{slots}"));
        bench.workload.labels = (0..3).map(model::Name::number).collect();
        for job in &mut bench.workload.jobs {
            let (.., label) = self.jobs[usize::try_from(job.rank).expect("it is small")];
            job.label = Some(usize::from(label));
            job.priority = i32::from(label);
        }
        for (ix, tenant) in bench.workload.tenants.iter_mut().enumerate() {
            // Dealt to all schedulers, a maximum must leave room for the widest job.
            let least = 2 * u32::from(self.schedulers);
            let max = self.maxima[ix].map(|max| max.max(least));
            let min = self.minima[ix].min(max.unwrap_or(u32::MAX));
            tenant.quota = Quota { min, max };
        }
        bench
    }

    fn conditions(&self) -> Conditions {
        let failures = Failures { lasts: Millis(30_000), repair: REPAIR, seed: 5 };
        let transfer = Transfer { megabytes: 1, megabytes_per_s: 3, kept_max: 2 };
        Conditions {
            tick: self.tick.map(Millis),
            failures: self.fails.then_some(failures),
            transfer: self.fetches.then_some(transfer),
            until: None,
        }
    }

    fn replay(&self, bench: &Bench) -> Replay {
        let mut policy = policy::Preset::ALL[self.preset].policy();
        policy.preemption.enabled = self.preempts;
        policy.preemption.delay = Millis(500);
        let estimates = [Estimates::None, Estimates::Perfect, Estimates::History, Estimates::User];
        let options = Options {
            estimates: estimates[self.estimates],
            seed: 3,
            window: Millis::from_secs(60),
            budget: None,
        };
        let (workload, fleet) = (&bench.workload, &bench.fleet);
        if self.schedulers == 1 {
            let mut one = Preset::new(workload, fleet, policy, options);
            return bench.replay_under(&mut one, &self.conditions());
        }
        let views = (self.schedulers, Millis(100));
        let mut many = Many::new(workload, fleet, &policy, options, views);
        bench.replay_under(&mut many, &self.conditions())
    }
}

/// No tenant ever has more slots than its maximum.
fn quotas_hold(bench: &Bench, replay: &Replay) -> Result<(), TestCaseError> {
    for (ix, tenant) in bench.workload.tenants.iter().enumerate() {
        let Some(max) = tenant.quota.max else { continue };
        let mut changes = Vec::new();
        for (job, start) in replay.attempts() {
            let job = &bench.workload.jobs[job];
            if job.tenant == ix && start.end > start.at {
                changes.push((start.at, 1, i64::from(job.slots)));
                changes.push((start.end, 0, -i64::from(job.slots)));
            }
        }
        changes.sort_unstable();
        let mut slots = 0;
        for (at, _, change) in changes {
            slots += change;
            prop_assert!(slots <= i64::from(max), "{slots} slots at {at:?}, at most {max}");
        }
    }
    Ok(())
}

/// Nothing starts on a worker while it is gone.
fn nobody_sits_where_nobody_is(replay: &Replay) -> Result<(), TestCaseError> {
    for lost in replay.lost.iter().filter(|lost| lost.loss == Loss::Failed) {
        let (gone, back) = (lost.start.end, lost.start.end + REPAIR);
        let mut there = replay.attempts().filter(|(_, own)| own.worker == lost.start.worker);
        prop_assert!(there.all(|(_, own)| own.at < gone || own.at >= back || own == lost.start));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Every attempt is checked by the bench: none before its job arrives, none on slots that are
    /// taken; and a replay returns only once every job has ended.
    #[test]
    fn every_job_ends_soundly_and_the_same_way_every_time(world in worlds()) {
        let bench = world.bench();
        let replay = world.replay(&bench);
        for (job, start) in bench.workload.jobs.iter().zip(&replay.starts) {
            prop_assert!(start.end >= start.at + job.duration, "{} is cut short", job.id);
        }
        if !world.preempts {
            prop_assert!(replay.lost.iter().all(|lost| lost.loss == Loss::Failed));
        }
        quotas_hold(&bench, &replay)?;
        nobody_sits_where_nobody_is(&replay)?;
        prop_assert_eq!(&replay, &world.replay(&bench));
    }
}
