//! Constrained max-min fairness: how much of a fleet each of several parties is due.
//!
//! A party can use some groups of slots and not others. The level of a set of parties is the number
//! of slots that they can reach for each unit of their weights. The set with the lowest level is
//! the bottleneck: its parties are due just that, and the others share the rest in the same way. So
//! nobody could be given more without taking it from a party that has no more for its weight.

use std::collections::VecDeque;

/// A party: the groups that it can use, as bits, and its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    pub(crate) reach: u64,
    pub(crate) weight: i64,
}

/// A group of slots: the bits of the parties' reaches that contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) bits: u64,
    pub(crate) slots: i64,
}

impl Group {
    fn is_in(&self, reach: u64) -> bool {
        self.bits & reach != 0
    }
}

/// Every set of so few parties is looked at: that takes less than a flow.
const FEW_MAX: usize = 5;

/// The level of each party, as slots and the weight that shares them.
pub(crate) fn levels(parties: &[Party], groups: &[Group]) -> Vec<(i64, i64)> {
    let mut levels = vec![(0, 1); parties.len()];
    let mut left: Vec<usize> = (0..parties.len()).collect();
    let mut groups = groups.to_vec();
    while !left.is_empty() {
        let (bottleneck, level) = if left.len() <= FEW_MAX {
            bottleneck_of_few(parties, &left, &groups)
        } else {
            bottleneck(parties, &left, &groups)
        };
        let reach = bottleneck.iter().fold(0, |reach, at| reach | parties[*at].reach);
        for at in &bottleneck {
            levels[*at] = level;
        }
        left.retain(|at| !bottleneck.contains(at));
        groups.retain(|group| !group.is_in(reach));
    }
    levels
}

/// The parts of `slots` where each party gets at least its minimum: parties whose part is less get
/// their minimums, and the others share the rest in proportion to their parts.
pub(crate) fn with_minimums(parts: &[i128], minimums: &[i128], slots: i128) -> Vec<i128> {
    let mut has_minimum = vec![false; parts.len()];
    loop {
        let is_free = |at: &usize| !has_minimum[*at];
        let weight: i128 = (0..parts.len()).filter(is_free).map(|at| parts[at]).sum();
        let given: i128 = (0..parts.len()).filter(|at| !is_free(at)).map(|at| minimums[at]).sum();
        let left = (slots - given).max(0);
        let is_below = |at: &usize| parts[*at] * left < minimums[*at] * weight;
        let below: Vec<usize> = (0..parts.len()).filter(is_free).filter(is_below).collect();
        if below.is_empty() {
            let part = |at: usize| {
                if has_minimum[at] { minimums[at] * weight.max(1) } else { parts[at] * left }
            };
            return (0..parts.len()).map(part).collect();
        }
        for at in below {
            has_minimum[at] = true;
        }
    }
}

/// The same as [`bottleneck`], by looking at every set of the parties.
fn bottleneck_of_few(
    parties: &[Party],
    left: &[usize],
    groups: &[Group],
) -> (Vec<usize>, (i64, i64)) {
    let is_in = |set: u32, at: usize| set >> at & 1 == 1;
    let members = |set: u32| left.iter().enumerate().filter(move |(at, _)| is_in(set, *at));
    let level = |set: u32| {
        let own = members(set).map(|(_, at)| &parties[*at]);
        let (reach, weight) = own.fold((0, 0), |sum, own| (sum.0 | own.reach, sum.1 + own.weight));
        let reached = groups.iter().filter(|group| group.is_in(reach));
        (reached.map(|group| group.slots).sum::<i64>(), weight.max(1))
    };
    let is_lower = |one: (i64, i64), other: (i64, i64)| {
        i128::from(one.0) * i128::from(other.1) < i128::from(other.0) * i128::from(one.1)
    };
    let (mut lowest, mut of) = (level(1), 1);
    for set in 2..1 << left.len() {
        let own = level(set);
        if is_lower(own, lowest) {
            (lowest, of) = (own, set);
        }
    }
    (members(of).map(|(_, at)| *at).collect(), lowest)
}

/// The parties with the lowest level, and that level.
fn bottleneck(parties: &[Party], left: &[usize], groups: &[Group]) -> (Vec<usize>, (i64, i64)) {
    let mut tight = left.to_vec();
    loop {
        let reach = tight.iter().fold(0, |reach, at| reach | parties[*at].reach);
        let reached = groups.iter().filter(|group| group.is_in(reach));
        let slots: i64 = reached.map(|group| group.slots).sum();
        let weight: i64 = tight.iter().map(|at| parties[*at].weight).sum();
        let weight = weight.max(1);
        let tighter = squeezed(parties, &tight, groups, (slots, weight));
        if tighter.is_empty() || tighter.len() == tight.len() {
            return (tight, (slots, weight));
        }
        tight = tighter;
    }
}

