//! Sixty-four slots of which some run few types.

use model::{Fixed, Millis};
use sim::Bounds;

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
fn het90_has_the_known_tails_for_people_and_for_rare_work() {
    let bench = het("het90");
    for (name, known) in [
        ("fifo", "58.8 / 319 / 606 / 318 / 181 / 606"),
        ("seed4", "44.1 / 456 / 811 / 80 / 303 / 811"),
    ] {
        let measures = bench.measures(name);
        let people = measures.part("mode", "on-demand").expect("people wait for some jobs");
        let rare = measures.part("type", "R").expect("some jobs are rare");
        let (all, s) = (&measures.all, |length| ms(length) / 1_000.0);
        let told = format!(
            "{:.1} / {:.0} / {:.0} / {:.0} / {:.0} / {:.0}",
            all.mean_ms / 1_000.0,
            s(all.p99),
            s(all.max),
            s(people.p99),
            rare.mean_ms / 1_000.0,
            s(rare.max)
        );
        assert_eq!(told, known, "{name}");
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
    for name in ["fifo", "prio", "sjf", "sfq", "sfq-sjf", "seed3", "seed4", "match-s4", "match-sjf"]
    {
        bench.starts(name, None);
    }
}

#[test]
fn no_baseline_is_better_than_the_bounds() {
    let bench = het("hetovl").first(3_000);
    let bounds = Bounds::new(&bench.workload, &bench.fleet);
    assert!(bounds.mean_wait_ms > 0.0 && bounds.wait_max_ms > 0.0);
    for name in ["fifo", "prio", "sjf", "sfq-sjf"] {
        let measures = bench.measures(name);
        let all = &measures.all;
        for (measured, bound) in [
            (all.mean_ms, bounds.mean_wait_ms),
            (all.slowdown, bounds.slowdown),
            (ms(all.max), bounds.wait_max_ms),
            (ms(measures.makespan), bounds.makespan_ms),
        ] {
            assert!(measured >= bound, "{name}: {measured} is below {bound}");
        }
    }
}

fn ms(length: Millis) -> f64 {
    Fixed::thousandths(length.0).to_f64() * 1_000.0
}
