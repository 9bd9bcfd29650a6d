//! Suggests a known name for a mistyped one.

/// Longer names get no suggestion.
const BYTES_MAX: usize = 64;

/// The most similar of `known` names, if one is similar enough.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.is_empty() || name.len() > BYTES_MAX {
        return None;
    }
    let name = simplified(name);
    let distance_max = (name.len() / 3).max(1);
    known
        .into_iter()
        .map(|known| (distance(&name, &simplified(known)), known))
        .filter(|(distance, _)| *distance <= distance_max)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// The hint for an unknown name: the similar one, or a list of all.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there is {}", listed(known)),
    }
}

/// Names in backticks, as in "`a`, `b` and `c`".
pub(crate) fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// `maxJobs`, `max-jobs` and `max_jobs` are equal.
fn simplified(name: &str) -> Vec<char> {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The number of letters to change, add, leave out or swap with their neighbour. A missing start or
/// end counts once: `created` is close to `created_ms`.
fn distance(one: &[char], two: &[char]) -> usize {
    let (short, long) = if one.len() < two.len() { (one, two) } else { (two, one) };
    if short.len() >= 3 && short != long && (long.starts_with(short) || long.ends_with(short)) {
        return 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=two.len()).collect();
    for (row, letter) in one.iter().enumerate() {
        let mut here = vec![row + 1];
        for (column, other) in two.iter().enumerate() {
            let changed = above[column] + usize::from(letter != other);
            let mut least = changed.min(above[column + 1] + 1).min(here[column] + 1);
            let is_swapped =
                row > 0 && column > 0 && *letter == two[column - 1] && one[row - 1] == *other;
            if is_swapped {
                least = least.min(before[column - 1] + 1);
            }
            here.push(least);
        }
        before = std::mem::replace(&mut above, here);
    }
    above[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[&str] = &["id", "priority", "created_ms", "ready_ms", "slots", "slots_free"];

    #[test]
    fn typo_gets_a_suggestion() {
        for (typo, meant) in [
            ("priorty", "priority"),
            ("prioirty", "priority"),
            ("Priority", "priority"),
            ("created", "created_ms"),
            ("slotsFree", "slots_free"),
            ("slot", "slots"),
            ("di", "id"),
        ] {
            assert_eq!(nearest(typo, FIELDS.iter().copied()), Some(meant), "{typo}");
        }
    }

    #[test]
    fn different_word_gets_no_suggestion() {
        for other in ["", "colour", "x", "zz", &"priority".repeat(100)] {
            assert_eq!(nearest(other, FIELDS.iter().copied()), None, "{other}");
        }
    }

    #[test]
    fn names_are_listed_as_in_a_sentence() {
        assert_eq!(listed(&["a"]), "`a`");
        assert_eq!(listed(&["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
