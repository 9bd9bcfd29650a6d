//! What one worker lacks of the inputs of waiting jobs, in the orders that rules ask for.
//!
//! Orders are by *raw* bytes and paths, so that changing averages reorder nothing. A fact takes 24
//! bytes: 16 for itself, 4 in each order. New facts wait in a small map until there are enough of
//! them to be worth sorting in.

use std::collections::BTreeMap;

use model::Inputs;

use crate::table::JobIx;

#[derive(Clone, Debug, Default)]
pub(crate) struct InputFacts {
    /// Sorted by job.
    facts: Vec<Fact>,
    /// Places in `facts`, fewest bytes first.
    by_bytes: Vec<u32>,
    /// Places in `facts`, fewest paths first.
    by_paths: Vec<u32>,
    /// Said since the orders were made; counts before what is in `facts`.
    fresh: BTreeMap<JobIx, Inputs>,
}

#[derive(Clone, Copy, Debug)]
struct Fact {
    job: JobIx,
    paths: u32,
    bytes: u64,
}

/// Stands for "not known", and sorts last, where it belongs: it earns no points.
const PATHS_UNKNOWN: u32 = u32::MAX;
const BYTES_UNKNOWN: u64 = u64::MAX;

/// Fewer fresh facts than this are never worth sorting in.
const FRESH_MIN: usize = 256;
/// When the worker asks, fresh facts are sorted in if they are more than this part of all …
const PART_WHEN_ASKED: usize = 64;
/// … and while it does not ask, only if they are more than this part.
const PART_WHEN_TOLD: usize = 2;

impl InputFacts {
    pub(crate) fn get(&self, job: JobIx) -> Option<Inputs> {
        if let Some(inputs) = self.fresh.get(&job) {
            return Some(*inputs);
        }
        let at = self.facts.binary_search_by_key(&job, |fact| fact.job).ok()?;
        Some(self.facts[at].inputs())
    }

    pub(crate) fn set(&mut self, job: JobIx, inputs: Inputs) {
        self.fresh.insert(job, inputs);
        self.sort_in_if_above(PART_WHEN_TOLD);
    }

    /// Gets ready for a search.
    pub(crate) fn settle(&mut self) {
        self.sort_in_if_above(PART_WHEN_ASKED);
    }

    fn sort_in_if_above(&mut self, part: usize) {
        if self.fresh.len() >= FRESH_MIN.max(self.facts.len() / part) {
            self.sort_in();
        }
    }

    /// Keeps only the facts about jobs that `stays`.
    pub(crate) fn retain(&mut self, stays: impl Fn(JobIx) -> bool) {
        self.fresh.retain(|job, _| stays(*job));
        let gone: Vec<bool> = self.facts.iter().map(|fact| !stays(fact.job)).collect();
        self.merge(&gone);
    }

    fn sort_in(&mut self) {
        let is_told_anew = |fact: &Fact| self.fresh.contains_key(&fact.job);
        let gone: Vec<bool> = self.facts.iter().map(is_told_anew).collect();
        self.merge(&gone);
    }

    /// Merges the fresh facts into all three orders, without the facts that are `gone`: a walk
    /// along each order instead of a sort.
    fn merge(&mut self, gone: &[bool]) {
        let fresh = std::mem::take(&mut self.fresh);
        let mut fresh = fresh.into_iter().map(Fact::new).peekable();
        let mut facts = Vec::with_capacity(self.facts.len() + fresh.len());
        let mut moved_to = vec![0; self.facts.len()];
        let mut added = Vec::with_capacity(fresh.len());
        for (at, old) in self.facts.iter().enumerate() {
            while let Some(new) = fresh.next_if(|new| new.job < old.job) {
                added.push(place(&facts));
                facts.push(new);
            }
            moved_to[at] = place(&facts);
            if !gone[at] {
                facts.push(*old);
            }
        }
        for new in fresh {
            added.push(place(&facts));
            facts.push(new);
        }
        facts.shrink_to_fit();
        let stays = |order: &[u32]| -> Vec<u32> {
            let stays = order.iter().filter(|at| !gone[index(**at)]);
            stays.map(|at| moved_to[index(*at)]).collect()
        };
        let by_bytes = |at: &u32| facts[index(*at)].bytes;
        let by_paths = |at: &u32| facts[index(*at)].paths;
        self.by_bytes = merged(stays(&self.by_bytes), added.clone(), by_bytes);
        self.by_paths = merged(stays(&self.by_paths), added, by_paths);
        self.facts = facts;
    }

