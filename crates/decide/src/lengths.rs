//! How long a job will run, from how long its like ran.
//!
//! Jobs are alike in narrower and wider ways: with the same inputs, of one tenant and key, of one
//! type. The narrowest in which there were any runs tells. Its guess is the mean of many runs, or
//! of the last few where that was nearer lately: some things change, and some only vary.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};

use model::{Millis, Name, TenantId};

/// What of a job tells how long it runs.
#[derive(Clone, Copy, Debug)]
pub struct Like<'a> {
    /// Its type.
    pub kind: Option<&'a Name>,
    /// Whose it is.
    pub tenant: &'a TenantId,
    /// What its submitter calls jobs like this one; empty if they have no name.
    pub key: &'a str,
    /// What its inputs are called.
    pub inputs: Option<&'a Name>,
    /// How long its submitter said that it may run: who asks for the same again runs the same
    /// again, more or less.
    pub claim: Option<Millis>,
}

/// How long jobs ran, by likeness.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    /// What was learnt about lately …
    young: BTreeMap<Way, Runs>,
    /// … and before that. What is in neither is forgotten.
    old: BTreeMap<Way, Runs>,
}

/// So many likenesses are young; as many again are remembered.
const YOUNG_MAX: usize = 10_000;
/// Runs that the first guess is drawn from …
const RUNS_MAX: usize = 200;
/// … and the second: it follows changes faster.
const LATEST: usize = 5;
/// What a guess was wrong by is forgotten over so many runs.
const MEMORY: i64 = 16;
/// The longest run that counts, about 35 years.
const RAN_MAX: Millis = Millis(1 << 40);

/// The last runs of jobs that are alike.
#[derive(Clone, Debug, Default)]
struct Runs {
    last: VecDeque<i64>,
    sum: i64,
    /// By how much each guess was wrong lately.
    wrong: [i64; 2],
}

impl Lengths {
    /// A job like this ran for so long.
    pub fn learn(&mut self, like: Like<'_>, ran: Millis) {
        for way in like.ways() {
            let runs = self.young.entry(way);
            let runs = runs.or_insert_with(|| self.old.remove(&way).unwrap_or_default());
            runs.add(ran.clamp(Millis::ZERO, RAN_MAX));
        }
        if self.young.len() >= YOUNG_MAX {
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// How long a job like this will run; `None` if nothing like it ever did.
    pub fn predict(&self, like: Like<'_>) -> Option<Millis> {
        let known = |way: Way| self.young.get(&way).or_else(|| self.old.get(&way));
        let guess = like.ways().find_map(known).and_then(Runs::guess)?;
        Some(like.claim.map_or(guess, |claim| nearer(guess, claim)))
    }
}

/// A guess, and a quarter of the way from there to what the submitter said, in logarithms: of those
/// who ask for longer more run longer, whatever the last ones did.
fn nearer(Millis(guess): Millis, Millis(claim): Millis) -> Millis {
    let (guess, claim) = (guess.max(1).unsigned_abs(), claim.max(1).unsigned_abs());
    let half_way = (u128::from(guess) * u128::from(claim)).isqrt();
    let quarter = (u128::from(guess) * half_way).isqrt();
    Millis(i64::try_from(quarter).unwrap_or(i64::MAX))
}

impl Like<'_> {
    /// The ways in which it is like others, the narrowest first.
    fn ways(&self) -> impl Iterator<Item = Way> {
        let Self { kind, tenant, key, inputs, claim } = self;
        let narrow = inputs.filter(|_| !key.is_empty());
        let narrow = narrow.map(|inputs| Way::of(&(kind, "inputs and key", inputs, key)));
        let fed = inputs.map(|inputs| Way::of(&(kind, "inputs", inputs)));
        let own = Way::of(&(kind, "tenant and key", tenant, key, claim));
        // A claim tells more than what all others of its type did.
        let wide = claim.is_none().then(|| Way::of(&(kind, "type")));
        [narrow, fed, Some(own), wide].into_iter().flatten()
    }
}

/// A way in which jobs are alike: a hash of what they have in common. That two ways have the same
/// is not to be expected, and would cost no more than a bad guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way(u64);

impl Way {
    fn of(common: &impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        common.hash(&mut hasher);
        Self(hasher.finish())
    }
}

impl Runs {
    /// The mean of all, and that of the latest.
    fn guesses(&self) -> Option<[i64; 2]> {
        let count = |n: usize| i64::try_from(n).ok().filter(|n| *n > 0);
        let latest = self.last.iter().rev().take(LATEST);
        let (n, n_latest) = (count(self.last.len())?, count(latest.len())?);
        Some([self.sum / n, latest.sum::<i64>() / n_latest])
    }

