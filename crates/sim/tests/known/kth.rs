//! One hundred processors and jobs that take many of them at once.

use model::Millis;

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
