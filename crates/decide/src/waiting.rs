//! One waiting job, as small as it can be: there may be millions.

use model::policy::Policy;
use model::{Fixed, History, Inputs, JobId, Millis, Timestamp, Traits, WorkerId};

use crate::bounds::Sketch;
use crate::order::{OrderKey, Standing};
use crate::queue::Head;
use crate::table::{ClassIx, EntryIx, JobIx, LineIx, NameIx, TenantIx};

/// A job that waits.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: JobId,
    pub(crate) entry: EntryIx,
    pub(crate) tenant: TenantIx,
    pub(crate) class: ClassIx,
    /// `None` while its moment has not come.
    pub(crate) line: Option<LineIx>,
    pub(crate) standing: Standing,
    pub(crate) cost: Fixed,
    pub(crate) traits: Traits,
    /// Whether the pool of its class is its own, not its type's.
    pub(crate) has_own_pool: bool,
    /// How many workers said what they lack of its inputs.
    pub(crate) n_inputs: u32,
    /// How many of them said how many bytes they lack.
    pub(crate) n_sizes: u32,
    /// When it is to be looked at again.
    pub(crate) timer: Option<Timestamp>,
    /// The key that it stands in line by.
    pub(crate) major: i64,
    pub(crate) extra: Option<Box<Extra>>,
}

/// What most jobs do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Extra {
    pub(crate) not_before: Option<Timestamp>,
    pub(crate) backoff_until: Option<Timestamp>,
    pub(crate) limit: Option<Millis>,
    pub(crate) last_worker: Option<WorkerId>,
    pub(crate) hint: Option<NameIx>,
    pub(crate) ask: Option<AskIx>,
    pub(crate) evictions: u32,
    pub(crate) dependents: Option<u32>,
    pub(crate) rescore_count: u32,
    pub(crate) history: Option<Box<History>>,
}

static NO_EXTRA: Extra = Extra {
    not_before: None,
    backoff_until: None,
    limit: None,
    last_worker: None,
    hint: None,
    ask: None,
    evictions: 0,
    dependents: None,
    rescore_count: 0,
    history: None,
};

/// What a job asks to hold alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum AskIx {
    Named(NameIx),
    Any,
}

/// How a job stands to its backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// It never needed one.
    Fresh,
    /// It ends later.
    Inside,
    /// It ends at this very moment.
    Ending,
    /// It ended.
    Over,
}

impl Waiting {
    pub(crate) fn new(
        (id, entry): (JobId, EntryIx),
        tenant: TenantIx,
        class: ClassIx,
        standing: Standing,
    ) -> Self {
        Self {
            id,
            entry,
            tenant,
            class,
            line: None,
            standing,
            cost: Fixed::ONE,
            traits: Traits::default(),
            has_own_pool: false,
            n_inputs: 0,
            n_sizes: 0,
            timer: None,
            major: 0,
            extra: None,
        }
    }

    pub(crate) fn extra(&self) -> &Extra {
        self.extra.as_deref().unwrap_or(&NO_EXTRA)
    }

    /// The same job with what most do not have.
    pub(crate) fn with_extra(self, extra: Extra) -> Self {
        Self { extra: (extra != NO_EXTRA).then(|| Box::new(extra)), ..self }
    }

    /// Counts what a worker says it lacks, in place of what it said before.
    pub(crate) fn count_inputs(&mut self, before: Option<Inputs>, now: Option<Inputs>) {
        let has_size = |said: Option<Inputs>| said.is_some_and(|it| it.missing_bytes.is_some());
        self.n_inputs = self.n_inputs + u32::from(now.is_some()) - u32::from(before.is_some());
        self.n_sizes = self.n_sizes + u32::from(has_size(now)) - u32::from(has_size(before));
    }

    /// How long it will run at most, as far as anybody knows.
    pub(crate) fn lasts(&self) -> Option<Millis> {
        self.extra().limit.or(self.standing.estimate)
    }

    /// Whether some worker said what it lacks of its inputs.
    pub(crate) fn has_inputs(&self) -> bool {
        self.n_inputs > 0
    }

    pub(crate) fn sketch(&self) -> Sketch {
        let extra = self.extra();
        Sketch {
            ready: self.standing.ready,
            dependents: extra.dependents.unwrap_or(0),
            traits: self.traits,
            has_history: extra.history.is_some(),
        }
    }

    pub(crate) fn head(&self, job: JobIx) -> Head {
        Head { job, key: self.order_key() }
    }

    pub(crate) fn order_key(&self) -> OrderKey {
        OrderKey { major: self.major, ready: self.standing.ready, id: self.id.clone() }
    }

    /// When it can run at the earliest, backoff apart.
    pub(crate) fn starts(&self) -> Timestamp {
        self.extra()
            .not_before
            .map_or(self.standing.ready, |moment| moment.max(self.standing.ready))
    }

    pub(crate) fn stage(&self, now: Timestamp) -> Stage {
        match self.extra().backoff_until {
            None => Stage::Fresh,
            Some(until) if until > now => Stage::Inside,
            Some(until) if until == now => Stage::Ending,
            Some(_) => Stage::Over,
        }
    }

    /// The next moment at which it belongs in another line.
    pub(crate) fn next_change(&self, policy: &Policy, now: Timestamp) -> Option<Timestamp> {
        if self.starts() > now {
            return Some(self.starts());
        }
        let after = |moment: Timestamp| Timestamp(moment.0 + 1);
        let backoff = match self.stage(now) {
            Stage::Fresh | Stage::Over => None,
            Stage::Inside => self.extra().backoff_until,
            Stage::Ending => self.extra().backoff_until.map(after),
        };
        [backoff, self.standing.mode_ends(policy, now)].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_job_fits_in_two_cache_lines() {
        assert!(size_of::<Option<Waiting>>() <= 128, "{} bytes", size_of::<Option<Waiting>>());
    }
}
