//! `missing-paths`, `missing-bytes`, `prefer-local`, `dependents` and `light`.

use model::policy::Rule;
use model::{Fixed, Preset, Trait};

use crate::specs::JobSpec;
use crate::world::{World, decided, points};

const MIB: u64 = 1 << 20;

/// What `rule` says of job 1 on worker `w`, its only choice. It is old enough to be placed in spite
/// of any penalty, and waits for no report.
fn said(
    rule: Rule,
    describe: impl FnOnce(JobSpec<'_>),
    averages: impl FnOnce(&mut World),
) -> String {
    let decision = decided(Preset::ResourceAware, |world| {
        world.worker("w").offers("arch", &["x86"]);
        describe(world.job("1").age_s(4_000).rescored(4));
        averages(world);
    });
    points(&decision, "1", rule)
}

fn paths(n_paths: u32, average: Option<i64>) -> String {
    said(
        Rule::MissingPaths,
        |job| job.missing_paths("w", n_paths).done(),
        |world| world.cluster().avg_1h.missing_paths = average.map(Fixed::thousandths),
    )
}

#[test]
fn missing_paths_unknown_earn_nothing() {
    assert_eq!(said(Rule::MissingPaths, |_| (), |_| ()), "0");
}

#[test]
fn missing_paths_told_by_another_worker_only_earn_nothing_here() {
    let elsewhere = |job: JobSpec<'_>| job.missing_paths("other", 0).done();
    let with_other = |world: &mut World| world.worker("other").draining().done();
    assert_eq!(said(Rule::MissingPaths, elsewhere, with_other), "0");
}

#[test]
fn missing_paths_fall_back_to_an_average_of_twenty() {
    assert_eq!(paths(0, None), "200");
    assert_eq!(paths(1, None), "195");
    assert_eq!(paths(10, None), "150");
    assert_eq!(paths(39, None), "5");
    assert_eq!(paths(40, None), "0");
    assert_eq!(paths(u32::MAX, None), "0");
}

#[test]
fn missing_paths_are_measured_against_twice_the_average() {
    assert_eq!(paths(5, Some(5_000)), "100");
    assert_eq!(paths(10, Some(5_000)), "0");
    assert_eq!(paths(11, Some(5_000)), "0");
}

#[test]
fn missing_paths_have_three_decimals() {
    assert_eq!(paths(1, Some(1_500)), "133.333");
    assert_eq!(paths(2, Some(1_500)), "66.667");
}

#[test]
fn missing_paths_against_a_measured_zero_are_all_or_nothing() {
    assert_eq!(paths(0, Some(0)), "200");
    assert_eq!(paths(1, Some(0)), "0");
}

#[test]
fn missing_paths_look_at_the_last_hour_only() {
    let in_other_windows = |world: &mut World| {
        world.cluster().avg_5m.missing_paths = Some(Fixed::whole(1));
        world.cluster().avg_24h.missing_paths = Some(Fixed::whole(1));
    };
    let points =
        said(Rule::MissingPaths, |job| job.missing_paths("w", 10).done(), in_other_windows);
    assert_eq!(points, "150");
}

#[test]
fn missing_paths_count_for_evaluations_too() {
    let evaluation = |job: JobSpec<'_>| job.is(Trait::Evaluation).missing_paths("w", 0).done();
    assert_eq!(said(Rule::MissingPaths, evaluation, |_| ()), "200");
}

fn bytes(bytes: u64, average_mib: Option<i64>) -> String {
    said(
        Rule::MissingBytes,
        |job| job.missing_bytes("w", bytes).done(),
        |world| world.cluster().avg_1h.missing_mib = average_mib.map(Fixed::thousandths),
    )
}

#[test]
fn missing_bytes_unknown_earn_nothing() {
    assert_eq!(said(Rule::MissingBytes, |_| (), |_| ()), "0");
    let only_paths = |job: JobSpec<'_>| job.missing_paths("w", 0).done();
    assert_eq!(said(Rule::MissingBytes, only_paths, |_| ()), "0");
}

#[test]
fn missing_bytes_fall_back_to_an_average_of_a_gibibyte() {
    assert_eq!(bytes(0, None), "500");
    assert_eq!(bytes(512 * MIB, None), "375");
    assert_eq!(bytes(1_024 * MIB, None), "250");
    assert_eq!(bytes(2_048 * MIB, None), "0");
    assert_eq!(bytes(u64::from(u32::MAX) * MIB, None), "0");
}

#[test]
fn missing_bytes_are_measured_against_twice_the_average() {
    assert_eq!(bytes(10 * MIB, Some(10_000)), "250");
    assert_eq!(bytes(20 * MIB, Some(10_000)), "0");
}

#[test]
fn missing_bytes_have_three_decimals_and_are_not_rounded_to_mebibytes() {
    assert_eq!(bytes(MIB, Some(1_500)), "333.333");
    assert_eq!(bytes(MIB / 2, Some(1_000)), "375");
    assert_eq!(bytes(MIB / 1_024, Some(1_000)), "499.756");
}

#[test]
fn missing_bytes_against_a_measured_zero_are_all_or_nothing() {
    assert_eq!(bytes(0, Some(0)), "500");
    assert_eq!(bytes(1, Some(0)), "0");
}

fn local(n_paths: u32, average: Option<i64>) -> String {
    said(
        Rule::PreferLocal,
        |job| job.is(Trait::PreferLocal).missing_paths("w", n_paths).done(),
        |world| world.cluster().avg_1h.missing_paths = average.map(Fixed::thousandths),
    )
}

#[test]
fn prefer_local_is_only_for_jobs_that_ask_for_it_and_known_paths() {
    let did_not_ask = |job: JobSpec<'_>| job.missing_paths("w", 0).done();
    assert_eq!(said(Rule::PreferLocal, did_not_ask, |_| ()), "0");
    let unknown = |job: JobSpec<'_>| job.is(Trait::PreferLocal).done();
    assert_eq!(said(Rule::PreferLocal, unknown, |_| ()), "0");
}

#[test]
fn prefer_local_falls_to_nothing_at_twice_the_average() {
    assert_eq!(local(0, Some(5_000)), "150");
    assert_eq!(local(1, Some(5_000)), "135");
    assert_eq!(local(9, Some(5_000)), "15");
    assert_eq!(local(10, Some(5_000)), "0");
    assert_eq!(local(1_000_000, Some(5_000)), "0");
}

#[test]
fn prefer_local_has_three_decimals() {
    assert_eq!(local(1, Some(3_500)), "128.571");
}

#[test]
fn prefer_local_loses_twenty_a_path_against_a_measured_zero() {
    assert_eq!(local(0, Some(0)), "150");
    assert_eq!(local(1, Some(0)), "130");
    assert_eq!(local(7, Some(0)), "10");
    assert_eq!(local(8, Some(0)), "0");
}

#[test]
fn prefer_local_without_an_average_still_ranges_from_all_to_nothing() {
    assert_eq!(local(0, None), "150");
    assert_eq!(local(40, None), "0");
}

fn dependents(n_dependents: u32, average: Option<i64>) -> String {
    said(
        Rule::Dependents,
        |job| job.dependents(n_dependents).done(),
        |world| world.cluster().avg_1h.dependencies = average.map(Fixed::thousandths),
    )
}

#[test]
fn dependents_unknown_earn_nothing() {
    assert_eq!(said(Rule::Dependents, |_| (), |_| ()), "0");
}

#[test]
fn dependents_fall_back_to_an_average_of_ten() {
    assert_eq!(dependents(0, None), "0");
    assert_eq!(dependents(1, None), "2.5");
    assert_eq!(dependents(5, None), "12.5");
    assert_eq!(dependents(20, None), "50");
    assert_eq!(dependents(u32::MAX, None), "50");
}

#[test]
fn dependents_are_measured_against_twice_the_average() {
    assert_eq!(dependents(2, Some(2_000)), "25");
    assert_eq!(dependents(1, Some(1_500)), "16.667");
}

#[test]
fn dependents_against_a_measured_zero_are_all_or_nothing() {
    assert_eq!(dependents(0, Some(0)), "0");
    assert_eq!(dependents(1, Some(0)), "50");
}

#[test]
fn dependents_count_for_builds_only() {
    let evaluation = |job: JobSpec<'_>| job.is(Trait::Evaluation).dependents(20).done();
    assert_eq!(said(Rule::Dependents, evaluation, |_| ()), "0");
    let light = |job: JobSpec<'_>| job.is(Trait::Light).dependents(20).done();
    assert_eq!(said(Rule::Dependents, light, |_| ()), "50");
}

#[test]
fn a_build_earns_fifty_and_yields_nothing_to_light_jobs() {
    assert_eq!(said(Rule::Light, |_| (), |_| ()), "50");
    assert_eq!(said(Rule::Light, |job| job.is(Trait::Light).done(), |_| ()), "0");
    assert_eq!(said(Rule::Light, |job| job.is(Trait::Evaluation).done(), |_| ()), "0");
}

#[test]
fn a_light_job_earns_a_hundred_on_a_worker_without_an_architecture() {
    let decision = decided(Preset::Simple, |world| {
        world.worker("w").slots(3);
        world.job("1").is(Trait::Light).rescored(4);
        world.job("2").rescored(4);
        world.job("3").is(Trait::Evaluation);
    });
    assert_eq!(points(&decision, "1", Rule::Light), "100");
    assert_eq!(points(&decision, "2", Rule::Light), "50");
    assert_eq!(points(&decision, "3", Rule::Light), "0");
}
