//! What a rule is, what it may look at, and how opinions add up.
//!
//! A rule has an opinion about one job on one worker, in points, or says "not now". What it costs
//! to find out is paid only by the rules that ask: inputs and shares are looked up on first use.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use model::policy::Rule;
use model::{Averages, Fixed, Inputs, Millis, Points, Timestamp, Trait};

use crate::rules;
use crate::seated::Seated;
use crate::table::{JobIx, TenantIx, WorkerIx};
use crate::waiting::Waiting;
use crate::world::World;

/// A rule: its name, what it is for, and how it judges.
#[derive(Debug)]
pub struct Sheet {
    /// Its permanent name.
    pub rule: Rule,
    /// What it rewards, in a sentence.
    pub rewards: &'static str,
    /// Its least and most points, in words where they depend on settings.
    pub range: &'static str,
    pub(crate) judge: Judge,
}

/// How a rule comes to its opinion.
#[derive(Debug)]
pub(crate) enum Judge {
    /// About the job alone: part of the order of jobs.
    Order,
    /// About a worker in a sample, or a seat: weighed there.
    Seat,
    /// About a job on the worker that asks.
    Pair {
        judge: fn(&Candidate<'_>) -> Verdict,
        /// The most that any job can get from it on this worker.
        most: fn(&Asker<'_>) -> Fixed,
    },
}

/// A rule's opinion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Points(Fixed),
    /// Not now; points cannot make up for it.
    Veto,
}

/// The worker that asks for work, and what is the same for all its candidates.
pub(crate) struct Asker<'a> {
    pub(crate) world: &'a World,
    pub(crate) ix: WorkerIx,
    pub(crate) worker: &'a Seated,
    in_flight: OnceCell<BTreeMap<TenantIx, i128>>,
}

/// One job that the asking worker could run.
pub(crate) struct Candidate<'a> {
    pub(crate) asker: &'a Asker<'a>,
    pub(crate) ix: JobIx,
    pub(crate) job: &'a Waiting,
    inputs: OnceCell<Inputs>,
}

/// What all rules of a policy say about a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Opinion {
    Score(Fixed),
    Vetoed(Rule),
}

impl<'a> Asker<'a> {
    pub(crate) fn new(world: &'a World, ix: WorkerIx) -> Self {
        Self { world, ix, worker: &world.fleet.workers[ix], in_flight: OnceCell::new() }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.world.now
    }

    pub(crate) fn candidate(&'a self, ix: JobIx) -> Candidate<'a> {
        let job = &self.world.queue.jobs[ix];
        Candidate { asker: self, ix, job, inputs: OnceCell::new() }
    }

    pub(crate) fn avg_1h(&self) -> &Averages {
        &self.world.cluster.avg_1h
    }

    pub(crate) fn avg_24h(&self) -> &Averages {
        &self.world.cluster.avg_24h
    }

    /// `most` times the part of the work in flight that is the tenant's, by expected length.
    pub(crate) fn share(&self, most: Fixed, tenant: TenantIx) -> Fixed {
        let lengths = self.in_flight.get_or_init(|| lengths_in_flight(self.world));
        let own = lengths.get(&tenant).copied().unwrap_or(0);
        fraction(most, own, lengths.values().sum())
    }
}

impl Candidate<'_> {
    /// What the asking worker lacks of the job's inputs.
    pub(crate) fn inputs(&self) -> Inputs {
        *self.inputs.get_or_init(|| {
            let known = self.job.has_inputs().then(|| self.asker.worker.inputs.get(self.ix));
            known.flatten().unwrap_or_default()
        })
    }

    pub(crate) fn is(&self, fact: Trait) -> bool {
        self.job.traits.has(fact)
    }

    /// What every rule says, added up.
    pub(crate) fn opinion(&self) -> Opinion {
        let mut score = Fixed::ZERO;
        for (sheet, weight) in rules::of(&self.asker.world.policy) {
            match sheet.verdict(self) {
                Verdict::Points(points) if weight == Fixed::ONE => score += points,
                Verdict::Points(points) => score += points.times(weight),
                Verdict::Veto => return Opinion::Vetoed(sheet.rule),
            }
        }
        Opinion::Score(score)
    }

    /// What each rule says; those that say nothing are left out.
    pub(crate) fn points(&self) -> Vec<Points> {
        let sheets = rules::of(&self.asker.world.policy);
        let said = sheets.filter_map(|(sheet, weight)| match sheet.verdict(self) {
            Verdict::Points(points) => {
                Some(Points { rule: sheet.rule, points: points.times(weight) })
            }
            Verdict::Veto => None,
        });
        said.filter(|said| said.points != Fixed::ZERO).collect()
    }
}

impl Sheet {
    pub(crate) fn verdict(&self, candidate: &Candidate<'_>) -> Verdict {
        match self.judge {
            Judge::Order | Judge::Seat => Verdict::Points(Fixed::ZERO),
            Judge::Pair { judge, .. } => judge(candidate),
        }
    }

    pub(crate) fn most(&self, asker: &Asker<'_>) -> Fixed {
        match self.judge {
            Judge::Order | Judge::Seat => Fixed::ZERO,
            Judge::Pair { most, .. } => most(asker),
        }
    }
}

/// `most × part / whole`, with the part kept between none and all of it.
pub(crate) fn fraction(most: Fixed, part: i128, whole: i128) -> Fixed {
    if whole <= 0 {
        return Fixed::ZERO;
    }
    let thousandths = i128::from(most.in_thousandths()) * part.clamp(0, whole);
    let rounded = (2 * thousandths + whole) / (2 * whole);
    Fixed::thousandths(i64::try_from(rounded).unwrap_or(i64::MAX))
}

/// Without a measured length, an attempt counts as this long.
const LENGTH_UNKNOWN: Millis = Millis::from_secs(60);

/// Each tenant's work in flight, by expected length. A job that prefers to be local counts half,
/// an evaluation not at all.
fn lengths_in_flight(world: &World) -> BTreeMap<TenantIx, i128> {
    let average = world.cluster.avg_1h.duration_s.map(|average| Millis(average.in_thousandths()));
    let average = average.unwrap_or(LENGTH_UNKNOWN);
    let mut lengths: BTreeMap<TenantIx, i128> = BTreeMap::new();
    let attempts = world.attempts.iter().map(|(_, running)| running);
    for running in attempts.filter(|running| !running.traits.has(Trait::Evaluation)) {
        let length = i128::from(running.estimate.unwrap_or(average).0);
        let half = running.traits.has(Trait::PreferLocal);
        *lengths.entry(running.tenant).or_default() += if half { length } else { 2 * length };
    }
    lengths
}
