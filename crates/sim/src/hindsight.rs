//! How long jobs that are alike run on average, those to come and the job itself among them.
//!
//! It shows what it is worth to tell jobs apart in some ways, had their means been known from the
//! start. It is no bound on what a history can give: one that follows changes may do better.

use std::collections::BTreeMap;

use model::Millis;

use crate::workload::{Job, Workload};

/// What jobs are alike in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alike {
    /// By their places in [`WAYS`].
    is_asked: [bool; N_WAYS],
}

const N_WAYS: usize = 6;
/// The ways in which jobs are alike, the widest first.
const WAYS: [&str; N_WAYS] = ["type", "tenant", "claim", "key", "inputs", "slots"];
/// Fewer jobs are no group, for they would be known one by one: what tells them apart from a wider
/// one does not count.
const GROUP_MIN: i64 = 5;

impl Alike {
    /// `type+key` for jobs of one type and key; no word for all jobs.
    pub fn parse(text: &str) -> Option<Self> {
        let mut is_asked = [false; N_WAYS];
        for word in text.split('+').filter(|word| !word.is_empty()) {
            is_asked[WAYS.iter().position(|way| *way == word)?] = true;
        }
        Some(Self { is_asked })
    }

    /// A group of jobs, as told apart by the first `n_ways` ways.
    fn group(self, job: &Job, n_ways: usize) -> Group {
        let place = |place: usize| u64::try_from(place).ok();
        let all = [
            place(job.fit),
            place(job.tenant),
            job.requested.map(|Millis(ms)| ms.unsigned_abs()),
            job.history_key.and_then(place),
            job.label.and_then(place),
            Some(u64::from(job.slots)),
        ];
        let mut group = Group { n_ways, ways: [None; N_WAYS] };
        for at in (0..n_ways).filter(|at| self.is_asked[*at]) {
            group.ways[at] = all[at];
        }
        group
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    n_ways: usize,
    ways: [Option<u64>; N_WAYS],
}

/// All groups of a workload, with the sum of their lengths and the number of their jobs.
pub(crate) struct Hindsight {
    alike: Alike,
    groups: BTreeMap<Group, (i64, i64)>,
}

impl Hindsight {
    pub(crate) fn new(workload: &Workload, alike: Alike) -> Self {
        let mut groups: BTreeMap<Group, (i64, i64)> = BTreeMap::new();
        for job in &workload.jobs {
            for n_ways in 0..=N_WAYS {
                let (sum, count) = groups.entry(alike.group(job, n_ways)).or_default();
                *sum = sum.saturating_add(job.duration.0);
                *count += 1;
            }
        }
        Self { alike, groups }
    }

    /// The mean of the narrowest group that the job is in.
    pub(crate) fn estimate(&self, job: &Job) -> Option<Millis> {
        let groups = (0..=N_WAYS).rev().map(|n_ways| self.alike.group(job, n_ways));
        let mut known = groups.filter_map(|group| Some((group.n_ways, self.groups.get(&group)?)));
        let large = known.find(|(n_ways, (_, count))| *n_ways == 0 || *count >= GROUP_MIN);
        large.map(|(_, (sum, count))| Millis(sum / count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf;
    use crate::workload::Bad;

    /// Jobs of users, of so many seconds.
    fn workload(jobs: &[(u32, u32)]) -> Workload {
        let line = |(at, (user, run)): (usize, &(u32, u32))| {
            format!("{at} {at} 0 {run} 1 -1 -1 1 9000 -1 1 {user} 1 -1 -1 -1 -1 -1\n")
        };
        let text: String = jobs.iter().enumerate().map(line).collect();
        let rows = swf::rows(&text, swf::Reading::Plain, &mut Bad::default());
        Workload::new(&rows, &[], Bad::default()).expect("it is well formed")
    }

    #[test]
    fn groups_are_known_in_hindsight_unless_they_are_too_small() {
        let mut jobs = vec![(1, 10), (1, 10), (1, 20), (1, 30), (1, 30)];
        jobs.push((2, 320));
        let workload = workload(&jobs);
        let estimates = |text| {
            let alike = Alike::parse(text).expect("it is known");
            let hindsight = Hindsight::new(&workload, alike);
            [0, 5].map(|at| hindsight.estimate(&workload.jobs[at]).map(|Millis(ms)| ms / 1_000))
        };
        assert_eq!(estimates("key"), [Some(20), Some(70)], "one job is no group");
        assert_eq!(estimates("type"), [Some(70), Some(70)]);
        assert_eq!(estimates(""), [Some(70), Some(70)]);
        assert_eq!(Alike::parse("type+colour"), None);
    }
}
