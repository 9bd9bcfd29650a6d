//! Limits that hold across schedulers. The usage of each limit is one row, which a claim locks.
//!
//! **Invariant:** the usage of a limit, with the charges of its window, never exceeds the limit.
//! The claim's transaction reads, compares and raises it under the lock of its row. The end's
//! transaction lowers it, and adds the charge.
//!
//! **Invariant:** rows are locked in the order of their names, so that no two transactions
//! deadlock.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::claim::claim_on;
use super::desk::{Sheet, Stage};
use super::fault::Fault;
use super::spent::{self, charged};
use crate::{Claim, Claimed, Limit};

/// Claims of which some have limits.
pub(super) struct Claiming {
    pub(super) claims: Vec<Claim>,
}

/// Names and amounts, as stored with an attempt. `None` for an attempt without limits.
pub(super) fn charges(limits: &[Limit]) -> Result<Option<String>, serde_json::Error> {
    if limits.is_empty() {
        return Ok(None);
    }
    let charges: Vec<(&str, i64)> =
        limits.iter().map(|limit| (limit.name.as_str(), limit.amount)).collect();
    serde_json::to_string(&charges).map(Some)
}

impl Stage for Claiming {
    type Answer = Vec<Claimed>;

    async fn run<'a>(&'a self, sheet: &'a Sheet<'a>) -> Result<Vec<Claimed>, Fault> {
        let limits = self.claims.iter().flat_map(|claim| &claim.limits);
        spent::prepare(sheet, limits.filter_map(|limit| limit.spent.as_ref())).await?;
        let mut in_use = self.lock(sheet).await?;
        let mut raised: BTreeMap<&str, i64> = BTreeMap::new();
        let mut answers: Vec<Option<Claimed>> = Vec::with_capacity(self.claims.len());
        let mut fitting = Vec::new();
        for claim in &self.claims {
            let over = claim.limits.iter().find(|limit| {
                let used = in_use.get(limit.name.as_str()).copied().unwrap_or(0);
                used.saturating_add(limit.amount) > limit.max
            });
            if let Some(limit) = over {
                answers.push(Some(Claimed::Refused(limit.name.clone())));
                continue;
            }
            for limit in &claim.limits {
                let used = in_use.entry(&limit.name).or_default();
                *used = used.saturating_add(limit.amount);
            }
            answers.push(None);
            fitting.push(claim.clone());
        }
        let mut claimed =
            claim_on(sheet.transaction, (sheet.desk, sheet.now), &fitting).await?.into_iter();
        for (claim, answer) in self.claims.iter().zip(&mut answers) {
            if answer.is_some() {
                continue;
            }
            let one = claimed.next().unwrap_or(Claimed::Lost(None));
            if matches!(one, Claimed::Won(_)) {
                for limit in &claim.limits {
                    *raised.entry(&limit.name).or_default() += limit.amount;
                }
            }
            *answer = Some(one);
        }
        change(sheet, &raised).await?;
        Ok(answers.into_iter().flatten().collect())
    }
}

const MAKE: &str = "INSERT INTO holdings (name, held) SELECT u.name, 0 \
    FROM unnest($1::text[]) AS u(name) ON CONFLICT DO NOTHING";
pub(super) const LOCK: &str = "SELECT h.name, h.held FROM holdings h WHERE h.name = ANY($1) \
    ORDER BY h.name COLLATE \"C\" FOR UPDATE";

impl Claiming {
    /// Locks the usage of every limit, and adds the charges.
    async fn lock(&self, sheet: &Sheet<'_>) -> Result<HashMap<&str, i64>, Fault> {
        let limits = || self.claims.iter().flat_map(|claim| &claim.limits);
        let names: BTreeSet<&str> = limits().map(|limit| limit.name.as_str()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let statement = sheet.transaction.prepare_cached(MAKE).await?;
        sheet.transaction.execute(&statement, &[&names]).await?;
        let statement = sheet.transaction.prepare_cached(LOCK).await?;
        let mut held: HashMap<String, i64> = HashMap::new();
        for row in sheet.transaction.query(&statement, &[&names]).await? {
            held.insert(row.try_get(0)?, row.try_get(1)?);
        }
        // An unused row may have been deleted meanwhile.
        if held.len() != names.len() {
            return Err(Fault::Conflict);
        }
        let mut in_use: HashMap<&str, i64> =
            names.iter().map(|name| (*name, held.get(*name).copied().unwrap_or(0))).collect();
        let mut spent: BTreeSet<&str> = BTreeSet::new();
        for limit in limits() {
            let Some(of) = &limit.spent else { continue };
            if spent.insert(&limit.name) {
                let used = in_use.entry(&limit.name).or_default();
                *used = used.saturating_add(charged(sheet, of).await?);
            }
        }
        Ok(in_use)
    }
}

/// The condition `BETWEEN` a name and itself locks rows in the order of the list.
pub(super) const CHANGE: &str = "UPDATE holdings h SET held = greatest(h.held + u.amount, 0) \
    FROM unnest($1::text[], $2::bigint[]) AS u(name, amount) \
    WHERE h.name BETWEEN u.name AND u.name";

/// Raises or lowers usage.
async fn change(sheet: &Sheet<'_>, by: &BTreeMap<&str, i64>) -> Result<(), Fault> {
    if by.is_empty() {
        return Ok(());
    }
    let (names, amounts): (Vec<&str>, Vec<i64>) = by.iter().map(|(name, by)| (*name, *by)).unzip();
    let statement = sheet.transaction.prepare_cached(CHANGE).await?;
    sheet.transaction.execute(&statement, &[&names, &amounts]).await?;
    Ok(())
}

/// Releases the usage of ended attempts. Each text is the stored usage of one attempt.
pub(super) async fn release(sheet: &Sheet<'_>, charges: &[&String]) -> Result<(), Fault> {
    let mut read: Vec<(String, i64)> = Vec::new();
    for text in charges {
        read.extend(serde_json::from_str::<Vec<(String, i64)>>(text)?);
    }
    let mut by: BTreeMap<&str, i64> = BTreeMap::new();
    for (name, amount) in &read {
        *by.entry(name).or_default() -= amount;
    }
    change(sheet, &by).await
}
