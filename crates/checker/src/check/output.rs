//! The store has only output that an attempt wrote itself and that arrived while it was live. Once
//! the attempt reported its end, the store has all of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Facts, Found, runs};
use crate::{History, Piece};

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
    let ran = runs::runs(&facts.history.marks);
    for (token, text) in &said {
        let n_kept: usize = kept.get(token).into_iter().flatten().map(|one| one.text.len()).sum();
        let was_told = ran.get(token).is_some_and(|run| run.was_told(known.get(token).copied()));
        if was_told && n_kept < text.len() {
            let (job, number) = token;
            let what = format!("some of what attempt {number} of job {job} said is missing");
            found.add("output-lost", what);
        }
    }
    notes(facts, found);
}

/// The complete output of each attempt, from its own log.
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

/// The first output chunk that the attempt did not write there, or that is stored twice.
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

/// Only the live attempt reports progress.
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
