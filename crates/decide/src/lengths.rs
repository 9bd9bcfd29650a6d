//! How long a job will run, from how long its like ran: as far as that has proved to tell.
//!
//! The first guess is the mean of all jobs, the same for each. What a job has in common with others
//! moves it from there, the widest first: its type, its tenant, what its submitter claims, its
//! command, labels, inputs and key. Each moves it by the part to which it is believed, and that is
//! measured: what it said before, against what ran ([`trust`]). So a job of which nothing is known
//! that tells is as long as all others, and jobs that are as long go by age.
//!
//! All of it is done in logarithms, for lengths differ by factors, and one long job must not
//! outweigh a hundred short ones. What was long ago counts less, so that changes are followed.

mod log;
mod trust;
mod memory;
mod like;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use model::{Millis, Name};

pub use like::Like;

use like::{Cut, Step};
use log::{DOUBLING, exp2, log2};
use memory::{Memory, Way};
use trust::{FULL, Judged, Miss, Trust};

/// How long a job will run, as far as is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// How long, drawn to the mean of all jobs the less is known: jobs can be ordered by it, and
    /// jobs of which nothing is known are all as long.
    pub length: Millis,
    /// Which part of the squared error of the mean of all jobs was gone lately for jobs of its
    /// tenant and type, in thousandths: 0 is no skill, 1,000 is all that there is.
    pub skill: i64,
}

/// How well lengths of a type were predicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Runs that were predicted before they ended.
    pub n_judged: u64,
    /// As in [`Prediction::skill`].
    pub skill: i64,
    /// What a job of it usually takes: half of them take longer, more or less.
    pub typical: Millis,
}

/// What was said of a job, to be judged once it has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The mean of all jobs, as a logarithm.
    mean: i64,
    /// How long it was thought to run.
    length: i64,
    /// Which part of that is the mean of all.
    kept: i64,
    spoken: Vec<Spoken>,
}

/// What one predictor said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spoken {
    class: Way,
    place: usize,
    trust: Way,
    lender: Option<Way>,
    /// By how much it thought the job longer …
    said: i64,
    /// … than those before it did.
    before: i64,
}

/// How long jobs ran, by likeness.
#[derive(Clone, Debug, Default)]
pub struct Lengths {
    all: Runs,
    /// The mean of all, as it is told. It follows in leaps, for jobs that wait go by what they were
    /// told: while it stands, those of which nothing is known are as long whenever they came.
    told: i64,
    runs: Memory<Runs>,
    trusts: Memory<Trust>,
    /// By tenant and type.
    judged: Memory<Judged>,
    types: BTreeMap<Name, (Judged, Runs)>,
}

/// Fewer jobs have no mean that is worth telling.
const JOBS_MIN: i64 = 8;
/// The mean of all is over so many jobs; it leaps when it is off by more than a factor of two.
const ALL_MEMORY: i64 = 1_024;
/// A class has two means: one over so many jobs, for what only varies: it is then known to an
/// eighth of how much it varies …
const MEMORY: i64 = 64;
/// … and one over the latest, for what changes.
const LATEST: i64 = 4;
/// Lengths are told in steps of a fifth from the mean of all: a job does not go before an older one
/// because the mean of its class has moved by a hundredth.
const STEP: i64 = DOUBLING / 4;
/// More types than this are not told apart when skills are shown.
const TYPES_MAX: usize = 1_000;
/// With so many doublings of runs the mean of a class is as good as it gets.
const GROWN: u32 = 5;

/// Runs of jobs that are alike.
#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    n: i64,
    /// Means of logarithms.
    mean: i64,
    latest: i64,
    /// How its predictors missed last: both means, and both claims.
    misses: [Miss; 4],
    /// How often something was claimed, and the mean of that: of claims, and of limits.
    claims: [(i64, i64); 2],
}

impl Runs {
    fn add(&mut self, ran: i64, memory: i64) {
        self.n = self.n.saturating_add(1);
        self.mean += (ran - self.mean) / self.n.min(memory);
        self.latest += (ran - self.latest) / self.n.min(LATEST);
    }
}

impl Lengths {
    /// A job like this ran for so long.
    pub fn learn(&mut self, like: Like<'_>, ran: Millis) {
        let said = self.say(like);
        self.learn_of(like, ran, said.as_ref());
    }

    /// A job of which this was said when it was submitted ran for so long. Jobs that are submitted
    /// together are often alike in what nobody knew: what is said once the first of them have ended
    /// is no measure of what was said before.
    pub fn learn_of(&mut self, like: Like<'_>, ran: Millis, said: Option<&Said>) {
        let ran = log2(ran);
        if let Some(said) = said {
            self.judge(like, ran, said);
        }
        self.all.add(ran, ALL_MEMORY);
        let is_off = (self.all.mean - self.told).abs() > DOUBLING;
        if self.all.n <= JOBS_MIN || is_off {
            self.told = self.all.mean;
        }
        for step in like.steps() {
            self.runs.change(step.class).add(ran, MEMORY);
        }
        let own = self.runs.change(like.own());
        for (known, claimed) in own.claims.iter_mut().zip(like.claimed()) {
            let Some(claimed) = claimed else { continue };
            known.0 = (known.0 + 1).min(MEMORY);
            known.1 += (log2(claimed) - known.1) / known.0;
        }
        if let Some(kind) = like.kind {
            self.of_type(kind).1.add(ran, MEMORY);
        }
    }

