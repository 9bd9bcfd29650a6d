//! Many orders of events, and bugs on purpose.

use seeds::{Broken, Counts, Reader, play};

/// Seeds of the run that everybody waits for. `cargo xtask seeds` plays more.
const SEEDS: u64 = 600;
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
    let Counts { lost, stale, crashes, unknown, .. } = counts;
    assert!([lost, stale, crashes, unknown].iter().all(|n| *n > 0), "{counts:?}");
}

/// A worker that was heard lost its attempt, because its renewal was slow on the way to the store;
/// one that was heard in the last moment was not counted any more (116); one that had moved was
/// offered the same attempt again by another scheduler (559).
#[test]
fn what_was_found_once_stays_mended() {
    for seed in [1_050, 1_423, 116, 559] {
        let played = play(seed, None, Reader::Nobody);
        assert!(played.violations.is_empty(), "seed {seed}: {:?}", played.violations);
    }
}

#[test]
fn the_same_seed_is_the_same_play() {
    for seed in 0..20 {
        let (one, other) = (play(seed, None, Reader::Somebody), play(seed, None, Reader::Somebody));
        assert_eq!(one.trace, other.trace);
    }
}

/// Odd seeds have several schedulers at a time, which is where bugs like these can be met: one
/// that is alone refuses an old token before it asks the store.
fn is_found(broken: Broken) {
    is_found_from(1, broken);
}

/// Every other seed from this one on.
fn is_found_from(first: u64, broken: Broken) {
    let seed = (0..FOUND_WITHIN)
        .map(|n| 2 * n + first)
        .find(|seed| !play(*seed, Some(broken), Reader::Nobody).violations.is_empty());
    assert!(seed.is_some(), "{broken:?} is not found within {FOUND_WITHIN} seeds");
}

#[test]
fn a_claim_without_a_guard_is_found() {
    is_found(Broken::Guard);
}

#[test]
fn a_token_that_nobody_looks_at_is_found() {
    // Rare, so the search begins nearer to where it is met: see docs/seeds.md.
    is_found_from(1_001, Broken::Token);
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
    // Those that share a store read what a worker has when it comes.
    is_found_from(0, Broken::Recovery);
}

#[test]
fn a_worker_that_outstays_its_lease_is_found() {
    is_found(Broken::Overstay);
}

#[test]
fn a_limit_that_nobody_counts_across_schedulers_is_found() {
    is_found(Broken::Limit);
}
