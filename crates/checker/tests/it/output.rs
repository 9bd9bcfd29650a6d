//! Output and progress of attempts.

use checker::{History, Note, Piece};

use crate::sound::{broken, mark};

fn piece(attempt: u32, position: u64, at_ms: i64, text: &str) -> Piece {
    Piece { job: 2, attempt, position, at_ms, text: text.to_owned() }
}

fn note(text: &str) -> Note {
    Note { job: 2, attempt: 2, worker: Some("w1".to_owned()), text: text.to_owned() }
}

/// Each attempt of job 2 wrote two lines. Of the second, which was lost, one is stored.
fn say(history: &mut History) {
    for (attempt, at_ms) in [(1, 1_115), (2, 1_275), (3, 1_415)] {
        for more in 0..2 {
            history.marks.push(mark("line", 2, attempt, at_ms + more));
        }
    }
    history.output = vec![
        piece(1, 0, 1_120, "2 1 w1 1\n2 1 w1 2\n"),
        piece(2, 0, 1_280, "2 2 w1 1\n"),
        piece(3, 9, 1_500, "2 3 w1 2\n"),
        piece(3, 0, 1_420, "2 3 w1 1\n"),
    ];
    history.notes = vec![note("2 2 w1 1")];
}

fn broken_once_said(change: impl FnOnce(&mut History)) -> Vec<&'static str> {
    broken(|history| {
        say(history);
        change(history);
    })
}

#[test]
fn output_of_a_lost_attempt_may_be_missing() {
    assert_eq!(broken_once_said(|_| ()), [""; 0]);
    // Output that was lost with its worker may be missing.
    assert_eq!(broken_once_said(|history| drop(history.output.remove(1))), [""; 0]);
}

#[test]
fn output_that_is_missing_is_found() {
    for place in [0, 2, 3] {
        let lose = |history: &mut History| drop(history.output.remove(place));
        assert_eq!(broken_once_said(lose), ["output-lost"], "{place}");
    }
}

#[test]
fn output_of_a_different_attempt_is_found() {
    let other = |history: &mut History| history.output[1].text = "2 1 w1 1\n".to_owned();
    assert_eq!(broken_once_said(other), ["output-not-said"]);
    let twice = |history: &mut History| history.output.push(piece(3, 18, 1_500, "2 3 w1 2\n"));
    assert_eq!(broken_once_said(twice), ["output-not-said"]);
    let unknown = |history: &mut History| history.output.push(piece(4, 0, 1_500, "2 4 w1 1\n"));
    assert_eq!(broken_once_said(unknown), ["output-not-said"]);
    let shifted = |history: &mut History| history.output[2].position = 8;
    assert_eq!(broken_once_said(shifted), ["output-not-said"]);
}

#[test]
fn output_that_comes_after_its_attempt_is_found() {
    assert_eq!(broken_once_said(|history| history.output[1].at_ms = 1_400), [""; 0]);
    assert_eq!(broken_once_said(|history| history.output[1].at_ms = 1_401), ["late-output"]);
    assert_eq!(broken_once_said(|history| history.output[2].at_ms = 1_501), ["late-output"]);
}

#[test]
fn progress_of_an_attempt_that_is_over_is_found() {
    let other = |text: &'static str| broken_once_said(|history| history.notes.push(note(text)));
    assert_eq!(other("2 2 w1 7"), [""; 0]);
    assert_eq!(other("2 1 w1 1"), ["stray-progress"]);
    assert_eq!(other("2 2 w3 1"), ["stray-progress"]);
    let over = |history: &mut History| history.notes[0].worker = None;
    assert_eq!(broken_once_said(over), ["stray-progress"]);
}
