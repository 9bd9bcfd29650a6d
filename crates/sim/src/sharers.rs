//! What tenants are due and may have, from a file or from flags.

use std::collections::BTreeMap;

use model::{Fixed, TenantId};
use serde::Deserialize;

use crate::error::Error;
use crate::workload::{Quota, Sharer, Workload};

/// What is said about a tenant; what is left out stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Due {
    /// Its due, in proportion to the others' weights.
    pub weight: Option<u32>,
    /// Slots that are its own.
    pub min: Option<u32>,
    /// The most slots.
    pub max: Option<u32>,
    /// The most slot-seconds within the window.
    pub budget: Option<f64>,
}

/// What is said about tenants, by name.
pub type Dues = BTreeMap<String, Due>;

/// `[tenants.NAME]` with `weight`, `min`, `max` and `budget`.
pub fn parse(name: &str, text: &str) -> Result<Dues, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        tenants: Dues,
    }
    let file: Result<File, _> = toml::from_str(text);
    file.map(|file| file.tenants).map_err(|error| Error::form(name, error.to_string()))
}

/// `tenant=min:max`; either may be left out.
pub fn parse_quota(text: &str) -> Option<(String, Due)> {
    let (tenant, slots) = text.rsplit_once('=')?;
    let (min, max) = slots.split_once(':')?;
    let number = |text: &str| match text {
        "" => Some(None),
        _ => text.parse().ok().map(Some),
    };
    let due = Due { min: number(min)?, max: number(max)?, ..Due::default() };
    (due.min.is_some() || due.max.is_some()).then(|| (tenant.to_owned(), due))
}

/// `tenant=SLOT_SECONDS`.
pub fn parse_budget(text: &str) -> Option<(String, Due)> {
    let (tenant, budget) = text.rsplit_once('=')?;
    let budget = budget.parse().ok().filter(|budget| *budget > 0.0)?;
    Some((tenant.to_owned(), Due { budget: Some(budget), ..Due::default() }))
}

impl Workload {
    /// Takes in what is said about a tenant that the workload knows.
    pub fn set_due(&mut self, name: &str, due: &Due) -> Result<(), Error> {
        let id = TenantId::new(name);
        let Ok(ix) = self.tenants.binary_search_by(|tenant| tenant.id.cmp(&id)) else {
            let known: Vec<String> =
                self.tenants.iter().take(5).map(|tenant| tenant.id.to_string()).collect();
            let known = known.join(", ");
            let problem = format!("the workload has no tenant `{name}`; it has {known}, …");
            return Err(Error::Unfit(problem));
        };
        self.tenants[ix].set(due)
    }
}

impl Sharer {
    fn set(&mut self, due: &Due) -> Result<(), Error> {
        let refuse = |problem: String| Error::Unfit(format!("tenant `{}`: {problem}", self.id));
        let quota =
            Quota { min: due.min.unwrap_or(self.quota.min), max: due.max.or(self.quota.max) };
        if quota.max.is_some_and(|max| max < quota.min || max == 0) {
            let Quota { min, max } = quota;
            let max = max.unwrap_or(0);
            return Err(refuse(format!("`max` is {max}; it is at least 1 and `min`, {min}")));
        }
        let weight = due.weight.unwrap_or(self.weight);
        if weight == 0 {
            return Err(refuse("`weight` is 0; it is at least 1".to_owned()));
        }
        if let Some(budget) = due.budget {
            let fixed = Fixed::from_f64(budget).filter(|budget| *budget > Fixed::ZERO);
            let problem = || refuse(format!("`budget` is {budget}; it is more than 0"));
            self.budget = Some(fixed.ok_or_else(problem)?);
        }
        (self.quota, self.weight) = (quota, weight);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_and_budgets_are_read_from_flags() {
        let due = |min, max| Due { min, max, ..Due::default() };
        assert_eq!(parse_quota("a=2:5"), Some(("a".to_owned(), due(Some(2), Some(5)))));
        assert_eq!(parse_quota("a=:5"), Some(("a".to_owned(), due(None, Some(5)))));
        assert_eq!(
            (parse_quota("a=:"), parse_quota("a=5"), parse_quota("a=x:1")),
            (None, None, None)
        );
        assert_eq!(parse_budget("a=b=9").map(|(name, _)| name), Some("a=b".to_owned()));
        assert_eq!(parse_budget("a=0"), None);
    }

    #[test]
    fn tenants_are_read_from_toml() {
        let dues = parse("t", "[tenants.a]\nweight = 3\nmin = 1\n").unwrap();
        assert_eq!((dues["a"].weight, dues["a"].min, dues["a"].max), (Some(3), Some(1), None));
        assert!(parse("t", "[tenants.a]\ncolor = 3\n").is_err());
    }
}
