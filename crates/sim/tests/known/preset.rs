//! The production code on our workloads.

use model::{Millis, policy};
use sim::preset::{Options, Preset};
use sim::{Estimates, Start};

use crate::bench::{Bench, het};

fn starts(bench: &Bench, preset: policy::Preset, estimates: Estimates) -> Vec<Start> {
    let options = Options { estimates, seed: 0, window: Millis::from_secs(24 * 3_600) };
    let world = Preset::new(&bench.workload, &bench.fleet, preset.policy(), options);
    bench.replay(&mut world.expect("there is no preemption"), None)
}

#[test]
fn every_preset_starts_every_job_soundly() {
    let bench = het("hetovl").first(1_000);
    for preset in policy::Preset::ALL {
        starts(&bench, preset, Estimates::Perfect);
    }
}

#[test]
fn a_replay_is_the_same_every_time() {
    let bench = het("het90").first(2_000);
    for estimates in ["none", "history", "wrong:4"] {
        let estimates = Estimates::parse(estimates).expect("it is known");
        let replay = || starts(&bench, policy::Preset::Balanced, estimates);
        assert_eq!(replay(), replay());
    }
}
