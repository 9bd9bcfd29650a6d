//! The rules of every run. Most rules hold for any history, and the checker of real processes has
//! them. The rules here need exact clocks.

use std::collections::{BTreeMap, BTreeSet};

use checker::{Attempt, History, Mark, Op, Outcome, Said, Scope, Violation};
use model::Ask;

use crate::history::{Left, label, number};
use crate::notes::Notes;
use crate::site::NARROW_MAX;

/// All violations. Empty if there are none.
pub(crate) fn check(left: &Left, notes: &Notes) -> Vec<Violation> {
    let (history, found) = without_ghosts(&left.history);
    let mut found = [found, checker::check(&history, Scope::Everything)].concat();
    let attempts: BTreeMap<(u64, u32), &Attempt> =
        left.history.attempts.iter().map(|one| ((one.job, one.number), one)).collect();
    runs(&attempts, &notes.marks, &mut found);
    words(&attempts, &notes.marks, &mut found);
    acks(&attempts, notes, &mut found);
    finals(left, notes, &mut found);
    keys(left, &mut found);
    shared(left, &mut found);
    found
}

/// The history without runs of jobs that the store never had. A submission without a key and
/// without an answer may leave such runs: once each, with numbers that no other job has.
fn without_ghosts(history: &History) -> (History, Vec<Violation>) {
    let ghosts = ghosts(history);
    let mut found = Vec::new();
    for ((job, number), n_starts) in ghosts.iter().filter(|(_, n_starts)| **n_starts > 1) {
        let what = format!("attempt {number} of job {job}, a ghost, ran {n_starts} times");
        add(&mut found, "token-twice", what);
    }
    let n_open = history.said.iter().filter(|said| is_open(history, said));
    let n_open = n_open.map(|said| said.asked.len()).sum();
    if ghosts.len() > n_open {
        let n_ghosts = ghosts.len();
        add(&mut found, "unknown-run", format!("{n_ghosts} jobs ran unknown, of at most {n_open}"));
    }
    let is_ghost = |mark: &&Mark| ghosts.contains_key(&(mark.job, mark.attempt));
    let marks = history.marks.iter().filter(|mark| !is_ghost(mark)).cloned().collect();
    (History { marks, ..history.clone() }, found)
}

/// Attempts of jobs that the store never had, with their numbers of runs.
pub(crate) fn ghosts(history: &History) -> BTreeMap<(u64, u32), usize> {
    let known: BTreeSet<u64> = history.jobs.iter().map(|job| job.id).collect();
    let mut ghosts = BTreeMap::new();
    for mark in history.marks.iter().filter(|mark| !known.contains(&mark.job)) {
        *ghosts.entry((mark.job, mark.attempt)).or_insert(0) += usize::from(mark.what == "start");
    }
    ghosts
}

/// Whether a submission was sent once, and its outcome is unknown.
fn is_open(history: &History, said: &Said) -> bool {
    let n_asked = history.said.iter().filter(|other| other.key == said.key).count();
    said.op == Op::Submit && said.outcome == Outcome::Unknown && n_asked == 1
}

fn add(found: &mut Vec<Violation>, rule: &'static str, what: String) {
    found.push(Violation { rule, what });
}

/// No process runs with a token after the store gave a newer one, or took its attempt for lost.
fn runs(attempts: &BTreeMap<(u64, u32), &Attempt>, marks: &[Mark], found: &mut Vec<Violation>) {
    let mut spans: BTreeMap<(u64, u32), (i64, i64)> = BTreeMap::new();
    for mark in marks {
        let span = spans.entry((mark.job, mark.attempt)).or_insert((mark.at_ms, mark.at_ms));
        span.1 = span.1.max(mark.at_ms);
    }
    for (((job, number), (_, last_ms)), ((next_job, next), (first_ms, _))) in
        spans.iter().zip(spans.iter().skip(1))
    {
        if job == next_job && last_ms > first_ms {
            let late_ms = last_ms - first_ms;
            let what =
                format!("attempt {number} of job {job} ran {late_ms} ms into attempt {next}");
            add(found, "old-token", what);
        }
    }
    for ((job, number), (_, last_ms)) in &spans {
        let ended_ms = attempts.get(&(*job, *number)).filter(|one| one.ending == "lost");
        let late_ms =
            ended_ms.and_then(|one| one.ended_ms).map_or(0, |ended_ms| last_ms - ended_ms);
        if late_ms > 0 {
            let what = format!("attempt {number} of job {job} ran {late_ms} ms after it was lost");
            add(found, "after-lease", what);
        }
    }
}

