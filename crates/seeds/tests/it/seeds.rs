//! Many orders of events, and intended bugs.

use seeds::{Broken, Counts, Reader, play};

/// Seeds of the test suite. `cargo xtask seeds` runs more.
const SEEDS: u64 = 2_000;
/// A bug is found within this many seeds.
const FOUND_WITHIN: u64 = 1_000;

#[test]
fn no_order_loses_a_job_or_counts_one_twice() {
    let mut counts = Counts::default();
    for seed in 0..SEEDS {
        let played = play(seed, None, Reader::Nobody);
        assert!(played.violations.is_empty(), "seed {seed}: {:?}", played.violations);
        counts = counts.and(played.counts);
    }
    let Counts { lost, stale, crashes, unknown, ghosts, .. } = counts;
    assert!([lost, stale, crashes, unknown, ghosts].iter().all(|n| *n > 0), "{counts:?}");
}

#[test]
fn same_seed_gives_the_same_run() {
    for seed in 0..20 {
        let (one, other) = (play(seed, None, Reader::Somebody), play(seed, None, Reader::Somebody));
        assert_eq!(one.trace, other.trace);
    }
}

/// Finds a bug with the seeds from the first on.
fn is_found(broken: Broken) {
    let seed = (1..=FOUND_WITHIN)
        .find(|seed| !play(*seed, Some(broken), Reader::Nobody).violations.is_empty());
    assert!(seed.is_some(), "{broken:?} is not found within {FOUND_WITHIN} seeds");
}

#[test]
fn a_claim_without_a_guard_is_found() {
    is_found(Broken::Guard);
}

#[test]
fn ignored_token_is_found() {
    is_found(Broken::Token);
}

#[test]
fn a_lease_that_does_not_end_is_found() {
    is_found(Broken::Expiry);
}

#[test]
fn a_submission_that_is_taken_in_twice_is_found() {
    is_found(Broken::Key);
}

#[test]
fn uncounted_attempts_after_a_start_are_found() {
    is_found(Broken::Recovery);
}

#[test]
fn a_worker_that_outstays_its_lease_is_found() {
    is_found(Broken::Overstay);
}

#[test]
fn uncounted_limit_across_schedulers_is_found() {
    is_found(Broken::Limit);
}
