//! Acknowledgements to clients are true.

use std::collections::BTreeMap;

use super::{Facts, Found};
use crate::{Key, Op, Outcome, Said};

pub(super) fn check(facts: &Facts<'_>, found: &mut Found) {
    let mut by_key: BTreeMap<(&str, &str), Vec<&Said>> = BTreeMap::new();
    let named = facts.history.said.iter().filter(|said| !said.key.is_empty());
    for said in named.filter(|said| said.op == Op::Submit) {
        let tenant = said.asked.first().map_or("", |asked| asked.tenant.as_str());
        by_key.entry((tenant, &said.key)).or_default().push(said);
    }
    exist(facts, found);
    once(facts, found);
    let mut kept: BTreeMap<(&str, &str), Vec<&Key>> = BTreeMap::new();
    for key in &facts.history.keys {
        kept.entry((&key.tenant, &key.key)).or_default().push(key);
    }
    for ((tenant, key), said) in &by_key {
        same(key, kept.get(&(*tenant, *key)).map_or(&[], Vec::as_slice), said, found);
    }
    for said in &facts.history.said {
        if said.op == Op::Conflict && said.outcome == Outcome::Ok {
            let key = &said.key;
            found.add("key-conflict", format!("key {key} was answered for another body"));
        }
    }
}

/// Every acknowledged job exists with its specification. A job with a dedupe key may stand for a
/// different submission.
fn exist(facts: &Facts<'_>, found: &mut Found) {
    for said in &facts.history.said {
        if said.op != Op::Submit || said.outcome != Outcome::Ok {
            continue;
        }
        for (place, id) in said.ids.iter().enumerate() {
            let (client, key) = (said.client, &said.key);
            let Some(job) = facts.jobs.get(id) else {
                found.add("lost-ack", format!("job {id} (client {client}, key {key}) is gone"));
                continue;
            };
            // All jobs of an array have one specification.
            let asked = said.asked.get(if said.asked.len() == 1 { 0 } else { place });
            let terms =
                asked.and_then(|asked| asked.terms.as_ref()).filter(|_| job.dedupe.is_none());
            if terms.is_some_and(|terms| Some(terms) != job.terms.as_ref()) {
                let (is, ought) = (&job.terms, terms);
                found.add("other-terms", format!("job {id} is {is:?}, and was to be {ought:?}"));
            }
        }
    }
}

/// A submission without a key exists once if it was accepted, and never if it was rejected.
fn once(facts: &Facts<'_>, found: &mut Found) {
    let mut by_label: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for job in facts.jobs.values() {
        if let Some(label) = &job.label {
            by_label.entry(label).or_default().push(job.id);
        }
    }
    let submitted = facts.history.said.iter().filter(|said| said.op == Op::Submit);
    for said in submitted.filter(|said| said.key.is_empty()) {
        let label = said.asked.first().map_or("", |asked| asked.label.as_str());
        let Some(kept) = by_label.get(label) else { continue };
        let is_right = match said.outcome {
            Outcome::Ok => *kept == said.ids,
            Outcome::Fail => false,
            Outcome::Unknown => kept.len() == said.asked.len(),
        };
        if !is_right {
            let (told, outcome) = (&said.ids, said.outcome);
            let what = format!("{label} was {outcome:?} with {told:?}, and is {kept:?}");
            found.add("not-once", what);
        }
    }
}

/// A key returns the same jobs at each use, and none if no submission with it was accepted.
fn same(key: &str, kept: &[&Key], said: &[&Said], found: &mut Found) {
    if kept.len() > 1 {
        found.add("key-twice", format!("key {key} is kept {} times", kept.len()));
    }
    let answers = said.iter().filter(|said| said.outcome == Outcome::Ok);
    for answer in answers.clone() {
        if kept.first().is_some_and(|kept| kept.ids != answer.ids) || kept.is_empty() {
            let ids: Vec<&Vec<u64>> = kept.iter().map(|kept| &kept.ids).collect();
            let told = &answer.ids;
            found.add("key-differs", format!("key {key} was told {told:?} and is {ids:?}"));
        }
    }
    let is_refused = said.iter().all(|said| said.outcome == Outcome::Fail);
    if is_refused && let Some(kept) = kept.first() {
        found.add("fail-kept", format!("key {key} was refused, and is kept as {:?}", kept.ids));
    }
}