    /// Of both guesses the one that was nearer lately.
    fn guess(&self) -> Option<Millis> {
        let [all, latest] = self.guesses()?;
        Some(Millis(if self.wrong[0] <= self.wrong[1] { all } else { latest }))
    }

    fn add(&mut self, ran: Millis) {
        let guesses = self.guesses().into_iter().flatten();
        for (wrong, guess) in self.wrong.iter_mut().zip(guesses) {
            *wrong += (guess - ran.0).abs() - *wrong / MEMORY;
        }
        self.last.push_back(ran.0);
        self.sum += ran.0;
        if self.last.len() > RUNS_MAX {
            self.sum -= self.last.pop_front().unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like<'a>(tenant: &'a TenantId, key: &'a str) -> Like<'a> {
        Like { kind: None, tenant, key, inputs: None, claim: None }
    }

    #[test]
    fn nothing_is_predicted_from_nothing() {
        assert_eq!(Lengths::default().predict(like(&TenantId::new("a"), "x")), None);
    }

    #[test]
    fn the_narrowest_likeness_tells() {
        let (a, b) = (TenantId::new("a"), TenantId::new("b"));
        let inputs = Name::new("repo");
        let fed = |like| Like { inputs: Some(&inputs), ..like };
        let mut lengths = Lengths::default();
        lengths.learn(like(&a, "x"), Millis(10));
        lengths.learn(like(&a, "y"), Millis(30));
        lengths.learn(fed(like(&a, "z")), Millis(80));
        assert_eq!(lengths.predict(like(&a, "x")), Some(Millis(10)));
        assert_eq!(lengths.predict(like(&b, "x")), Some(Millis(40)), "the mean of its type");
        assert_eq!(lengths.predict(fed(like(&b, "x"))), Some(Millis(80)));
        let other = Name::new("pdf");
        assert_eq!(lengths.predict(Like { kind: Some(&other), ..like(&a, "x") }), None);
    }

    #[test]
    fn who_claims_another_length_is_not_predicted_by_the_rest_of_its_type() {
        let a = TenantId::new("a");
        let claiming = |s| Like { claim: Some(Millis::from_secs(s)), ..like(&a, "x") };
        let mut lengths = Lengths::default();
        lengths.learn(claiming(16_000), Millis::from_secs(1_000));
        // Sixteen times as long was claimed: a quarter of the way there is twice as long.
        assert_eq!(lengths.predict(claiming(16_000)), Some(Millis::from_secs(2_000)));
        assert_eq!(lengths.predict(claiming(60)), None);
    }

    #[test]
    fn a_guess_follows_what_changes_and_not_what_only_varies() {
        let a = TenantId::new("a");
        let mut lengths = Lengths::default();
        for n in 0..100 {
            lengths.learn(like(&a, "varies"), Millis(if n % 2 == 0 { 100 } else { 300 }));
            lengths.learn(like(&a, "changes"), Millis(if n < 80 { 100 } else { 300 }));
        }
        assert_eq!(lengths.predict(like(&a, "varies")), Some(Millis(200)));
        assert_eq!(lengths.predict(like(&a, "changes")), Some(Millis(300)));
    }

    #[test]
    fn what_was_not_met_for_long_is_forgotten_and_nothing_grows_without_end() {
        let a = TenantId::new("a");
        let mut lengths = Lengths::default();
        lengths.learn(like(&a, "first"), Millis(7));
        for n in 0..2 * YOUNG_MAX {
            lengths.learn(like(&a, &n.to_string()), Millis(1));
        }
        assert!(lengths.young.len() + lengths.old.len() <= 2 * YOUNG_MAX);
        assert_eq!(lengths.predict(like(&a, "first")), Some(Millis(1)), "as any of its type");
    }
}
