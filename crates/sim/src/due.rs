//! What tenants are due at a moment: weighted max-min of what they ask for.
//!
//! The due is fluid: it may be a part of a slot, and a job of several slots counts as its slots.
//! Jobs count by the workers that can run them. For each set `A` of kinds of jobs, the tenants get
//! at most the slots that run any of them, `N(A)`, and what they ask for of other kinds. So all
//! tenants rise together, by weight, until the sum over tenants of `max(0, due - other(A))` is
//! `N(A)` for a set. The tenants that get something of that set stay there. The others rise on.

use std::collections::BTreeMap;

use crate::fleet::Fleet;
use crate::number::float;
use crate::workload::Workload;

/// Beyond so many kinds of jobs or tenants, all slots count as alike: there would be too many sets.
const KINDS_MAX: usize = 6;
const TENANTS_MAX: usize = 64;
/// Halvings in the search for a level: more than the digits of a picture.
const STEPS: u32 = 40;

/// Who can run what.
pub(crate) struct Kinds {
    /// The kind of the jobs of each fit of the workload.
    pub(crate) of_fit: Vec<usize>,
    /// How many there are.
    pub(crate) count: usize,
    /// Slots that run any kind of a set, by the set's bits.
    room: Vec<f64>,
    /// Whether kinds are told apart.
    pub(crate) are_apart: bool,
}

impl Kinds {
    pub(crate) fn new(workload: &Workload, fleet: &Fleet) -> Self {
        let workers: Vec<Vec<bool>> = workload
            .fits
            .iter()
            .map(|fit| fleet.workers.iter().map(|worker| fleet.fits(worker, fit)).collect())
            .collect();
        let mut kinds: BTreeMap<&Vec<bool>, usize> = BTreeMap::new();
        for own in &workers {
            let next = kinds.len();
            kinds.entry(own).or_insert(next);
        }
        if kinds.len() > KINDS_MAX || workload.tenants.len() > TENANTS_MAX {
            let all = float(fleet.slots().into());
            let of_fit = vec![0; workload.fits.len()];
            return Self { of_fit, count: 1, room: vec![0.0, all], are_apart: false };
        }
        let room = (0_usize..1 << kinds.len()).map(|set| {
            let is_in = |kind: usize| set >> kind & 1 == 1;
            let runs = |worker: usize| kinds.iter().any(|(own, kind)| is_in(*kind) && own[worker]);
            let workers = fleet.workers.iter().enumerate().filter(|(worker, _)| runs(*worker));
            workers.map(|(_, worker)| f64::from(worker.slots)).sum()
        });
        Self {
            room: room.collect(),
            of_fit: workers.iter().map(|own| kinds[own]).collect(),
            count: kinds.len(),
            are_apart: true,
        }
    }

    /// The slots that each tenant is due. `asks` has the slots that each one asks for, by kind.
    pub(crate) fn due(&self, weights: &[f64], asks: &[Vec<f64>]) -> Vec<f64> {
        let mut due: Vec<Option<f64>> =
            asks.iter().map(|own| own.iter().all(|asked| *asked <= 0.0).then_some(0.0)).collect();
        // What each tenant asks for outside of each set.
        let sets = 0..self.room.len();
        let other = |own: &Vec<f64>, set: usize| -> f64 {
            let kinds = own.iter().enumerate().filter(|(kind, _)| set >> kind & 1 == 0);
            kinds.map(|(_, asked)| asked).sum()
        };
        let others: Vec<Vec<f64>> =
            asks.iter().map(|own| sets.clone().map(|set| other(own, set)).collect()).collect();
        while due.iter().any(Option::is_none) {
            let at = |level: f64, tenant: usize| due[tenant].unwrap_or(level * weights[tenant]);
            let over = |level: f64, set: usize| {
                let tenants = 0..asks.len();
                let taken = tenants.map(|own| (at(level, own) - others[own][set]).max(0.0));
                taken.sum::<f64>() - self.room[set]
            };
            let is_over = |level: f64| sets.clone().any(|set| over(level, set) > 0.0);
            let (mut least, mut most) = (0.0, self.room[self.room.len() - 1] + 1.0);
            for _ in 0..STEPS {
                let middle = f64::midpoint(least, most);
                if is_over(middle) {
                    most = middle;
                } else {
                    least = middle;
                }
            }
            let tight: Vec<usize> = sets.clone().filter(|set| over(most, *set) > 0.0).collect();
            let stays = |tenant: &usize| {
                due[*tenant].is_none()
                    && tight.iter().any(|set| most * weights[*tenant] > others[*tenant][*set])
            };
            let stay: Vec<usize> = (0..asks.len()).filter(stays).collect();
            let all = if stay.is_empty() { (0..asks.len()).collect() } else { stay };
            for tenant in all {
                let _ = due[tenant].get_or_insert(least * weights[tenant]);
            }
        }
        due.into_iter().map(Option::unwrap_or_default).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(due: &[f64], expected: &[f64]) {
        let is_near = due.iter().zip(expected).all(|(one, two)| (one - two).abs() < 1e-6);
        assert!(is_near, "{due:?} instead of {expected:?}");
    }

    fn alike(slots: f64) -> Kinds {
        Kinds { of_fit: Vec::new(), count: 1, room: vec![0.0, slots], are_apart: true }
    }

    #[test]
    fn what_one_tenant_does_not_ask_for_the_others_are_due_by_weight() {
        let asks = [vec![100.0], vec![100.0], vec![2.0]];
        near(&alike(8.0).due(&[1.0, 1.0, 2.0], &asks), &[3.0, 3.0, 2.0]);
        near(&alike(8.0).due(&[3.0, 1.0, 2.0], &asks), &[4.5, 1.5, 2.0]);
        near(
            &alike(8.0).due(&[1.0, 1.0, 1.0], &[vec![1.0], vec![0.0], vec![2.0]]),
            &[1.0, 0.0, 2.0],
        );
    }

    #[test]
    fn tenant_that_can_use_few_slots_is_due_no_more() {
        // Two kinds: the second runs on 2 of 10 slots, the first on the other 8.
        let kinds = Kinds {
            of_fit: Vec::new(),
            count: 2,
            room: vec![0.0, 8.0, 2.0, 10.0],
            are_apart: true,
        };
        near(&kinds.due(&[1.0, 1.0], &[vec![9.0, 0.0], vec![0.0, 9.0]]), &[8.0, 2.0]);
        // The first can use the slots of the second, too: the second still has at most its two.
        let kinds = Kinds { room: vec![0.0, 10.0, 2.0, 10.0], ..kinds };
        near(&kinds.due(&[1.0, 1.0], &[vec![99.0, 0.0], vec![0.0, 99.0]]), &[8.0, 2.0]);
        near(&kinds.due(&[9.0, 1.0], &[vec![99.0, 0.0], vec![0.0, 99.0]]), &[9.0, 1.0]);
    }
}
