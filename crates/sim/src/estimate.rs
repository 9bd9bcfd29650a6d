//! What is believed about how long jobs run.

use std::collections::{BTreeMap, VecDeque};

use model::{Fixed, Millis};

use crate::chance::split_mix;
use crate::workload::{Job, Workload};

/// Where predictions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// There are none.
    None,
    /// What submitters said; none where they said nothing.
    User,
    /// The truth.
    Perfect,
    /// Earlier runs of the same type and inputs, or of the same tenant, type and key, or of the
    /// same type; but no more than submitters said.
    History,
    /// The truth times or divided by up to so much, by chance.
    Wrong(Fixed),
}

impl Estimates {
    /// `none`, `user`, `perfect`, `history`, or `wrong:4` for up to four times too long or short.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "user" => Self::User,
            "perfect" => Self::Perfect,
            "history" => Self::History,
            _ => {
                let factor = text.strip_prefix("wrong:")?.parse().ok().and_then(Fixed::from_f64)?;
                (factor >= Fixed::ONE).then_some(Self::Wrong(factor))?
            }
        })
    }
}

/// Predicts, and learns from what ends.
pub(crate) struct Oracle {
    estimates: Estimates,
    seed: u64,
    /// Jobs of one type with the same inputs, whoever submits them.
    by_inputs: BTreeMap<(usize, usize), Runs>,
    by_history: Vec<Runs>,
    by_fit: Vec<Runs>,
}

/// The last runs of jobs that are alike.
#[derive(Clone, Debug, Default)]
struct Runs {
    last: VecDeque<i64>,
    sum: i64,
    /// By how much each guess was wrong lately.
    wrong: [i64; 2],
}

/// Runs that the first guess is drawn from …
const RUNS_MAX: usize = 200;
/// … and the second: it follows changes faster.
const LATEST: usize = 5;
/// What a guess was wrong by is forgotten over so many runs.
const MEMORY: i64 = 16;

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

impl Oracle {
    pub(crate) fn new(workload: &Workload, estimates: Estimates, seed: u64) -> Self {
        let empty = |n: usize| vec![Runs::default(); n];
        Self {
            estimates,
            seed,
            by_inputs: BTreeMap::new(),
            by_history: empty(workload.n_histories),
            by_fit: empty(workload.fits.len()),
        }
    }

    /// How long a job that arrives now is believed to run.
    pub(crate) fn estimate(&self, job: &Job) -> Option<Millis> {
        match self.estimates {
            Estimates::None => None,
            Estimates::User => job.requested,
            Estimates::Perfect => Some(job.duration),
            // Who knows how long a job may run knows that it does not run longer.
            Estimates::History => match (self.recall(job), job.requested) {
                (Some(ran), Some(requested)) => Some(ran.min(requested)),
                (ran, requested) => ran.or(requested),
            },
            Estimates::Wrong(factor) => Some(self.mistaken(job, factor)),
        }
    }

    /// What is known about jobs like this one: with its inputs, of its history, or of its type.
    fn recall(&self, job: &Job) -> Option<Millis> {
        let inputs = job.label.and_then(|label| self.by_inputs.get(&(job.fit, label)));
        let known = inputs.and_then(Runs::guess);
        let known = known.or_else(|| self.by_history[job.history].guess());
        known.or_else(|| job.requested.is_none().then(|| self.by_fit[job.fit].guess())?)
    }

    /// A job has ended after it ran for so long.
    pub(crate) fn learn(&mut self, job: &Job, ran: Millis) {
        if self.estimates != Estimates::History {
            return;
        }
        self.by_history[job.history].add(ran);
        self.by_fit[job.fit].add(ran);
        if let Some(label) = job.label {
            self.by_inputs.entry((job.fit, label)).or_default().add(ran);
        }
    }

    /// Half of the jobs seem longer than they are and half shorter, by a factor between 1 and the
    /// one given. In whole numbers, so that it is the same everywhere.
    fn mistaken(&self, job: &Job, factor: Fixed) -> Millis {
        let draw = split_mix(self.seed ^ u64::from(job.rank));
        let part = i64::try_from((draw >> 1) % 1_001).unwrap_or(0);
        let factor = Fixed::ONE + (factor - Fixed::ONE).scale(part, 1_000);
        let truth = Fixed::thousandths(job.duration.0);
        let mistaken = if draw & 1 == 0 {
            truth.scale(factor.in_thousandths(), 1_000)
        } else {
            truth.scale(1_000, factor.in_thousandths())
        };
        Millis(mistaken.in_thousandths().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_known_by_name() {
        assert_eq!(Estimates::parse("user"), Some(Estimates::User));
        assert_eq!(
            Estimates::parse("wrong:2.5"),
            Some(Estimates::Wrong(Fixed::thousandths(2_500)))
        );
        assert_eq!(Estimates::parse("wrong:0.5"), None);
        assert_eq!(Estimates::parse("guess"), None);
    }
}