    /// Facts that are in no order yet.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = JobIx> {
        self.fresh.keys().copied()
    }

    /// The job with the `place`th fewest missing bytes, and how many those are.
    pub(crate) fn by_bytes(&self, place: usize) -> Option<(JobIx, Option<u64>)> {
        let fact = self.facts[usize::try_from(*self.by_bytes.get(place)?).ok()?];
        Some((fact.job, fact.inputs().missing_bytes))
    }

    /// The job with the `place`th fewest missing paths, and how many those are.
    pub(crate) fn by_paths(&self, place: usize) -> Option<(JobIx, Option<u32>)> {
        let fact = self.facts[usize::try_from(*self.by_paths.get(place)?).ok()?];
        Some((fact.job, fact.inputs().missing_paths))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobIx, Inputs)> {
        let old = self.facts.iter().filter(|fact| !self.fresh.contains_key(&fact.job));
        let old = old.map(|fact| (fact.job, fact.inputs()));
        old.chain(self.fresh.iter().map(|(job, inputs)| (*job, *inputs)))
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.facts.capacity() * size_of::<Fact>()
            + (self.by_bytes.capacity() + self.by_paths.capacity()) * size_of::<u32>()
            + self.fresh.len() * 2 * size_of::<(JobIx, Inputs)>()
    }
}

/// Two sorted lists as one; `new` is sorted here.
fn merged<K: Ord>(old: Vec<u32>, mut new: Vec<u32>, key: impl Fn(&u32) -> K) -> Vec<u32> {
    new.sort_unstable_by_key(|at| (key(at), *at));
    let mut all = Vec::with_capacity(old.len() + new.len());
    let mut new = new.into_iter().peekable();
    for at in old {
        while let Some(new) = new.next_if(|new| key(new) < key(&at)) {
            all.push(new);
        }
        all.push(at);
    }
    all.extend(new);
    all
}

/// Where the next fact will be.
fn place(facts: &[Fact]) -> u32 {
    u32::try_from(facts.len()).expect("there are fewer than 2^32 facts")
}

fn index(at: u32) -> usize {
    usize::try_from(at).expect("a usize holds a u32")
}

impl Fact {
    fn new((job, inputs): (JobIx, Inputs)) -> Self {
        Self {
            job,
            paths: inputs.missing_paths.unwrap_or(PATHS_UNKNOWN),
            bytes: inputs.missing_bytes.unwrap_or(BYTES_UNKNOWN),
        }
    }

    fn inputs(self) -> Inputs {
        Inputs {
            missing_paths: (self.paths != PATHS_UNKNOWN).then_some(self.paths),
            missing_bytes: (self.bytes != BYTES_UNKNOWN).then_some(self.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Ix;

    fn inputs(paths: u32, bytes: u64) -> Inputs {
        Inputs { missing_paths: Some(paths), missing_bytes: Some(bytes) }
    }

    #[test]
    fn a_fact_takes_24_bytes_and_the_newest_counts() {
        let mut facts = InputFacts::default();
        for at in 0..10_000_u32 {
            let job = JobIx::new(usize::try_from(at).unwrap());
            facts.set(job, inputs(at, u64::from(10_000 - at)));
        }
        facts.retain(|_| true);
        assert_eq!(facts.bytes(), 24 * 10_000);
        assert_eq!(facts.by_bytes(0), Some((JobIx::new(9_999), Some(1))));
        assert_eq!(facts.by_paths(0), Some((JobIx::new(0), Some(0))));
        facts.set(JobIx::new(5), inputs(9, 9));
        assert_eq!(facts.get(JobIx::new(5)), Some(inputs(9, 9)));
        facts.retain(|job| job != JobIx::new(5));
        assert_eq!(facts.get(JobIx::new(5)), None);
        assert_eq!(facts.iter().count(), 9_999);
    }

    #[test]
    fn what_is_not_known_sorts_last() {
        let mut facts = InputFacts::default();
        facts.set(JobIx::new(0), Inputs::default());
        facts.set(JobIx::new(1), inputs(7, 7));
        facts.retain(|_| true);
        assert_eq!(facts.by_bytes(1), Some((JobIx::new(0), None)));
        assert_eq!(facts.by_paths(0), Some((JobIx::new(1), Some(7))));
    }
}
