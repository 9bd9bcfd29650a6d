//! `maitre simulate --frontier FIELD=V1,V2,…`: one replay for each value of a field of the policy.

use serde_json::{Map, Value, json};
use sim::report::{self, Picture, Point};

use super::run::{Called, Outcome};
use super::wrong;
use crate::print::{self, Failure};

/// A field of a policy, and the values that it gets in turn.
pub(super) struct Frontier {
    /// The path in JSON, such as `fair_slack_ms`.
    field: String,
    /// As written, and as the number in JSON.
    values: Vec<(String, i64)>,
    base: String,
}

const FORM: &str = "a number of the policy and its values: `fair_slack=0s,10s,60s` or \
                    `fair_slack_ms=30000,60000`";
/// The name of the run with the policy as it is.
const DEFAULT: &str = "default";

impl Frontier {
    /// Reads `FIELD=V1,V2,…` for a policy. With units of time, `_ms` is added to the name of the
    /// field if it does not end so, and values are in milliseconds.
    pub(super) fn parse(text: &str, policy: &str) -> Result<Self, Failure> {
        let refuse = || wrong(format!("`--frontier` is `{text}`"), Some(FORM.to_owned()));
        let (field, values) = text.split_once('=').ok_or_else(refuse)?;
        let mut has_units = false;
        let mut value = |text: &str| {
            let number = text.parse().ok().or_else(|| {
                has_units = true;
                let length = humantime::parse_duration(text).ok()?;
                i64::try_from(length.as_millis()).ok()
            });
            number.map(|number| (text.to_owned(), number)).ok_or_else(refuse)
        };
        let values: Result<Vec<(String, i64)>, Failure> =
            values.split(',').map(&mut value).collect();
        let values = values?;
        let suffix = if has_units && !field.ends_with("_ms") { "_ms" } else { "" };
        Ok(Self { field: format!("{field}{suffix}"), values, base: policy.to_owned() })
    }

    /// The policy as it is, then with each value.
    pub(super) fn policies(&self) -> Result<Vec<Called>, Failure> {
        let mut all = vec![Called::named(DEFAULT, &self.base)?];
        for (name, value) in &self.values {
            let called = Called::named(name, &self.with(*value)?.to_string());
            all.push(called?);
        }
        Ok(all)
    }

    /// The policy as JSON, with another value of the field.
    fn with(&self, value: i64) -> Result<Value, Failure> {
        let text = self.base.split_once('=').filter(|(_, own)| own.starts_with('{'));
        let text = text.map_or(self.base.as_str(), |(_, own)| own);
        let mut policy = if text.starts_with('{') {
            serde_json::from_str(text).map_err(|error| wrong(format!("`{text}`: {error}"), None))?
        } else {
            json!({ "preset": text })
        };
        let mut at = &mut policy;
        for key in self.field.split('.') {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            at = &mut at[key];
        }
        *at = json!(value);
        Ok(policy)
    }

    /// A table of the values.
    pub(super) fn table(&self, outcomes: &[Outcome]) -> String {
        let (header, rows) = self.cells(outcomes);
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        let source = outcomes.first().and_then(|own| own.estimates.as_deref());
        let source = source.map_or_else(String::new, |own| format!("\nEstimates from: {own}.\n"));
        print::tables(&header, &rows) + &source
    }

    /// The titles of columns, and a row for each value.
    pub(super) fn cells(&self, outcomes: &[Outcome]) -> (Vec<String>, Vec<Vec<String>>) {
        let titles = ["mean s", "p99", "longest", "slowdown", "share err"].map(str::to_owned);
        let header = std::iter::once(self.field.clone()).chain(titles).collect();
        let row = |outcome: &Outcome| {
            let all = &outcome.measures.all;
            let [p99, max] = [all.p99, all.max].map(seconds);
            let figures = [all.mean_ms / 1_000.0, p99, max, all.slowdown];
            let share = outcome.measures.share.as_ref();
            let share = share.map_or("-".to_owned(), |own| format!("{:.2} %", own.error * 100.0));
            let figures = figures.map(|figure| format!("{figure:.2}"));
            std::iter::once(outcome.policy.clone()).chain(figures).chain([share]).collect()
        };
        (header, outcomes.iter().map(row).collect())
    }

    /// Mean wait against longest wait and, if tenants competed, against the error of shares.
    pub(super) fn pictures(&self, outcomes: &[Outcome]) -> Vec<Picture> {
        let point = |outcome: &Outcome, x: f64| Point {
            name: outcome.policy.clone(),
            at: (x, outcome.measures.all.mean_ms / 1_000.0),
            is_default: outcome.policy == DEFAULT,
        };
        let waits = outcomes.iter().map(|own| point(own, seconds(own.measures.all.max)));
        let waits: Vec<Point> = waits.collect();
        let mean = "mean wait (seconds)";
        let mut pictures = vec![report::frontier(
            "frontier",
            &self.field,
            ("longest wait (seconds)", mean),
            &waits,
        )];
        let shares = outcomes
            .iter()
            .filter_map(|own| Some(point(own, own.measures.share.as_ref()?.error * 100.0)));
        let shares: Vec<Point> = shares.collect();
        if !shares.is_empty() {
            let axes = ("share error (% of the due of the worst tenant)", mean);
            pictures.push(report::frontier("frontier-shares", &self.field, axes, &shares));
        }
        pictures
    }
}

fn seconds(length: model::Millis) -> f64 {
    model::Fixed::thousandths(length.0).to_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(text: &str, policy: &str) -> String {
        let frontier = Frontier::parse(text, policy).expect("it is well formed");
        frontier.with(frontier.values[0].1).expect("it is an object").to_string()
    }

    #[test]
    fn field_of_policy_is_data() {
        let slack = with("fair_slack=10s,1h", "balanced");
        assert_eq!(slack, r#"{"fair_slack_ms":10000,"preset":"balanced"}"#);
        let own = r#"mine={"preset":"balanced","preemption":{"enabled":true}}"#;
        let delay = with("preemption.delay_ms=5", own);
        let expected = r#"{"preemption":{"delay_ms":5,"enabled":true},"preset":"balanced"}"#;
        assert_eq!(delay, expected);
        assert!(Frontier::parse("fair_slack", "balanced").is_err());
        assert!(Frontier::parse("fair_slack=much", "balanced").is_err());
    }
}