    /// How long a job like this will run; `None` if too little ran to tell.
    pub fn predict(&self, like: Like<'_>) -> Option<Prediction> {
        Some(self.tell(like, &self.say(like)?))
    }

    /// What was said, as a prediction.
    pub fn tell(&self, like: Like<'_>, said: &Said) -> Prediction {
        let exact = said.length + (self.told - said.mean) * said.kept / FULL;
        let longer = exact - self.told;
        let steps = (longer + longer.signum() * (STEP / 2)) / STEP;
        let length = exp2(self.told + steps * STEP);
        let skill = self.judged.get(like.own()).map_or(0, Judged::skill);
        Prediction { length, skill }
    }

    /// All that is said of a job like this; `None` if too little ran.
    pub fn say(&self, like: Like<'_>) -> Option<Said> {
        if self.all.n < JOBS_MIN {
            return None;
        }
        let mean = self.all.mean;
        let mut said = Said { mean, length: mean, kept: FULL, spoken: Vec::new() };
        let own = like.own();
        let usual = self.runs.get(own).map_or(mean, |runs| runs.mean);
        for step in like.steps() {
            if let Some(runs) = self.runs.get(step.class) {
                let size = runs.n.max(1).ilog2().min(GROWN);
                let than = step.cut.than(said.length, usual);
                self.hear(&mut said, &step, (size, runs.mean - than));
                if runs.n > 1 {
                    let than = step.cut.than(said.length, runs.mean);
                    self.hear(&mut said, &step, (GROWN + 1, runs.latest - than));
                }
            }
            // After the means of the tenant, before those of narrower classes.
            if step.class == own {
                self.hear_claims(&mut said, like);
            }
        }
        Some(said)
    }

    /// How well the lengths of each type were predicted.
    pub fn skills(&self) -> impl Iterator<Item = (&Name, Skill)> {
        self.types.iter().map(|(kind, (judged, runs))| {
            let (n_judged, skill) = (judged.n_ever, judged.skill());
            (kind, Skill { n_judged, skill, typical: exp2(runs.mean) })
        })
    }

    /// A class says that its jobs are so much longer.
    fn hear(&self, said: &mut Said, step: &Step, (sort, longer): (u32, i64)) {
        let trust = step.owner.and(&(&step.level, sort));
        let lender = step.lender.map(|way| way.and(&(&step.level, sort)));
        let (class, place) = (step.class, usize::from(sort > GROWN));
        let before = said.length;
        let spoken = Spoken { class, place, trust, lender, said: longer, before };
        let part = self.part(&spoken);
        said.length += spoken.said * part / FULL;
        if step.cut == Cut::Within {
            said.kept -= said.kept * part / FULL;
        }
        said.spoken.push(spoken);
    }

    /// A submitter says that this job is longer than those that it usually submits. Only that
    /// counts: who claims the same of all jobs says nothing. Nobody else's claims speak for it.
    fn hear_claims(&self, said: &mut Said, like: Like<'_>) {
        let own = like.own();
        let Some(runs) = self.runs.get(own) else { return };
        for (at, (claimed, (n, mean))) in like.claimed().into_iter().zip(runs.claims).enumerate() {
            let Some(claimed) = claimed.filter(|_| n > 0) else { continue };
            let trust = own.and(&("claim", at));
            let longer = log2(claimed) - mean;
            let (class, place, before) = (own, 2 + at, said.length);
            let spoken = Spoken { class, place, trust, lender: None, said: longer, before };
            said.length += longer * self.part(&spoken) / FULL;
            said.spoken.push(spoken);
        }
    }

    fn part(&self, spoken: &Spoken) -> i64 {
        let of = |way| self.trusts.get(way).copied().unwrap_or_default();
        let own = of(spoken.trust);
        spoken.lender.map_or_else(|| own.part(), |lender| own.part_beside(of(lender)))
    }

    fn judge(&mut self, like: Like<'_>, ran: i64, said: &Said) {
        for spoken in &said.spoken {
            let longer = ran - spoken.before;
            let last = &mut self.runs.change(spoken.class).misses[spoken.place];
            if let Some(lender) = spoken.lender {
                self.trusts.change(lender).judge(spoken.said, longer, *last);
            }
            *last = self.trusts.change(spoken.trust).judge(spoken.said, longer, *last);
        }
        let (predicted, mean) = (ran - said.length, ran - said.mean);
        self.judged.change(like.own()).judge(predicted, mean);
        if let Some(kind) = like.kind {
            self.of_type(kind).0.judge(predicted, mean);
        }
    }

    fn of_type(&mut self, kind: &Name) -> &mut (Judged, Runs) {
        let is_full = self.types.len() >= TYPES_MAX && !self.types.contains_key(kind);
        let name = if is_full { Name::new("other") } else { kind.clone() };
        self.types.entry(name).or_default()
    }
}

/// How long an attempt is expected to run in all, once it has run for so long: as predicted, until
/// it outruns that; then twice as long, and twice that once it outruns that too (Tsafrir, Etsion
/// and Feitelson, 2007, correct predictions in steps as well). Lengths have heavy tails: the longer
/// a job has run, the longer it still will, so to expect its end at any moment is wrong each time.
pub(crate) const fn outrun(elapsed: Millis, predicted: Millis) -> Millis {
    let mut length = predicted.0;
    while length < elapsed.0 {
        let longer = if length > LATE_MIN.0 { length } else { LATE_MIN.0 };
        length = longer.saturating_mul(2);
    }
    Millis(length)
}

/// Shorter predictions are doubled from here.
const LATE_MIN: Millis = Millis::from_secs(1);
