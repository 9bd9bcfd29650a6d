//! Backoffs of the assigners: what a full round looks at, and what a worker that asks looks at.

use model::{Preset, Reason};

use crate::specs::JobSpec;
use crate::world::{World, decided, jobs_placed, reason};

/// Whether the job is placed in a full round, in both presets that back off.
fn in_a_round(describe: impl Fn(JobSpec<'_>)) -> bool {
    looked_at(describe, |_| ())
}

/// Whether the job is placed when a worker asks.
fn on_a_fetch(describe: impl Fn(JobSpec<'_>)) -> bool {
    looked_at(describe, |world| world.freed("w", 1))
}

/// Whether the job is placed when a worker asks and is filled to its capacity.
fn on_a_fetch_to_capacity(describe: impl Fn(JobSpec<'_>)) -> bool {
    looked_at(describe, |world| {
        world.policy().proactive_fetch_to_capacity = true;
        world.freed("w", 1);
    })
}

/// Whether the job is placed when a worker asks, by the letter of the source text.
fn on_a_literal_fetch(describe: impl Fn(JobSpec<'_>)) -> bool {
    looked_at(describe, |world| {
        world.policy().proactive_fetch_literal = true;
        world.freed("w", 1);
    })
}

fn looked_at(describe: impl Fn(JobSpec<'_>), ask: impl Fn(&mut World)) -> bool {
    let presets = [Preset::PriorityAge, Preset::Cohort].map(|preset| {
        let decision = decided(preset, |world| {
            world.worker("w").slots(3);
            describe(world.job("1"));
            ask(world);
        });
        let is_placed = jobs_placed(&decision) == ["1"];
        let is_delayed = reason(&decision, "1") == Some(Reason::NotBefore);
        assert_ne!(is_placed, is_delayed, "{preset:?}: {decision:?}");
        is_placed
    });
    assert_eq!(presets[0], presets[1]);
    presets[0]
}

fn new(job: JobSpec<'_>) {
    job.age_s(60).done();
}

fn inside(job: JobSpec<'_>) {
    job.age_s(60).backoff_ms(1).done();
}

fn ending_now(job: JobSpec<'_>) {
    job.age_s(60).backoff_ms(0).done();
}

fn elapsed(job: JobSpec<'_>) {
    job.age_s(60).backoff_ms(-1).done();
}

#[test]
fn a_round_takes_jobs_whose_backoff_is_over_or_never_was() {
    assert!(in_a_round(new));
    assert!(!in_a_round(inside));
    assert!(in_a_round(ending_now));
    assert!(in_a_round(elapsed));
}

#[test]
fn a_fetch_takes_new_jobs_and_those_inside_their_backoff() {
    assert!(on_a_fetch(new));
    assert!(on_a_fetch(inside));
    assert!(on_a_fetch(ending_now));
    assert!(!on_a_fetch(elapsed));
}

#[test]
fn a_fetch_to_capacity_takes_jobs_regardless_of_their_backoff() {
    assert!(on_a_fetch_to_capacity(new));
    assert!(on_a_fetch_to_capacity(inside));
    assert!(on_a_fetch_to_capacity(ending_now));
    assert!(on_a_fetch_to_capacity(elapsed));
}

#[test]
fn a_literal_fetch_passes_over_jobs_that_were_submitted_before_this_moment() {
    assert!(!on_a_literal_fetch(new));
    assert!(on_a_literal_fetch(|_| ()));
    assert!(on_a_literal_fetch(inside));
    assert!(on_a_literal_fetch(ending_now));
    assert!(!on_a_literal_fetch(elapsed));
}

#[test]
fn a_literal_fetch_goes_by_when_the_job_was_submitted_not_by_when_it_was_ready() {
    assert!(!on_a_literal_fetch(|job| job.created_ms_ago(1).done()));
}

#[test]
fn a_literal_fetch_to_capacity_takes_everything() {
    let take = |describe: fn(JobSpec<'_>)| {
        looked_at(describe, |world| {
            world.policy().proactive_fetch_literal = true;
            world.policy().proactive_fetch_to_capacity = true;
            world.freed("w", 1);
        })
    };
    assert!(take(new));
    assert!(take(inside));
    assert!(take(elapsed));
}

#[test]
fn the_submitters_delay_is_kept_by_all_of_them() {
    let delayed = |job: JobSpec<'_>| job.not_before_ms(1).done();
    let delayed_inside = |job: JobSpec<'_>| job.not_before_ms(1).backoff_ms(5).done();
    assert!(!in_a_round(delayed));
    assert!(!on_a_fetch(delayed));
    assert!(!on_a_fetch(delayed_inside));
    assert!(!on_a_fetch_to_capacity(delayed));
    assert!(!on_a_literal_fetch(delayed_inside));
}

#[test]
fn a_submitters_delay_that_is_over_is_no_backoff() {
    let over = |job: JobSpec<'_>| job.age_s(60).not_before_ms(-1).done();
    let over_now = |job: JobSpec<'_>| job.age_s(60).not_before_ms(0).done();
    assert!(in_a_round(over));
    assert!(in_a_round(over_now));
    assert!(on_a_fetch(over));
    assert!(on_a_fetch(over_now));
    assert!(on_a_fetch_to_capacity(over));
}

#[test]
fn a_backoff_does_not_reset_the_age() {
    let decision = decided(Preset::PriorityAge, |world| {
        world.worker("w");
        world.job("1").age_s(1);
        world.job("2").age_s(60).backoff_ms(-1);
    });
    assert_eq!(jobs_placed(&decision), ["2"]);
}
