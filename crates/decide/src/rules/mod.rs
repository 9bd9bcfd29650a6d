//! Every rule, one file each. The names are permanent: they are stored with decisions.

pub(crate) mod missing_paths;
pub(crate) mod missing_bytes;
pub(crate) mod dependents;
pub(crate) mod wait;
mod rescore_wait;
pub(crate) mod light;
mod reserve_fetch;
mod resource_fit;
mod saturation;
mod prefer_local;
mod org_share;
mod network;
mod disk;
mod order;
mod seat;

pub(crate) use rescore_wait::ROUNDS_MAX;

use model::Fixed;
use model::policy::{Policy, Preset};

use crate::rule::Sheet;

/// All rules, in the order they are listed to people.
pub const ALL: &[&Sheet] = &[
    &seat::RANK,
    &seat::FREE,
    &seat::HINT,
    &missing_paths::SHEET,
    &missing_bytes::SHEET,
    &dependents::SHEET,
    &wait::SHEET,
    &rescore_wait::SHEET,
    &light::SHEET,
    &reserve_fetch::SHEET,
    &resource_fit::SHEET,
    &saturation::SHEET,
    &prefer_local::SHEET,
    &org_share::SHEET,
    &network::SHEET,
    &disk::SHEET,
    &order::PRIORITY,
    &order::AGE,
    &order::RARITY,
    &order::ON_DEMAND,
    &order::LENGTH,
    &seat::SPECIALIST,
    &seat::HEADROOM,
    &seat::LOAD,
];

/// The rules that count under `policy`, each with its weight.
pub(crate) fn of(policy: &Policy) -> impl Iterator<Item = (&'static Sheet, Fixed)> {
    ALL.iter().filter_map(|sheet| {
        let weight = policy.rules.get(&sheet.rule).copied()?;
        (weight != Fixed::ZERO).then_some((*sheet, weight))
    })
}

/// The presets that use a rule unless told otherwise.
pub fn presets_with(sheet: &Sheet) -> Vec<Preset> {
    Preset::ALL.into_iter().filter(|preset| preset.rules().contains(&sheet.rule)).collect()
}
