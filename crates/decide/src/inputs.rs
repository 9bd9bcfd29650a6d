//! What one worker lacks of the inputs of waiting jobs, those of which it lacks least first.
//!
//! The order is by *raw* bytes, so that changing averages reorder nothing, and it is the order in
//! memory: a search reads from the front. A fact takes 20 bytes, 4 of them to find it by its job.
//! New facts wait in a small map until there are enough of them to be worth sorting in.

use std::collections::BTreeMap;

use model::Inputs;

use crate::table::JobIx;

#[derive(Clone, Debug, Default)]
pub(crate) struct InputFacts {
    /// Fewest bytes first.
    facts: Vec<Fact>,
    /// Places in `facts`, sorted by job.
    by_job: Vec<u32>,
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
        self.find(job).map(|at| self.facts[at].inputs())
    }

    fn find(&self, job: JobIx) -> Option<usize> {
        // A job that came later than all of these, as most do that are asked about when they come.
        if self.by_job.last().is_none_or(|at| self.facts[index(*at)].job < job) {
            return None;
        }
        let at = self.by_job.binary_search_by_key(&job, |at| self.facts[index(*at)].job).ok()?;
        Some(index(self.by_job[at]))
    }

    /// Takes in what the worker lacks, and returns what it lacked as it said before.
    pub(crate) fn set(&mut self, job: JobIx, inputs: Inputs) -> Option<Inputs> {
        let before = match self.fresh.insert(job, inputs) {
            None => self.find(job).map(|at| self.facts[at].inputs()),
            before => before,
        };
        self.sort_in_if_above(PART_WHEN_TOLD);
        before
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
        let mut gone = vec![false; self.facts.len()];
        for at in self.fresh.keys().filter_map(|job| self.find(*job)) {
            gone[at] = true;
        }
        self.merge(&gone);
    }

    /// Merges the fresh facts into both orders, without the facts that are `gone`: a walk along
    /// each order instead of a sort.
    fn merge(&mut self, gone: &[bool]) {
        let mut fresh: Vec<Fact> =
            std::mem::take(&mut self.fresh).into_iter().map(Fact::new).collect();
        fresh.sort_unstable_by_key(Fact::order);
        let mut facts = Vec::with_capacity(self.facts.len() + fresh.len());
        let mut moved_to = vec![0; self.facts.len()];
        let mut added = Vec::with_capacity(fresh.len());
        let mut fresh = fresh.into_iter().peekable();
        for (at, old) in self.facts.iter().enumerate() {
            while let Some(new) = fresh.next_if(|new| new.order() < old.order()) {
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
        let stays = self.by_job.iter().filter(|at| !gone[index(**at)]);
        let stays: Vec<u32> = stays.map(|at| moved_to[index(*at)]).collect();
        let job = |at: &u32| facts[index(*at)].job;
        self.by_job = merged(stays, added, job);
        self.facts = facts;
    }

    /// Facts that are in no order yet.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = (JobIx, Inputs)> {
        self.fresh.iter().map(|(job, inputs)| (*job, *inputs))
    }

    /// The others, fewest missing bytes first, those not known last. What was told anew since is
    /// among them, too, as it was told before.
    pub(crate) fn by_bytes(&self) -> impl Iterator<Item = (JobIx, Inputs)> {
        self.facts.iter().map(|fact| (fact.job, fact.inputs()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobIx, Inputs)> {
        let old = self.facts.iter().filter(|fact| !self.fresh.contains_key(&fact.job));
        let old = old.map(|fact| (fact.job, fact.inputs()));
        old.chain(self.fresh.iter().map(|(job, inputs)| (*job, *inputs)))
    }

    /// How many facts, and how many bytes they take; of fresh ones, about.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.iter().count(), self.bytes())
    }

    fn bytes(&self) -> usize {
        self.facts.capacity() * size_of::<Fact>()
            + self.by_job.capacity() * size_of::<u32>()
            + self.fresh.len() * 2 * size_of::<(JobIx, Inputs)>()
    }
}

/// Two sorted lists as one; `new` is sorted here.
fn merged<K: Ord>(old: Vec<u32>, mut new: Vec<u32>, key: impl Fn(&u32) -> K) -> Vec<u32> {
    new.sort_unstable_by_key(&key);
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

    const fn order(&self) -> (u64, JobIx) {
        (self.bytes, self.job)
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
    fn a_fact_takes_20_bytes_and_the_newest_counts() {
        let mut facts = InputFacts::default();
        for at in 0..10_000_u32 {
            let job = JobIx::new(usize::try_from(at).unwrap());
            facts.set(job, inputs(at, u64::from(10_000 - at)));
        }
        facts.retain(|_| true);
        assert_eq!(facts.bytes(), 20 * 10_000);
        assert_eq!(facts.by_bytes().next(), Some((JobIx::new(9_999), inputs(9_999, 1))));
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
        let order: Vec<JobIx> = facts.by_bytes().map(|(job, _)| job).collect();
        assert_eq!(order, [JobIx::new(1), JobIx::new(0)]);
    }
}
