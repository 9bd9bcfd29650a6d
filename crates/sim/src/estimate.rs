//! What is believed about how long jobs run.

use decide::{Lengths, Like};
use model::{Fixed, Millis};

use crate::chance::split_mix;
use crate::hindsight::{Alike, Hindsight};
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
    /// What the scheduler itself would predict from earlier runs, but no more than submitters said.
    History,
    /// The mean of all jobs that are alike in these ways, as known in hindsight, but no more than
    /// submitters said.
    Hindsight(Alike),
    /// The truth times or divided by up to so much, by chance.
    Wrong(Fixed),
}

impl Estimates {
    /// `none`, `user`, `perfect`, `history`, `hindsight:type+key` for what jobs of one type and key
    /// turn out to take, or `wrong:4` for up to four times too long or short.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "none" => Self::None,
            "user" => Self::User,
            "perfect" => Self::Perfect,
            "history" => Self::History,
            _ if text.starts_with("hindsight:") => {
                Self::Hindsight(Alike::parse(text.strip_prefix("hindsight:")?)?)
            }
            _ => {
                let factor = text.strip_prefix("wrong:")?.parse().ok().and_then(Fixed::from_f64)?;
                (factor >= Fixed::ONE).then_some(Self::Wrong(factor))?
            }
        })
    }
}

/// Predicts, and learns from what ends.
pub(crate) struct Oracle<'a> {
    workload: &'a Workload,
    estimates: Estimates,
    seed: u64,
    lengths: Lengths,
    hindsight: Option<Hindsight>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(workload: &'a Workload, estimates: Estimates, seed: u64) -> Self {
        let hindsight = match estimates {
            Estimates::Hindsight(alike) => Some(Hindsight::new(workload, alike)),
            Estimates::None
            | Estimates::User
            | Estimates::Perfect
            | Estimates::History
            | Estimates::Wrong(_) => None,
        };
        Self { workload, estimates, seed, lengths: Lengths::default(), hindsight }
    }

    /// How long a job that arrives now is believed to run.
    pub(crate) fn estimate(&self, job: &Job) -> Option<Millis> {
        match self.estimates {
            Estimates::None => None,
            Estimates::User => job.requested,
            Estimates::Perfect => Some(job.duration),
            Estimates::History => within_claim(self.lengths.predict(self.like(job)), job),
            Estimates::Hindsight(_) => {
                let known = self.hindsight.as_ref().and_then(|own| own.estimate(job));
                within_claim(known, job)
            }
            Estimates::Wrong(factor) => Some(self.mistaken(job, factor)),
        }
    }

    /// How long a job may run, as far as anybody knows.
    pub(crate) fn limit(&self, job: &Job) -> Option<Millis> {
        match self.estimates {
            Estimates::Perfect => Some(job.duration),
            Estimates::None => None,
            Estimates::User
            | Estimates::History
            | Estimates::Hindsight(_)
            | Estimates::Wrong(_) => job.requested,
        }
    }

    /// A job has ended after it ran for so long.
    pub(crate) fn learn(&mut self, job: &Job, ran: Millis) {
        if self.estimates == Estimates::History {
            self.lengths.learn(self.like(job), ran);
        }
    }

    fn like(&self, job: &Job) -> Like<'a> {
        let Workload { tenants, fits, labels, history_keys, .. } = self.workload;
        Like {
            kind: fits[job.fit].kind.as_ref(),
            tenant: &tenants[job.tenant].id,
            key: job.history_key.map_or("", |key| &history_keys[key]),
            inputs: job.label.map(|label| &labels[label]),
            claim: job.requested,
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

/// Who knows how long a job may run knows that it does not run longer.
fn within_claim(length: Option<Millis>, job: &Job) -> Option<Millis> {
    match (length, job.requested) {
        (Some(length), Some(requested)) => Some(length.min(requested)),
        (length, requested) => length.or(requested),
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
        assert!(matches!(Estimates::parse("hindsight:type"), Some(Estimates::Hindsight(_))));
        assert_eq!(Estimates::parse("hindsight:guess"), None);
        assert_eq!(Estimates::parse("guess"), None);
    }
}
