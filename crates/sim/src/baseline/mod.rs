//! What the presets are compared with: classic policies, written to the letter.
//!
//! Ties go to the earlier arrival, then to the smaller id.

mod seats;
mod lines;
mod list;
mod seed3;
mod seed4;
mod sfq;
mod easy;
mod matching;

use model::Millis;

use crate::engine::Scheduler;
use crate::error::Error;
use crate::fleet::Fleet;
use crate::workload::Workload;

pub use easy::{Backfill, Times};

/// A policy that is no preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// By arrival; jobs that do not fit are passed over.
    Fifo,
    /// By arrival; stops at the first job that does not fit.
    Fcfs,
    /// By priority, then by arrival.
    Prio,
    /// Shortest first.
    Sjf,
    /// The tenant that was served least for its weight; its people first, then by arrival.
    Sfq,
    /// The tenant that was served least for its weight; its shortest job.
    SfqSjf,
    /// Tenants by what their completed jobs used, to the letter of its source.
    Seed3,
    /// One score of priority, age, rarity and on-demand, to the letter of its source.
    Seed4,
    /// All free slots and the best jobs at once, by the score of `seed4` without rarity.
    MatchS4,
    /// All free slots and the best jobs at once, by length.
    MatchSjf,
    /// By arrival, with room kept for the first that does not fit; others may go ahead if they do
    /// not delay it.
    Easy(Backfill, Times),
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Fifo,
        Self::Fcfs,
        Self::Prio,
        Self::Sjf,
        Self::Sfq,
        Self::SfqSjf,
        Self::Seed3,
        Self::Seed4,
        Self::Easy(Backfill::FirstCome, Times::Requested),
        Self::Easy(Backfill::FirstCome, Times::Perfect),
        Self::Easy(Backfill::Shortest, Times::Requested),
        Self::Easy(Backfill::Shortest, Times::Perfect),
        Self::MatchS4,
        Self::MatchSjf,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Fcfs => "fcfs",
            Self::Prio => "prio",
            Self::Sjf => "sjf",
            Self::Sfq => "sfq",
            Self::SfqSjf => "sfq-sjf",
            Self::Seed3 => "seed3",
            Self::Seed4 => "seed4",
            Self::MatchS4 => "match-s4",
            Self::MatchSjf => "match-sjf",
            Self::Easy(Backfill::FirstCome, Times::Requested) => "easy",
            Self::Easy(Backfill::FirstCome, Times::Perfect) => "easy:perfect",
            Self::Easy(Backfill::Shortest, Times::Requested) => "easy-sjbf",
            Self::Easy(Backfill::Shortest, Times::Perfect) => "easy-sjbf:perfect",
        }
    }

    /// The baseline called `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|baseline| baseline.name() == name)
    }

    /// Itself at work. What ended longer ago than `window` is forgotten by those who remember.
    pub fn scheduler<'a>(
        self,
        workload: &'a Workload,
        fleet: &Fleet,
        window: Millis,
    ) -> Result<Box<dyn Scheduler + 'a>, Error> {
        Ok(match self {
            Self::Fifo => Box::new(list::List::fifo(workload, fleet)),
            Self::Prio => Box::new(list::List::prio(workload, fleet)),
            Self::Sjf => Box::new(list::List::sjf(workload, fleet)),
            Self::Sfq => Box::new(sfq::Sfq::first_come(workload, fleet)),
            Self::SfqSjf => Box::new(sfq::Sfq::shortest(workload, fleet)),
            Self::Seed3 => Box::new(seed3::Seed3::new(workload, fleet, window)),
            Self::Seed4 => Box::new(seed4::Seed4::new(workload, fleet)),
            Self::MatchS4 => {
                Box::new(matching::Matching::new(workload, fleet, matching::Worth::Score)?)
            }
            Self::MatchSjf => {
                Box::new(matching::Matching::new(workload, fleet, matching::Worth::Short)?)
            }
            Self::Fcfs => Box::new(easy::Easy::fcfs(workload, fleet)?),
            Self::Easy(backfill, times) => {
                Box::new(easy::Easy::new(workload, fleet, backfill, times)?)
            }
        })
    }
}
