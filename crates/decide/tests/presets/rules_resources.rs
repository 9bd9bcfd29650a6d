//! `resource-fit`, `saturation`, `network` and `disk`.

use model::policy::Rule;
use model::{Fixed, History, Metrics, Preset, Trait};

use crate::specs::JobSpec;
use crate::world::{World, decided, points};

const MIB: u64 = 1 << 20;

/// What `rule` says of job 1 on worker `w` that measures `metrics` of itself. The job is old enough
/// to be placed in spite of any penalty, and waits for no report.
fn said(rule: Rule, metrics: Metrics, describe: impl FnOnce(JobSpec<'_>)) -> String {
    said_with(rule, metrics, describe, |_| ())
}

fn said_with(
    rule: Rule,
    metrics: Metrics,
    describe: impl FnOnce(JobSpec<'_>),
    averages: impl FnOnce(&mut World),
) -> String {
    let decision = decided(Preset::ResourceAware, |world| {
        world.worker("w").metrics(metrics);
        describe(world.job("1").age_s(4_000).rescored(4));
        averages(world);
    });
    points(&decision, "1", rule)
}

fn free(ram_free_mb: u64) -> Metrics {
    Metrics { ram_free_mb: Some(ram_free_mb), ..Metrics::default() }
}

fn peak(ram_peak_mb: u64) -> History {
    History { samples: 1, ram_peak_mb: Some(ram_peak_mb), ..History::default() }
}

fn fit(ram_peak_mb: u64, ram_free_mb: u64) -> String {
    said(Rule::ResourceFit, free(ram_free_mb), |job| job.history(peak(ram_peak_mb)).done())
}

#[test]
fn resource_fit_is_against_jobs_that_overshoot_free_memory() {
    assert_eq!(fit(1_000, 1_000), "0");
    assert_eq!(fit(1_500, 1_000), "-200");
    assert_eq!(fit(4, 3), "-133.333");
    assert_eq!(fit(3_000, 1_000), "-800");
    assert_eq!(fit(1_000_000, 1_000), "-800");
}

#[test]
fn resource_fit_says_nothing_of_memory_when_none_is_free() {
    assert_eq!(fit(1_000, 0), "0");
}

#[test]
fn resource_fit_needs_samples_and_metrics() {
    let no_samples = History { samples: 0, ..peak(9_000) };
    assert_eq!(said(Rule::ResourceFit, free(1), |job| job.history(no_samples).done()), "0");
    assert_eq!(said(Rule::ResourceFit, free(1), |_| ()), "0");
    let unmeasured = Metrics::default();
    assert_eq!(said(Rule::ResourceFit, unmeasured, |job| job.history(peak(9_000)).done()), "0");
}

#[test]
fn resource_fit_is_amplified_by_past_and_fleet_wide_lack_of_memory() {
    let oom = |rate| History { oom_rate: Some(Fixed::thousandths(rate)), ..peak(1_500) };
    let half = said(Rule::ResourceFit, free(1_000), |job| job.history(oom(500)).done());
    assert_eq!(half, "-300");
    let both = said_with(
        Rule::ResourceFit,
        free(1_000),
        |job| job.history(oom(500)).done(),
        |world| world.cluster().avg_1h.oom_rate = Some(Fixed::thousandths(200)),
    );
    assert_eq!(both, "-360");
}

#[test]
fn resource_fit_is_at_worst_minus_3200() {
    let worst = History { oom_rate: Some(Fixed::ONE), ..peak(1_000_000) };
    let points = said_with(
        Rule::ResourceFit,
        free(1_000),
        |job| job.is(Trait::Evaluation).history(worst).done(),
        |world| world.cluster().avg_1h.oom_rate = Some(Fixed::ONE),
    );
    assert_eq!(points, "-3200");
}

#[test]
fn resource_fit_counts_for_evaluations_too() {
    let evaluation = |job: JobSpec<'_>| job.is(Trait::Evaluation).history(peak(1_500)).done();
    assert_eq!(said(Rule::ResourceFit, free(1_000), evaluation), "-200");
}

fn cpu(cpu_ms: u64, cpu_score: Option<i64>, average_ms: Option<i64>) -> String {
    let history = History { samples: 1, cpu_ms: Some(cpu_ms), ..History::default() };
    let metrics = Metrics { cpu_score: cpu_score.map(Fixed::whole), ..free(1_000) };
    said_with(
        Rule::ResourceFit,
        metrics,
        |job| job.history(history).done(),
        |world| world.cluster().avg_1h.cpu_ms = average_ms.map(Fixed::whole),
    )
}

#[test]
fn resource_fit_sends_heavy_jobs_to_fast_cores() {
    assert_eq!(cpu(60_001, Some(1_000), None), "50");
    assert_eq!(cpu(60_001, Some(500), None), "25");
    assert_eq!(cpu(60_001, Some(1_234), None), "61.7");
    assert_eq!(cpu(60_001, Some(2_000), None), "100");
    assert_eq!(cpu(60_001, Some(9_000), None), "100");
    assert_eq!(cpu(60_001, None, None), "0");
}

#[test]
fn resource_fit_calls_a_job_heavy_above_the_average_and_not_at_it() {
    assert_eq!(cpu(60_000, Some(1_000), None), "0");
    assert_eq!(cpu(100, Some(1_000), Some(100)), "0");
    assert_eq!(cpu(101, Some(1_000), Some(100)), "50");
    assert_eq!(cpu(1, Some(1_000), Some(0)), "50");
    assert_eq!(cpu(0, Some(1_000), Some(0)), "0");
}

#[test]
fn resource_fit_adds_its_penalty_and_its_bonus() {
    let history = History { cpu_ms: Some(100_000), ..peak(1_500) };
    let metrics = Metrics { cpu_score: Some(Fixed::whole(1_000)), ..free(1_000) };
    assert_eq!(said(Rule::ResourceFit, metrics, |job| job.history(history).done()), "-150");
}

fn busy(cpu_pct: i64) -> Metrics {
    Metrics { cpu_pct: Some(Fixed::thousandths(cpu_pct)), ..Metrics::default() }
}

fn memory(ram_free_mb: u64, ram_total_mb: u64) -> Metrics {
    Metrics { ram_total_mb: Some(ram_total_mb), ..free(ram_free_mb) }
}

fn saturation(metrics: Metrics) -> String {
    said(Rule::Saturation, metrics, |_| ())
}

#[test]
fn a_worker_is_saturated_at_ninety_percent_of_its_processor() {
    assert_eq!(saturation(busy(0)), "0");
    assert_eq!(saturation(busy(80_000)), "0");
    assert_eq!(saturation(busy(89_999)), "0");
    assert_eq!(saturation(busy(90_000)), "-1000");
    assert_eq!(saturation(busy(100_000)), "-1000");
}

#[test]
fn a_worker_is_saturated_with_a_tenth_of_its_memory_free() {
    assert_eq!(saturation(memory(101, 1_000)), "0");
    assert_eq!(saturation(memory(100, 1_000)), "-1000");
    assert_eq!(saturation(memory(0, 1_000)), "-1000");
}

#[test]
fn processor_and_memory_together_saturate_once() {
    let both = Metrics { cpu_pct: Some(Fixed::whole(95)), ..memory(1, 1_000) };
    assert_eq!(saturation(both), "-1000");
}

#[test]
fn what_is_not_measured_does_not_saturate() {
    assert_eq!(saturation(Metrics::default()), "0");
    assert_eq!(saturation(free(0)), "0");
    let only_total = Metrics { ram_total_mb: Some(1_000), ..Metrics::default() };
    assert_eq!(saturation(only_total), "0");
}

#[test]
fn a_job_that_may_not_fit_in_memory_with_a_tenth_to_spare_loses_a_thousand() {
    let fits = said(Rule::Saturation, free(1_100), |job| job.history(peak(1_000)).done());
    assert_eq!(fits, "0");
    let tight = said(Rule::Saturation, free(1_099), |job| job.history(peak(1_000)).done());
    assert_eq!(tight, "-1000");
}

#[test]
fn the_memory_check_needs_samples() {
    let history = History { samples: 0, ..peak(9_000) };
    assert_eq!(said(Rule::Saturation, free(10), |job| job.history(history).done()), "0");
}

#[test]
fn saturation_and_too_little_memory_stack() {
    let metrics = memory(100, 1_000);
    assert_eq!(said(Rule::Saturation, metrics, |job| job.history(peak(1_000)).done()), "-2000");
}

#[test]
fn light_jobs_and_evaluations_are_exempt_from_saturation() {
    let metrics = Metrics { cpu_pct: Some(Fixed::whole(99)), ..memory(100, 1_000) };
    for fact in [Trait::Light, Trait::Evaluation] {
        let exempt = |job: JobSpec<'_>| job.is(fact).history(peak(1_000)).done();
        assert_eq!(said(Rule::Saturation, metrics, exempt), "0", "{fact:?}");
    }
}

fn network(net_mbps: i64, average: Option<i64>) -> String {
    let metrics = Metrics { net_mbps: Some(Fixed::whole(net_mbps)), ..Metrics::default() };
    said_with(
        Rule::Network,
        metrics,
        |job| job.is(Trait::Network).done(),
        |world| world.cluster().avg_24h.network_mbps = average.map(Fixed::whole),
    )
}

#[test]
fn network_falls_back_to_a_hundred_megabits() {
    assert_eq!(network(0, None), "0");
    assert_eq!(network(50, None), "40");
    assert_eq!(network(100, None), "80");
    assert_eq!(network(10_000, None), "80");
}

#[test]
fn network_is_measured_against_the_average_of_a_day() {
    assert_eq!(network(50, Some(200)), "20");
    assert_eq!(network(1, Some(3)), "26.667");
    assert_eq!(network(1, Some(0)), "80");
}

#[test]
fn network_is_only_for_jobs_that_it_limits_and_workers_that_measure_it() {
    let metrics = Metrics { net_mbps: Some(Fixed::whole(100)), ..Metrics::default() };
    assert_eq!(said(Rule::Network, metrics, |_| ()), "0");
    let unmeasured = Metrics::default();
    assert_eq!(said(Rule::Network, unmeasured, |job| job.is(Trait::Network).done()), "0");
}

#[test]
fn network_does_not_look_at_the_last_hour() {
    let metrics = Metrics { net_mbps: Some(Fixed::whole(50)), ..Metrics::default() };
    let points = said_with(
        Rule::Network,
        metrics,
        |job| job.is(Trait::Network).done(),
        |world| world.cluster().avg_1h.network_mbps = Some(Fixed::whole(1)),
    );
    assert_eq!(points, "40");
}

fn disk(disk_bytes: u64, disk_mbps: i64, average: Option<i64>) -> String {
    let history = History { samples: 1, disk_bytes: Some(disk_bytes), ..History::default() };
    let metrics = Metrics { disk_mbps: Some(Fixed::thousandths(disk_mbps)), ..Metrics::default() };
    said_with(
        Rule::Disk,
        metrics,
        |job| job.history(history).done(),
        |world| world.cluster().avg_24h.disk_bytes = average.map(Fixed::whole),
    )
}

#[test]
fn disk_falls_back_to_jobs_of_a_hundred_mebibytes() {
    assert_eq!(disk(100 * MIB - 1, 500_000, None), "0");
    assert_eq!(disk(100 * MIB, 500_000, None), "60");
}

#[test]
fn disk_earns_all_at_five_hundred_megabytes_a_second() {
    assert_eq!(disk(100 * MIB, 250_000, None), "30");
    assert_eq!(disk(100 * MIB, 7_770, None), "0.932");
    assert_eq!(disk(100 * MIB, 9_000_000, None), "60");
}

#[test]
fn disk_counts_jobs_at_or_above_the_average_of_a_day() {
    assert_eq!(disk(999, 500_000, Some(1_000)), "0");
    assert_eq!(disk(1_000, 500_000, Some(1_000)), "60");
    assert_eq!(disk(0, 500_000, Some(0)), "60");
}

#[test]
fn disk_needs_samples_and_a_metric() {
    let metrics = Metrics { disk_mbps: Some(Fixed::whole(500)), ..Metrics::default() };
    let heavy = History { samples: 1, disk_bytes: Some(1 << 40), ..History::default() };
    let no_samples = History { samples: 0, ..heavy };
    assert_eq!(said(Rule::Disk, metrics, |job| job.history(no_samples).done()), "0");
    assert_eq!(said(Rule::Disk, metrics, |_| ()), "0");
    assert_eq!(said(Rule::Disk, Metrics::default(), |job| job.history(heavy).done()), "0");
}
