//! The workers: their offers differ, and at least two workers offer each attribute.

use std::collections::{BTreeMap, BTreeSet};

use checker::Offer;

use crate::load::{FLEETING, HEAVY, RARE, TYPES};

/// The pool that is small enough to be filled.
pub(crate) const TIGHT: &str = "tight";
/// The pool of all other workers.
pub(crate) const WIDE: &str = "default";

/// The offer of a worker: its pool, slots, types, attributes and amounts.
type Row = (
    &'static str,
    u32,
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
    &'static [(&'static str, u64)],
);

const CREW: [Row; 6] = [
    (WIDE, 8, &TYPES, &[("os", "linux"), ("arch", "arm"), ("arch", "x86")], &[("ram", 16)]),
    (WIDE, 4, &["free", RARE.0, FLEETING], &[("os", "linux"), ("arch", "arm")], &[("ram", 6)]),
    (WIDE, 6, &["free", RARE.0, HEAVY], &[("os", "mac"), ("arch", "x86")], &[]),
    (WIDE, 4, &["free", FLEETING], &[("os", "mac")], &[("ram", 5), ("gpu", 1)]),
    (TIGHT, 3, &TYPES, &[("os", "linux"), ("arch", "x86")], &[("gpu", 2)]),
    (TIGHT, 3, &TYPES, &[("os", "linux")], &[("ram", 4)]),
];

/// The offer of the worker with this index.
pub(crate) fn offer(place: usize) -> Offer {
    let (pool, slots, types, has, amounts) = CREW[place % CREW.len()];
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (key, value) in has {
        values.entry((*key).to_owned()).or_default().insert((*value).to_owned());
    }
    Offer {
        pool: pool.to_owned(),
        types: types.iter().map(|kind| (*kind).to_owned()).collect(),
        has: values,
        slots,
        amounts: amounts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
    }
}
