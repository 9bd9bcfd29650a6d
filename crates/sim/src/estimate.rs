//! What is believed about how long jobs run.

use std::collections::BTreeMap;

use decide::{Lengths, Like, Said};
use model::{Fixed, Millis};

use crate::chance::split_mix;
use crate::hindsight::{Alike, Hindsight};
use crate::workload::{Job, Workload};

/// Where predictions come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Estimates {
    /// There are none.
    None,
    /// What submitters said, as far as it has proved to tell.
    User,
    /// The truth.
    Perfect,
    /// What the scheduler itself would predict from earlier runs, but no more than submitters said.
    History,
    /// The mean of all jobs that are alike in these ways, as known in hindsight, but no more than
    /// submitters said.
    Hindsight(Alike),
    /// Submitters say the truth times or divided by up to so much, by chance; it is believed as far
    /// as it has proved to tell.
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
    /// What was said of jobs that have not ended, by rank.
    said: BTreeMap<u32, Option<Said>>,
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
        Self {
            workload,
            estimates,
            seed,
            lengths: Lengths::default(),
            said: BTreeMap::new(),
            hindsight,
        }
    }

    /// How long a job that arrives now is believed to run.
    pub(crate) fn estimate(&mut self, job: &Job) -> Option<Millis> {
        match self.estimates {
            Estimates::None => None,
            Estimates::Perfect => Some(job.duration),
            Estimates::User | Estimates::History | Estimates::Wrong(_) => self.predict(job),
            Estimates::Hindsight(_) => {
                let known = self.hindsight.as_ref().and_then(|own| own.estimate(job));
                within(known, job.requested)
            }
        }
    }

    /// What is said first is what is judged.
    fn predict(&mut self, job: &Job) -> Option<Millis> {
        let like = self.like(job)?;
        let said = self.lengths.say(like);
        let length = said.as_ref().map(|said| self.lengths.tell(like, said).length);
        self.said.entry(job.rank).or_insert(said);
        within(length, like.limit)
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
        let Some(like) = self.like(job) else { return };
        let said = self.said.remove(&job.rank).flatten();
        self.lengths.learn_of(like, ran, said.as_ref());
    }

    /// What there is to learn from; `None` if nothing is learnt.
    fn like(&self, job: &Job) -> Option<Like<'a>> {
        let Workload { tenants, fits, labels, history_keys, .. } = self.workload;
        let claimed = Like {
            kind: fits[job.fit].kind.as_ref(),
            tenant: &tenants[job.tenant].id,
            key: "",
            command: "",
            labels: None,
            inputs: None,
            claim: None,
            limit: job.requested,
        };
        match self.estimates {
            Estimates::None | Estimates::Perfect | Estimates::Hindsight(_) => None,
            Estimates::User => Some(claimed),
            Estimates::Wrong(factor) => {
                Some(Like { claim: Some(self.mistaken(job, factor)), limit: None, ..claimed })
            }
            Estimates::History => Some(Like {
                key: job.history_key.map_or("", |key| &history_keys[key]),
                inputs: job.label.map(|label| &labels[label]),
                ..claimed
            }),
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

/// A job does not run longer than it may.
fn within(length: Option<Millis>, limit: Option<Millis>) -> Option<Millis> {
    length.map(|length| limit.map_or(length, |limit| length.min(limit)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swf;
    use crate::workload::Bad;

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

    /// What a source believes of a job of so many seconds, after jobs of a minute each.
    fn believed(source: &str, lengths: &[(i64, Option<i64>)]) -> Vec<Option<i64>> {
        let row = |(at, (run, asked)): (usize, &(i64, Option<i64>))| {
            let asked = asked.unwrap_or(-1);
            format!("{at} {at} 0 {run} 1 -1 -1 1 {asked} -1 1 1 1 -1 -1 -1 -1 -1\n")
        };
        let text: String = lengths.iter().enumerate().map(row).collect();
        let rows = swf::rows(&text, swf::Reading::Plain, &mut Bad::default());
        let workload = Workload::new(&rows, &[], Bad::default()).expect("it is well formed");
        let mut oracle = Oracle::new(&workload, Estimates::parse(source).expect("known"), 1);
        let mut believed = Vec::new();
        for job in &workload.jobs {
            believed.push(oracle.estimate(job).map(|Millis(ms)| ms / 1_000));
            oracle.learn(job, job.duration);
        }
        believed
    }

    #[test]
    fn claims_are_believed_once_they_have_proved_themselves() {
        let jobs: Vec<(i64, Option<i64>)> =
            (0..60).map(|n| (60 << (n % 3), Some(600 << (n % 3)))).collect();
        let user = believed("user", &jobs);
        assert_eq!(user[..8], [None; 8]);
        assert_eq!(user[8], Some(111), "the mean of all");
        let last = [57, 58, 59].map(|n: usize| user[n].expect("it is known"));
        assert!(last[0] <= 75 && (95..=150).contains(&last[1]) && last[2] >= 190, "{last:?}");
        let perfect = believed("perfect", &jobs);
        assert_eq!(perfect[..3], [Some(60), Some(120), Some(240)]);
    }

    #[test]
    fn claims_that_are_all_the_same_change_nothing_but_no_job_outlasts_its_limit() {
        let jobs: Vec<(i64, Option<i64>)> = (0..60).map(|n| (60 << (n % 3), Some(900))).collect();
        let same = believed("user", &jobs);
        assert!(same[20..].iter().all(|one| *one == same[20]), "{same:?}");
        let capped: Vec<(i64, Option<i64>)> = (0..30).map(|_| (60, Some(30))).collect();
        assert_eq!(believed("user", &capped)[29], Some(30));
    }
}
