//! Many orders of events, and bugs on purpose.

use seeds::{Broken, Counts, Reader, play};

/// Seeds of the run that everybody waits for. `cargo xtask seeds` plays more.
const SEEDS: u64 = 2_000;
/// A bug is found within so many.
const FOUND_WITHIN: u64 = 1_000;

#[test]
fn whatever_the_order_nothing_is_lost_and_nothing_counts_twice() {
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
fn the_same_seed_is_the_same_play() {
    for seed in 0..20 {
        let (one, other) = (play(seed, None, Reader::Somebody), play(seed, None, Reader::Somebody));
        assert_eq!(one.trace, other.trace);
    }
}

/// Seeds as everybody plays them, from the first on.
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
fn a_token_that_nobody_looks_at_is_found() {
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
fn attempts_that_are_forgotten_at_a_start_are_found() {
    is_found(Broken::Recovery);
}

#[test]
fn a_worker_that_outstays_its_lease_is_found() {
    is_found(Broken::Overstay);
}

#[test]
fn a_limit_that_nobody_counts_across_schedulers_is_found() {
    is_found(Broken::Limit);
}
