//! What `balanced` promises of the waits and shares of our own workloads, whatever its numbers are.

use model::policy::Preset as Named;
use model::{Fixed, Millis, Policy};
use sim::preset::{Options, Preset};
use sim::{Baseline, Bounds, Conditions, Estimates, Measures};

use crate::bench::{Bench, het};

fn of_policy(bench: &Bench, policy: Policy, estimates: Estimates) -> Measures {
    let window = Millis::from_secs(24 * 3_600);
    let options = Options { estimates, seed: 0, window, budget: None };
    let mut preset = Preset::new(&bench.workload, &bench.fleet, policy, options);
    let replay = bench.replay_under(&mut preset, &Conditions::default());
    Measures::new(&bench.workload, &bench.fleet, &replay)
}

fn of_baseline(bench: &Bench, name: &str) -> Measures {
    let baseline = Baseline::from_name(name).expect("it is known");
    let scheduler = baseline.scheduler(&bench.workload, &bench.fleet, bench.window);
    let mut scheduler = scheduler.expect("it is for such a fleet");
    let replay = bench.replay_under(&mut *scheduler, &Conditions::default());
    Measures::new(&bench.workload, &bench.fleet, &replay)
}

fn seconds(length: Millis) -> f64 {
    Fixed::thousandths(length.0).to_f64()
}

/// The mean, the 99th percentile and the longest of all waits, in seconds.
fn waits(measures: &Measures) -> [f64; 3] {
    let all = &measures.all;
    [all.mean_ms / 1_000.0, seconds(all.p99), seconds(all.max)]
}

/// The mean, p99 and longest of all waits under `balanced` are at most these parts of FIFO's.
fn tails_are_bounded(name: &str, estimates: &str, parts: [f64; 3]) {
    let bench = het(name);
    let estimates = Estimates::parse(estimates).expect("it is known");
    let ours = waits(&of_policy(&bench, Named::Balanced.policy(), estimates));
    let fifo = waits(&of_baseline(&bench, "fifo"));
    for ((own, fifo), part) in ours.iter().zip(fifo).zip(parts) {
        assert!(*own <= part * fifo, "{name} {estimates:?}: {ours:?} against {fifo:?}");
    }
}

#[test]
fn with_true_lengths_the_mean_wait_of_het90_is_half_of_fifos_and_p99_at_most_twice() {
    tails_are_bounded("het90", "perfect", [0.5, 2.0, 2.0]);
}

#[test]
fn with_true_lengths_the_mean_wait_of_hetovl_is_half_of_fifos_and_tails_at_most_twice() {
    tails_are_bounded("hetovl", "perfect", [0.5, 2.0, 2.0]);
}

#[test]
fn without_lengths_the_mean_wait_is_no_longer_than_fifos_and_tails_at_most_twice() {
    tails_are_bounded("het90", "none", [1.0, 2.0, 2.0]);
}

#[test]
fn with_lengths_from_history_the_mean_wait_is_about_fifos_and_tails_at_most_twice() {
    tails_are_bounded("het90", "history", [1.03, 2.0, 2.0]);
}

#[test]
fn an_overload_leaves_no_slot_idle() {
    let bench = het("hetovl");
    let measures = of_policy(&bench, Named::Balanced.policy(), Estimates::Perfect);
    assert!(measures.utilisation > 0.99, "{}", measures.utilisation);
}

#[test]
fn without_fairness_the_mean_wait_is_near_what_no_policy_can_beat() {
    let bench = het("hetovl");
    let bound = Bounds::new(&bench.workload, &bench.fleet).mean_wait_ms;
    let measures = of_policy(&bench, Named::Balanced.policy().unfair(), Estimates::Perfect);
    let part = measures.all.mean_ms / bound;
    assert!((1.0..=1.1).contains(&part), "{part}");
}