/// The reported ending of an attempt is the one that its worker recorded.
fn words(attempts: &BTreeMap<(u64, u32), &Attempt>, marks: &[Mark], found: &mut Vec<Violation>) {
    let said: BTreeSet<(u64, u32, &str)> =
        marks.iter().map(|mark| (mark.job, mark.attempt, mark.what.as_str())).collect();
    for ((job, number), attempt) in attempts {
        let word = match attempt.ending.as_str() {
            "succeeded" => "end",
            "transient" | "permanent" => "fail",
            _ => continue,
        };
        if !said.contains(&(*job, *number, word)) {
            let ending = &attempt.ending;
            let what = format!("attempt {number} of job {job} is {ending}, and never said so");
            add(found, "no-word", what);
        }
    }
}

/// An acknowledged result is stored unchanged, and a stale one is not stored.
fn acks(attempts: &BTreeMap<(u64, u32), &Attempt>, notes: &Notes, found: &mut Vec<Violation>) {
    for ack in &notes.acks {
        let kept = attempts.get(&(ack.job, ack.attempt));
        let is_kept =
            kept.is_some_and(|one| one.worker == ack.worker && one.ending == ack.ending.name());
        if is_kept == ack.is_stale {
            let (job, number, ending) = (ack.job, ack.attempt, ack.ending.name());
            let told = if ack.is_stale { "too late" } else { "kept" };
            let is = kept.map_or("unknown", |one| one.ending.as_str());
            let what = format!("result {ending} of attempt {number} of job {job} was said {told}");
            add(found, "result-differs", format!("{what}, and the attempt is {is}"));
        }
    }
}

/// A final state never changes.
fn finals(left: &Left, notes: &Notes, found: &mut Vec<Violation>) {
    for (job, state) in &notes.finals {
        let record = left.records.iter().find(|record| number(record) == *job);
        if record.is_none_or(|record| record.state != *state) {
            let is = record.map_or("gone", |record| record.state.name());
            let what = format!("job {job} was {}, and is {is}", state.name());
            add(found, "not-final-after-all", what);
        }
    }
}

/// No submission is accepted twice.
fn keys(left: &Left, found: &mut Vec<Violation>) {
    for said in &left.history.said {
        let n_asked = said.asked.len();
        let n_kept = left.records.iter().filter(|record| label(record) == said.key).count();
        if n_asked > 0 && n_kept > n_asked {
            let key = &said.key;
            add(found, "taken-twice", format!("key {key} is for {n_asked} jobs and has {n_kept}"));
            return;
        }
    }
}

/// Exclusive locks have one holder, and the limits of types hold.
fn shared(left: &Left, found: &mut Vec<Violation>) {
    let mut uses: BTreeMap<String, (u32, Vec<(i64, i32)>)> = BTreeMap::new();
    for record in &left.records {
        let mut under = Vec::new();
        if let Some(Ask::Named(name)) = &record.spec.resource {
            under.push((format!("resource {name}"), 1));
        }
        if record.spec.kind.to_string() == "narrow" {
            under.push(("type narrow".to_owned(), NARROW_MAX));
        }
        let attempts = left.history.attempts.iter().filter(|one| one.job == number(record));
        for attempt in attempts {
            for (name, max) in &under {
                let (_, changes) = uses.entry(name.clone()).or_insert((*max, Vec::new()));
                changes.push((attempt.claimed_ms, 1));
                changes.extend(attempt.ended_ms.map(|ended_ms| (ended_ms, -1)));
            }
        }
    }
    for (name, (max, mut changes)) in uses {
        // At equal times, ends come before starts.
        changes.sort_unstable();
        let mut n_held = 0;
        for (at_ms, change) in changes {
            n_held += change;
            if i64::from(n_held) > i64::from(max) {
                add(found, "limit", format!("{name} has {n_held} of {max} at {at_ms}"));
                break;
            }
        }
    }
}