/// The parties that cannot all have this level; none if all can.
///
/// By the cut of a flow: from a source to each party what it is due, to each group that it can use,
/// to a sink what the group has.
fn squeezed(
    parties: &[Party],
    tight: &[usize],
    groups: &[Group],
    (slots, weight): (i64, i64),
) -> Vec<usize> {
    let n_parties = tight.len();
    let mut due: Vec<i128> =
        tight.iter().map(|at| i128::from(parties[*at].weight) * i128::from(slots)).collect();
    let mut room: Vec<i128> =
        groups.iter().map(|group| i128::from(group.slots) * i128::from(weight)).collect();
    let mut flow = vec![vec![0_i128; groups.len()]; n_parties];
    loop {
        // The shortest way from a party with something due to a group with room.
        let mut from: Vec<Option<usize>> = vec![None; n_parties + groups.len()];
        let mut next: VecDeque<usize> = (0..n_parties).filter(|at| due[*at] > 0).collect();
        let roots: Vec<usize> = next.iter().copied().collect();
        for root in &roots {
            from[*root] = Some(*root);
        }
        let mut end = None;
        while let Some(node) = next.pop_front() {
            if node < n_parties {
                let reach = parties[tight[node]].reach;
                for (at, group) in groups.iter().enumerate() {
                    if group.is_in(reach) && from[n_parties + at].is_none() {
                        from[n_parties + at] = Some(node);
                        next.push_back(n_parties + at);
                    }
                }
            } else if room[node - n_parties] > 0 {
                end = Some(node);
                break;
            } else {
                for party in 0..n_parties {
                    if flow[party][node - n_parties] > 0 && from[party].is_none() {
                        from[party] = Some(node);
                        next.push_back(party);
                    }
                }
            }
        }
        let Some(end) = end else {
            return (0..n_parties).filter(|at| from[*at].is_some()).map(|at| tight[at]).collect();
        };
        // What fits through it.
        let mut way = vec![end];
        while let Some(before) = from[way[way.len() - 1]].filter(|own| *own != way[way.len() - 1]) {
            way.push(before);
        }
        way.reverse();
        let mut amount = due[way[0]].min(room[end - n_parties]);
        for pair in way.windows(2) {
            if pair[0] >= n_parties {
                amount = amount.min(flow[pair[1]][pair[0] - n_parties]);
            }
        }
        for pair in way.windows(2) {
            if pair[0] < n_parties {
                flow[pair[0]][pair[1] - n_parties] += amount;
            } else {
                flow[pair[1]][pair[0] - n_parties] -= amount;
            }
        }
        due[way[0]] -= amount;
        room[end - n_parties] -= amount;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn party(reach: u64, weight: i64) -> Party {
        Party { reach, weight }
    }

    fn group(bits: u64, slots: i64) -> Group {
        Group { bits, slots }
    }

    #[test]
    fn parties_that_can_use_all_share_by_weight() {
        let levels = levels(&[party(1, 3), party(1, 1)], &[group(1, 8)]);
        assert_eq!(levels, [(8, 4), (8, 4)]);
    }

    #[test]
    fn a_party_with_slots_of_its_own_leaves_the_common_ones_to_the_others() {
        // Two share ten slots; a third can use these and ten more.
        let parties = [party(0b01, 1), party(0b11, 1), party(0b01, 1)];
        let groups = [group(0b01, 10), group(0b10, 10)];
        assert_eq!(levels(&parties, &groups), [(10, 2), (10, 1), (10, 2)]);
    }

    #[test]
    fn a_party_takes_of_both_groups_until_levels_are_equal() {
        let parties = [party(0b01, 1), party(0b11, 1)];
        let groups = [group(0b01, 4), group(0b10, 2)];
        assert_eq!(levels(&parties, &groups), [(6, 2), (6, 2)]);
    }

    #[test]
    fn parties_below_their_minimums_get_those_and_the_others_share_the_rest() {
        assert_eq!(with_minimums(&[3, 1], &[0, 0], 8), [24, 8], "in proportion to 3 and 1");
        // Of ten slots, five are paid for: the others have 2.5 each.
        assert_eq!(with_minimums(&[1, 1, 1], &[5, 0, 0], 10), [10, 5, 5]);
        assert_eq!(with_minimums(&[1, 1], &[3, 0], 8), [8, 8], "a minimum below the part");
        assert_eq!(with_minimums(&[1, 1], &[1, 0], 1), [1, 0], "nothing is left to share");
        assert_eq!(with_minimums(&[1, 1], &[4, 6], 8), [4, 6], "more is paid for than there is");
    }

    proptest! {
        /// The lowest level is that of the worst set of parties, found by trying all of them.
        #[test]
        fn the_lowest_level_is_that_of_the_tightest_set(
            parties in proptest::collection::vec((1..32_u64, 1..6_i64), 1..7),
            groups in proptest::collection::vec((1..32_u64, 1..20_i64), 1..7),
        ) {
            let parties: Vec<Party> =
                parties.into_iter().map(|(reach, weight)| party(reach, weight)).collect();
            let groups: Vec<Group> =
                groups.into_iter().map(|(bits, slots)| group(bits, slots)).collect();
            let found = levels(&parties, &groups);
            let slots_of = |reach: u64| -> i64 {
                groups.iter().filter(|group| group.is_in(reach)).map(|group| group.slots).sum()
            };
            let tightest = (1..1_usize << parties.len()).map(|set| {
                let own = (0..parties.len()).filter(|at| set >> at & 1 == 1);
                let own: Vec<&Party> = own.map(|at| &parties[at]).collect();
                let reach = own.iter().fold(0, |reach, party| reach | party.reach);
                (slots_of(reach), own.iter().map(|party| party.weight).sum::<i64>())
            });
            let lower = |one: (i64, i64), two: (i64, i64)| {
                if two.0 * one.1 < one.0 * two.1 { two } else { one }
            };
            let tightest = tightest.reduce(lower).expect("there is a set");
            let lowest = found.iter().copied().reduce(lower).expect("there is a party");
            prop_assert_eq!(lowest.0 * tightest.1, tightest.0 * lowest.1);
            // All that can be reached is given out.
            let all = slots_of(parties.iter().fold(0, |reach, party| reach | party.reach));
            let float = |number: i64| f64::from(i32::try_from(number).unwrap());
            let given = found.iter().zip(&parties);
            let given = given.map(|((slots, weight), party)| {
                float(*slots * party.weight) / float(*weight)
            });
            let given: f64 = given.sum();
            prop_assert!((given - float(all)).abs() < 1e-6);
        }
    }
}
