//! One hundred processors and jobs that take many of them at once.

use model::{Millis, policy};
use sim::preset::{Options, Preset};
use sim::{Conditions, Estimates, Measures};

use crate::bench::kth_m;

#[test]
fn easy_has_the_published_slowdowns() {
    let Some(bench) = kth_m() else { return };
    assert_eq!(bench.workload.jobs.len(), 28_481);
    for (name, slowdown) in [("easy:perfect", "71.72"), ("easy-sjbf:perfect", "49.85")] {
        assert_eq!(format!("{:.2}", bench.measures(name).all.slowdown), slowdown, "{name}");
    }
    for (name, slowdown) in [("easy", 92.6), ("easy-sjbf", 69.4)] {
        let measured = bench.measures(name).all.slowdown;
        assert!((measured / slowdown - 1.0).abs() < 0.002, "{name}: {measured}");
    }
}

#[test]
fn nobody_waits_longer_under_easy_than_is_known() {
    let Some(bench) = kth_m() else { return };
    assert_eq!(bench.measures("easy").all.max, Millis::from_secs(262_194));
}

#[test]
fn tails_under_balanced_are_at_most_twice_those_of_fifo() {
    let Some(bench) = kth_m() else { return };
    let fifo = bench.measures("fifo").all;
    for estimates in ["perfect", "history", "none"] {
        let estimates = Estimates::parse(estimates).expect("it is known");
        let window = Millis::from_secs(24 * 3_600);
        let options = Options { estimates, seed: 0, window, budget: None };
        let policy = policy::Preset::Balanced.policy();
        let mut balanced = Preset::new(&bench.workload, &bench.fleet, policy, options);
        let replay = bench.replay_under(&mut balanced, &Conditions::default());
        let Measures { all, .. } = Measures::new(&bench.workload, &bench.fleet, &replay);
        assert!(all.p99.0 <= 2 * fifo.p99.0, "{estimates:?}: {:?} {:?}", all.p99, fifo.p99);
        assert!(all.max.0 <= 2 * fifo.max.0, "{estimates:?}: {:?} {:?}", all.max, fifo.max);
    }
}
