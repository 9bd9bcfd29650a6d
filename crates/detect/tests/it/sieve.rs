//! Accepted proposals, and the reasons of rejected ones.

use detect::{Proposal, Sieve};
use model::{Name, Timestamp};

const NOW: Timestamp = Timestamp(1_000);

fn proposal(key: &str) -> Proposal<()> {
    let (kind, key) = (Name::new("vacuum"), key.to_owned());
    Proposal { kind, key, priority: 0, not_before: None, expires: None, job: () }
}

fn sieve(n_max: u32) -> Sieve {
    Sieve::new(Name::new("vacuum"), n_max, Timestamp(5_000))
}

fn keys(taken: &[Proposal<()>]) -> Vec<&str> {
    taken.iter().map(|one| one.key.as_str()).collect()
}

#[test]
fn every_refusal_has_its_reason() {
    let mut sieve = sieve(9);
    let page = vec![
        Ok(proposal("a")),
        Ok(Proposal { kind: Name::new("balance"), ..proposal("foreign") }),
        Ok(Proposal { expires: Some(NOW), ..proposal("expired") }),
        Ok(Proposal { expires: Some(Timestamp(1_001)), ..proposal("in time") }),
        Ok(Proposal { not_before: Some(Timestamp(5_000)), ..proposal("early") }),
        Ok(Proposal { not_before: Some(Timestamp(4_999)), ..proposal("later") }),
        Err("`payload` is too long".to_owned()),
        Ok(proposal("a")),
    ];
    assert_eq!(keys(&sieve.sift(NOW, page)), ["a", "in time", "later"]);
    let shown: Vec<String> =
        sieve.refused().iter().map(|(reason, n)| format!("{reason} {n}")).collect();
    assert_eq!(shown, ["expired 1", "foreign 1", "malformed 1", "repeated 1", "too-early 1"]);
    assert_eq!((sieve.n_proposed(), sieve.n_taken()), (8, 3));
    assert_eq!(sieve.examples(), ["`payload` is too long"]);
}

#[test]
fn run_accepts_proposals_up_to_its_limit_over_all_pages() {
    let mut sieve = sieve(3);
    assert_eq!(sieve.sift(NOW, vec![Ok(proposal("a")), Ok(proposal("b"))]).len(), 2);
    let page = vec![Ok(proposal("b")), Ok(proposal("c")), Ok(proposal("d"))];
    assert_eq!(keys(&sieve.sift(NOW, page)), ["c"]);
    assert_eq!(sieve.refused()["too-many"], 1);
    assert_eq!(sieve.refused()["repeated"], 1);
}

#[test]
fn the_most_urgent_go_first_and_equals_as_they_were_proposed() {
    let urgent = |key, priority| Ok(Proposal { priority, ..proposal(key) });
    let page = vec![urgent("a", 0), urgent("b", 5), urgent("c", 0), urgent("d", 5)];
    assert_eq!(keys(&sieve(9).sift(NOW, page)), ["b", "d", "a", "c"]);
}
