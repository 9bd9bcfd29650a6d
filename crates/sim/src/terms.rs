//! What jobs of a file need and workers of a file have, said in the same words.

use model::job::Needs;
use model::{Name, Worker};

/// A word as a key and a value: `model=T4`, or a bare word for something that one has or has not.
pub(crate) fn key_and_value(word: &str) -> (Name, Name) {
    let (key, value) = word.split_once('=').unwrap_or((word, word));
    (Name::new(key), Name::new(value))
}

/// Terms joined by `&`, alternatives inside a term by `|`. A need is called after its whole term,
/// so that several terms about one thing stay several needs.
pub(crate) fn needs(text: &str) -> Needs {
    let terms = text.split('&').filter(|term| !term.is_empty());
    terms.map(|term| (Name::new(term), words(term).map(Name::new).collect())).collect()
}

/// Lets a worker have, under the name of a term, those words of the term that it has anyway. What
/// was not called after its values is no term, and nothing is said about it: a history has needs
/// with keys of their own.
pub(crate) fn answer(worker: &mut Worker, name: &Name, values: &[Name]) {
    let term = name.to_string();
    if !words(&term).map(Name::new).eq(values.iter().cloned()) {
        return;
    }
    let mut had: Vec<Name> = words(&term)
        .filter(|word| {
            let (key, value) = key_and_value(word);
            worker.has.get(&key).is_some_and(|own| own.contains(&value))
        })
        .map(Name::new)
        .collect();
    if !had.is_empty() {
        let own = worker.has.entry(name.clone()).or_default();
        own.append(&mut had);
        own.sort_unstable();
        own.dedup();
    }
}

fn words(term: &str) -> impl Iterator<Item = &str> {
    term.split('|').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Fleet;
    use crate::seating;
    use crate::workload::Fit;

    /// Who of the workers, each a word or several, fits who needs this.
    fn fitting(text: &str, workers: &[&str]) -> Vec<usize> {
        let lines = workers.iter().enumerate().map(|(id, has)| format!("{id},{has}\n"));
        let lines: String = lines.collect();
        let mut fleet: Fleet = seating::parse("f", &format!("worker,has\n{lines}")).unwrap();
        let fit = Fit { kind: None, needs: needs(text) };
        fleet.answer(std::slice::from_ref(&fit));
        (0..workers.len()).filter(|at| fleet.fits(&fleet.workers[*at], &fit)).collect()
    }

    #[test]
    fn any_alternative_of_a_term_will_do() {
        let workers = ["A100", "V100+nvme", "T4+nvme", ""];
        assert_eq!(fitting("V100|A100", &workers), [0, 1]);
        assert_eq!(fitting("A100|V100|V100", &workers), [0, 1]);
    }

    #[test]
    fn all_terms_are_needed() {
        let workers = ["A100", "V100+nvme", "T4+nvme"];
        assert_eq!(fitting("V100|A100&nvme", &workers), [1]);
        assert_eq!(fitting("nvme&V100|T4&A100|T4", &workers), [2]);
        assert_eq!(fitting("nvme", &workers), [1, 2]);
        assert_eq!(fitting("", &workers), [0, 1, 2]);
    }

    #[test]
    fn keys_with_values_are_words_too() {
        let workers = ["model=T4", "model=V100+model=T4", "model", "T4"];
        assert_eq!(fitting("model=T4", &workers), [0, 1]);
        assert_eq!(fitting("model=T4&model=V100", &workers), [1]);
        assert_eq!(fitting("model=V100|T4", &workers), [1, 3]);
    }

    #[test]
    fn a_need_with_a_key_of_its_own_is_no_term() {
        let mut fleet = seating::parse("f", "worker,has\n0,os=linux\n1,linux\n").unwrap();
        let needs = Needs::from([(Name::new("os"), vec![Name::new("linux")])]);
        let fit = Fit { kind: None, needs };
        let before = fleet.clone();
        fleet.answer(std::slice::from_ref(&fit));
        assert_eq!(fleet, before);
        assert!(fleet.fits(&fleet.workers[0], &fit) && !fleet.fits(&fleet.workers[1], &fit));
    }
}
