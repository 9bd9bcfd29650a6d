//! Requirements, worker attributes, amounts and traits.

use std::collections::BTreeMap;

use model::job::{Amounts, Needs};
use model::{Name, Trait, Traits, maxima};

use super::list::{List, Table};
use super::name::{Label, Names};
use super::number::Quantity;
use crate::error::{At as _, Problem};
use crate::nearest::did_you_mean;

/// For each key, one or several values.
pub(crate) type NamesByKey = Table<Label, Names, { maxima::KEYS_MAX }>;
/// Consumable amounts by name.
pub(crate) type AmountsByName = Table<Label, Quantity, { maxima::AMOUNTS_MAX }>;
/// Facts about a job. The limit is above their number, and bounds repetitions.
pub(crate) type TraitNames = List<Label, { maxima::VALUES_MAX }>;

/// Requirements: for each key, one of the values. An empty list of values could never be met.
pub(crate) fn read_needs(given: Option<NamesByKey>) -> Result<Needs, Problem> {
    let needs = read_names(given);
    match needs.iter().find(|(_, values)| values.is_empty()) {
        Some((key, _)) => {
            let problem = Problem::new("is an empty list, which no worker could satisfy")
                .with_hint(format!("name a value, or leave `{key}` out"));
            Err(problem.at(key.to_string())).at("needs")
        }
        None => Ok(needs),
    }
}

/// Worker attributes: for each key, every value. A key without values is dropped.
pub(crate) fn read_has(given: Option<NamesByKey>) -> BTreeMap<Name, Vec<Name>> {
    let mut has = read_names(given);
    has.retain(|_, values| !values.is_empty());
    has
}

fn read_names(given: Option<NamesByKey>) -> BTreeMap<Name, Vec<Name>> {
    let entries = given.into_iter().flat_map(|table| table.0);
    entries.map(|(Label(key), Names(values))| (key, values)).collect()
}

pub(crate) fn write_names(names: &BTreeMap<Name, Vec<Name>>) -> Option<NamesByKey> {
    let entries = names.iter().map(|(key, values)| (Label(key.clone()), Names(values.clone())));
    (!names.is_empty()).then(|| Table(entries.collect()))
}

pub(crate) fn read_amounts(given: Option<AmountsByName>) -> Amounts {
    let entries = given.into_iter().flat_map(|table| table.0);
    entries.map(|(Label(name), Quantity(amount))| (name, amount)).collect()
}

pub(crate) fn write_amounts(amounts: &Amounts) -> Option<AmountsByName> {
    let entries = amounts.iter().map(|(name, amount)| (Label(name.clone()), Quantity(*amount)));
    (!amounts.is_empty()).then(|| Table(entries.collect()))
}

pub(crate) fn read_traits(given: Option<TraitNames>) -> Result<Traits, Problem> {
    let names = given.into_iter().flat_map(|list| list.0).enumerate();
    names.map(|(index, label)| read_trait(&label.to_string()).at(index).at("traits")).collect()
}

fn read_trait(name: &str) -> Result<Trait, Problem> {
    Trait::ALL.into_iter().find(|fact| fact.name() == name).ok_or_else(|| {
        let known = Trait::ALL.map(Trait::name);
        Problem::new(format!("is `{name}`, not a trait")).with_hint(did_you_mean(name, &known))
    })
}

pub(crate) fn write_traits(traits: Traits) -> Option<TraitNames> {
    let names: Vec<Label> = traits.iter().map(|fact| Label(Name::new(fact.name()))).collect();
    (!names.is_empty()).then_some(List(names))
}
