//! Sixty-four slots of which some run few types.

use model::Millis;

use crate::bench::het;

/// Seconds with two decimals.
fn seconds(ms: f64) -> String {
    format!("{:.2}", ms / 1_000.0)
}

#[test]
fn het90_has_the_known_mean_waits() {
    let bench = het("het90");
    for (name, mean_s) in [("fifo", "58.80"), ("sjf", "16.29")] {
        assert_eq!(seconds(bench.measures(name).all.mean_ms), mean_s, "{name}");
    }
}

#[test]
fn a_tick_delays_starts_to_its_multiples() {
    let bench = het("het90").first(2_000);
    let (tick, starts) = (Millis(500), bench.starts("fifo", Some(Millis(500))));
    assert!(starts.iter().all(|start| start.at.0 % tick.0 == 0));
    assert_eq!(bench.starts("fifo", Some(Millis(1))), bench.starts("fifo", None));
}

#[test]
fn every_baseline_of_slots_starts_every_job_soundly() {
    let bench = het("hetovl").first(3_000);
    for name in ["fifo", "prio", "sjf", "sfq", "sfq-sjf", "seed3", "seed4"] {
        bench.starts(name, None);
    }
}
