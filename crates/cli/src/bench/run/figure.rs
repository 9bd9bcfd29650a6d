//! One figure, as it was in every round.

use serde_json::{Map, Number, Value};

/// A figure of every round, by size.
pub(crate) struct Figure {
    sorted: Vec<f64>,
}

impl Figure {
    pub(crate) fn of(seen: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = seen.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    /// The median; of an even number, the middle between the two. Zero of none.
    pub(crate) fn middle(&self) -> f64 {
        let n = self.sorted.len();
        let at = |n: usize| self.sorted.get(n).copied().unwrap_or(0.0);
        f64::midpoint(at(n.saturating_sub(1) / 2), at(n / 2))
    }

    /// The median, and from where to where it was if it was not the same in all rounds.
    pub(crate) fn text(&self, n_decimals: usize) -> String {
        let text = |figure: &f64| format!("{figure:.n_decimals$}");
        let middle = text(&self.middle());
        match (self.sorted.first().map(text), self.sorted.last().map(text)) {
            (Some(least), Some(most)) if least != most => format!("{middle} ({least}..{most})"),
            _ => middle,
        }
    }
}

/// A document of every round, all of one shape, as one with the median of each number.
pub(crate) fn middle(rounds: &[Value]) -> Value {
    let part = |of: &dyn Fn(&Value) -> Option<Value>| {
        middle(&rounds.iter().filter_map(of).collect::<Vec<_>>())
    };
    match rounds.first() {
        Some(Value::Object(first)) => {
            let keys = first.keys().map(|key| (key.clone(), part(&|one| one.get(key).cloned())));
            Value::Object(keys.collect::<Map<_, _>>())
        }
        Some(Value::Array(first)) => {
            Value::Array((0..first.len()).map(|n| part(&|one| one.get(n).cloned())).collect())
        }
        Some(Value::Number(_)) => {
            let middle = Figure::of(rounds.iter().filter_map(Value::as_f64)).middle();
            Number::from_f64(middle).map_or(Value::Null, Value::Number)
        }
        Some(other @ (Value::Null | Value::Bool(_) | Value::String(_))) => other.clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_figure_is_its_median_and_says_how_far_it_varied() {
        for (seen, expected) in [
            (vec![], "0.0"),
            (vec![2.0], "2.0"),
            (vec![2.0, 2.0, 2.01], "2.0"),
            (vec![9.0, 1.0, 2.0], "2.0 (1.0..9.0)"),
            (vec![4.0, 1.0, 2.0, 9.0], "3.0 (1.0..9.0)"),
        ] {
            assert_eq!(Figure::of(seen).text(1), expected);
        }
    }

    #[test]
    fn documents_of_rounds_become_one_of_medians() {
        let round = |n: f64| json!({"a": [{"n": n}, {"n": 2.0 * n}], "none": null, "is": "it"});
        let rounds = [round(3.0), round(1.0), round(2.0)];
        assert_eq!(middle(&rounds), round(2.0));
    }
}
