//! What measures shares tells a policy that keeps them from one that does not.

use sim::generate::Backlogged;
use sim::preset::{Options, Preset};
use sim::verdict::{Cases, Summary, judge};
use sim::{Baseline, Conditions, Estimates, Scheduler, replay};

/// Enough to tell policies apart, in a second.
const CASES: Cases = Cases { n_runs: 20, seed: 0, n_threads: 2 };

fn summary(baseline: Baseline) -> Summary {
    let window = model::Millis::from_secs(3_600);
    let verdicts = judge(CASES, |case| baseline.scheduler(&case.workload, &case.fleet, window));
    Summary::new(&verdicts.expect("each case is for each baseline"))
}

#[test]
fn fair_queueing_keeps_shares_of_backlogged_tenants() {
    let summary = summary(Baseline::Sfq);
    assert_eq!((summary.n_kept, summary.n_runs), (20, 20), "{summary:?}");
}

#[test]
fn balanced_keeps_shares_of_backlogged_tenants_whatever_is_said_of_lengths() {
    for estimates in ["none", "perfect", "history", "wrong:4"] {
        let estimates = Estimates::parse(estimates).expect("it is known");
        let window = model::Millis::from_secs(3_600);
        let options = Options { estimates, seed: 0, window, budget: None };
        let verdicts = judge(CASES, |case| {
            let policy = model::Preset::Balanced.policy();
            let preset = Preset::new(&case.workload, &case.fleet, policy, options);
            let scheduler: Box<dyn Scheduler> = Box::new(preset);
            Ok(scheduler)
        });
        let summary = Summary::new(&verdicts.expect("each case is for each preset"));
        assert_eq!((summary.n_kept, summary.n_runs), (20, 20), "{estimates:?} {summary:?}");
    }
}

#[test]
fn order_of_arrival_keeps_no_shares() {
    let summary = summary(Baseline::Fifo);
    assert_eq!(summary.n_kept, 0, "{summary:?}");
    assert!(summary.worst.error() > 0.5, "{summary:?}");
}

#[test]
fn each_tenant_is_backlogged_until_the_measurement_ends_even_if_it_has_all_slots() {
    for seed in 0..20 {
        let case = Backlogged::new(seed);
        let until = Some(case.until);
        for alone in 0..case.workload.tenants.len() {
            let mut own = case.clone();
            own.workload.jobs.retain(|job| job.tenant == alone);
            let mut scheduler = Baseline::Fifo
                .scheduler(&own.workload, &own.fleet, model::Millis::from_secs(3_600))
                .expect("it is for each fleet");
            let conditions = Conditions { until, ..Conditions::default() };
            let replay =
                replay(&own.workload, &own.fleet, &mut *scheduler, &conditions, &mut |_| {});
            let replay = replay.expect("no job is lost");
            let n_started = replay.starts.iter().filter(|start| start.end > start.at).count();
            assert!(n_started < own.workload.jobs.len(), "seed {seed}, tenant {alone}");
            let slots = own.fleet.slots();
            let running = replay.starts.iter().filter(|own| own.end >= case.until).count();
            assert_eq!(u64::try_from(running).expect("few"), slots, "seed {seed}: no idle slot");
        }
    }
}
