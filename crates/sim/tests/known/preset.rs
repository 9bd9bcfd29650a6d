//! The production code on our workloads.

use model::policy::Aging;
use model::{Millis, Policy, policy};
use sim::preset::{Options, Preset};
use sim::{Estimates, Start};

use crate::bench::{Bench, het, kth_m};

fn starts(bench: &Bench, policy: Policy, estimates: Estimates) -> Vec<Start> {
    let options =
        Options { estimates, seed: 0, window: Millis::from_secs(24 * 3_600), budget: None };
    bench.replay(&mut Preset::new(&bench.workload, &bench.fleet, policy, options), None)
}

#[test]
fn every_preset_starts_every_job_soundly() {
    let bench = het("hetovl").first(1_000);
    for preset in policy::Preset::ALL {
        starts(&bench, preset.policy(), Estimates::Perfect);
    }
}

#[test]
fn a_replay_is_the_same_every_time() {
    let bench = het("het90").first(2_000);
    for estimates in ["none", "history", "wrong:4"] {
        let estimates = Estimates::parse(estimates).expect("it is known");
        let replay = || starts(&bench, policy::Preset::Balanced.policy(), estimates);
        assert_eq!(replay(), replay());
    }
}

/// Two that were written apart agree on every start of every job.
fn agree(bench: &Bench, policy: Policy, baseline: &str) {
    let ours = starts(bench, policy, Estimates::None);
    let theirs = bench.starts(baseline, None);
    let moments = |starts: &[Start]| starts.iter().map(|start| start.at).collect::<Vec<_>>();
    assert_eq!(moments(&ours), moments(&theirs), "{baseline}");
}

#[test]
fn priority_age_and_aging_start_every_job_when_prio_and_seed4_do() {
    for name in ["het90", "hetovl"] {
        let bench = het(name).first(6_000);
        agree(&bench, policy::Preset::PriorityAge.policy(), "prio");
        agree(&bench, policy::Preset::Aging.policy(), "seed4");
    }
}

#[test]
fn aging_without_an_end_to_the_bonus_is_seed4_for_wide_jobs_too() {
    let Some(bench) = kth_m() else { return };
    let aging = policy::Preset::Aging.policy();
    let on_demand_age_max = Millis::from_secs(1_000_000_000);
    let endless = Aging { on_demand_age_max, ..Aging::DOCUMENTED };
    agree(&bench, Policy { aging: endless, ..aging }, "seed4");
}
