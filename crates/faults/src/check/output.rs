//! What attempts say is kept while they are under way, and nothing of anybody else. All of it, but
//! for what was on its way when something went wrong: output is sent once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Facts, Found, runs};
use crate::{Attempt, History, Piece};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let known = runs::known(facts);
    let mut kept: BTreeMap<(u64, u32), Vec<&Piece>> = BTreeMap::new();
    for piece in &facts.history.output {
        let token = (piece.job, piece.attempt);
        kept.entry(token).or_default().push(piece);
        let ended_ms = known.get(&token).and_then(|attempt| attempt.ended_ms);
        if let Some(ended_ms) = ended_ms.filter(|ended_ms| *ended_ms < piece.at_ms) {
            let (job, number, at_ms) = (piece.job, piece.attempt, piece.at_ms);
            let what = format!("attempt {number} of job {job} ended at {ended_ms}, ")
                + &format!("and output of it was taken at {at_ms}");
            found.add("late-output", what);
        }
    }
    let said = said(facts.history, &known);
    for ((job, number), pieces) in &mut kept {
        let said = said.get(&(*job, *number)).map_or("", String::as_str);
        if let Some(odd) = odd(pieces, said) {
            let what = format!("attempt {number} of job {job} has {odd:?} in its output");
            found.add("output-not-said", what);
        }
    }
    for missing in missing(facts.history) {
        let Some(attempt) = known.get(&missing) else { continue };
        if !is_stormy(facts.history, attempt) {
            let (job, number) = missing;
            let what = format!("some of what attempt {number} of job {job} said is missing");
            found.add("output-lost", what);
        }
    }
    notes(facts, found);
}

/// Attempts that told their end, and of whose output some is missing.
pub fn missing(history: &History) -> Vec<(u64, u32)> {
    let known: BTreeMap<(u64, u32), &Attempt> =
        history.attempts.iter().map(|one| ((one.job, one.number), one)).collect();
    let mut kept: BTreeMap<(u64, u32), usize> = BTreeMap::new();
    for piece in &history.output {
        *kept.entry((piece.job, piece.attempt)).or_default() += piece.text.len();
    }
    let ran = runs::runs(&history.marks);
    let was_told = |token: &(u64, u32)| {
        ran.get(token).is_some_and(|run| run.was_told(known.get(token).copied()))
    };
    let said = said(history, &known).into_iter();
    said.filter(|(token, text)| kept.get(token).copied().unwrap_or(0) < text.len())
        .map(|(token, _)| token)
        .filter(was_told)
        .collect()
}

/// All that each attempt said, as its worker wrote it down.
fn said(history: &History, known: &runs::Known<'_>) -> BTreeMap<(u64, u32), String> {
    let mut said: BTreeMap<(u64, u32), (u32, String)> = BTreeMap::new();
    for mark in history.marks.iter().filter(|mark| mark.what == "line") {
        let token = (mark.job, mark.attempt);
        let (n, text) = said.entry(token).or_default();
        *n += 1;
        if let Some(attempt) = known.get(&token) {
            let (job, number, worker) = (mark.job, mark.attempt, &attempt.worker);
            let _ = writeln!(text, "{job} {number} {worker} {n}");
        }
    }
    said.into_iter().map(|(token, (_, text))| (token, text)).collect()
}

/// The first piece that was not said there, or is there twice.
fn odd<'a>(pieces: &mut [&'a Piece], said: &str) -> Option<&'a str> {
    pieces.sort_by_key(|piece| piece.position);
    let mut end = 0;
    for piece in pieces {
        let position = usize::try_from(piece.position).unwrap_or(usize::MAX);
        let rest = said.get(position..).filter(|_| position >= end);
        if !rest.is_some_and(|rest| rest.starts_with(&piece.text)) {
            return Some(&piece.text);
        }
        end = position + piece.text.len();
    }
    None
}

/// Whether something went wrong while the attempt was under way.
fn is_stormy(history: &History, attempt: &Attempt) -> bool {
    let until_ms = attempt.ended_ms.unwrap_or(i64::MAX);
    let mut storms = history.storms.iter();
    storms.any(|(from_ms, to_ms)| *from_ms <= until_ms && attempt.claimed_ms <= *to_ms)
}

/// Only the attempt that is under way says how far it is.
fn notes(facts: &Facts<'_>, found: &mut Found) {
    for note in &facts.history.notes {
        let (job, number, text) = (note.job, note.attempt, &note.text);
        let worker = note.worker.as_deref().unwrap_or("nobody");
        if !text.starts_with(&format!("{job} {number} {worker} ")) {
            let what = format!("attempt {number} of job {job} on {worker} is at {text:?}");
            found.add("stray-progress", what);
        }
    }
}
