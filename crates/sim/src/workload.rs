//! Jobs that arrive, whose they are, and how long they run.

use std::collections::BTreeMap;
use std::fmt;

use model::job::Needs;
use model::{Fixed, JobId, Millis, Name, TenantId, Timestamp};

use crate::error::Error;

/// One job of a workload, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its id.
    pub id: JobId,
    /// When it was submitted.
    pub arrival: Timestamp,
    /// How long it runs once it is started.
    pub duration: Millis,
    /// How long its submitter said it would run.
    pub requested: Option<Millis>,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its type.
    pub kind: Option<Name>,
    /// What it needs of a worker.
    pub needs: Needs,
    /// Slots that it takes, all on one worker.
    pub slots: u32,
    /// Higher is sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// What jobs like this one are called: how long they ran tells how long it will run.
    pub history_key: Option<Name>,
    /// What its inputs are called; a worker that had them lately need not fetch them.
    pub label: Option<Name>,
}

/// One job of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Its place among all jobs by id: ties are broken by it.
    pub rank: u32,
    /// When it arrives.
    pub arrival: Timestamp,
    /// How long it runs once it is started.
    pub duration: Millis,
    /// How long its submitter said it would run.
    pub requested: Option<Millis>,
    /// Whose it is: a place in [`Workload::tenants`].
    pub tenant: usize,
    /// Who could run it: a place in [`Workload::fits`].
    pub fit: usize,
    /// Slots that it takes, all on one worker.
    pub slots: u32,
    /// Higher is sooner.
    pub priority: i32,
    /// Whether a person waits for the result.
    pub on_demand: bool,
    /// What jobs like this one are called: a place in [`Workload::history_keys`].
    pub history_key: Option<usize>,
    /// Its inputs: a place in [`Workload::labels`].
    pub label: Option<usize>,
}

impl Job {
    /// Its length times its slots, in slot-milliseconds.
    pub fn area(&self) -> i64 {
        self.duration.0.saturating_mul(i64::from(self.slots))
    }
}

/// Who shares the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharer {
    /// Its id.
    pub id: TenantId,
    /// Its due, in proportion to the others' weights.
    pub weight: u32,
    /// Slots that are its own, and the most that it may have.
    pub quota: Quota,
    /// The most slot-seconds within the window; `None` means no limit.
    pub budget: Option<Fixed>,
}

impl Sharer {
    /// A tenant without limits.
    pub const fn new(id: TenantId, weight: u32) -> Self {
        Self { id, weight, quota: Quota { min: 0, max: None }, budget: None }
    }
}

/// Slots of a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// Below this its jobs come first.
    pub min: u32,
    /// It never has more; `None` means no limit.
    pub max: Option<u32>,
}

/// What decides which workers could run a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    /// The job's type.
    pub kind: Option<Name>,
    /// What it needs.
    pub needs: Needs,
}

/// Rows that were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bad {
    /// How many.
    pub count: usize,
    /// The first of them, each with its line and what is wrong.
    pub told: Vec<String>,
}

/// So many bad rows are named; the others are only counted.
pub const BAD_TOLD_MAX: usize = 5;

impl Bad {
    /// One more.
    pub fn add(&mut self, problem: impl FnOnce() -> String) {
        self.count += 1;
        if self.told.len() < BAD_TOLD_MAX {
            self.told.push(problem());
        }
    }

    /// How many are only counted.
    pub const fn n_untold(&self) -> usize {
        self.count.saturating_sub(self.told.len())
    }

    /// Refuses what `name` says if more than `bad_max` rows are bad.
    pub(crate) fn check(&self, name: &str, bad_max: usize) -> Result<(), Error> {
        if self.count <= bad_max {
            return Ok(());
        }
        Err(Error::Bad { name: name.to_owned(), bad: self.clone(), bad_max })
    }
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told.join("; "))?;
        match self.n_untold() {
            0 => Ok(()),
            n_untold => write!(f, "; and {n_untold} more"),
        }
    }
}

/// Jobs in the order in which they arrive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// By arrival; those of one moment in the order of the file.
    pub jobs: Vec<Job>,
    /// By id.
    pub tenants: Vec<Sharer>,
    /// In order.
    pub fits: Vec<Fit>,
    /// What jobs that are alike are called, in order.
    pub history_keys: Vec<String>,
    /// What inputs are called, in order.
    pub labels: Vec<Name>,
    /// What was left out.
    pub bad: Bad,
}

impl Workload {
    /// The jobs of `rows`. Tenants, by id, get `weights` in turn, from the first again after the
    /// last; no weights mean equal ones. Rows of one id, such as the stages of one build, are jobs
    /// of their own, in the order of the file.
    pub fn new(rows: &[Row], weights: &[u32], bad: Bad) -> Result<Self, Error> {
        if weights.contains(&0) {
            return Err(Error::Unfit("a weight is zero; every weight is at least 1".to_owned()));
        }
        let ranks = ranks(rows);
        let tenants = places(rows.iter().map(|row| &row.tenant));
        let fit = |row: &Row| Fit { kind: row.kind.clone(), needs: row.needs.clone() };
        let all_fits: Vec<Fit> = rows.iter().map(fit).collect();
        let fits = places(all_fits.iter());
        let history_keys = places(rows.iter().filter_map(|row| row.history_key.as_ref()));
        let labels = places(rows.iter().filter_map(|row| row.label.as_ref()));
        let mut jobs: Vec<Job> = Vec::with_capacity(rows.len());
        for (at, (row, rank)) in rows.iter().zip(ranks).enumerate() {
            jobs.push(Job {
                id: row.id.clone(),
                rank,
                arrival: row.arrival,
                duration: row.duration,
                requested: row.requested,
                tenant: tenants[&row.tenant],
                fit: fits[&all_fits[at]],
                history_key: row.history_key.as_ref().map(|key| history_keys[key]),
                label: row.label.as_ref().map(|label| labels[label]),
                slots: row.slots,
                priority: row.priority,
                on_demand: row.on_demand,
            });
        }
        jobs.sort_by_key(|job| job.arrival);
        let weight = |place: usize| weights.get(place % weights.len().max(1)).map_or(1, |own| *own);
        let tenants = tenants.into_iter();
        Ok(Self {
            jobs,
            tenants: tenants.map(|(id, place)| Sharer::new(id.clone(), weight(place))).collect(),
            history_keys: history_keys.into_keys().map(Name::to_string).collect(),
            labels: labels.into_keys().cloned().collect(),
            fits: fits.into_keys().cloned().collect(),
            bad,
        })
    }

    /// The moment of the last arrival; zero if there are no jobs.
    pub fn last_arrival(&self) -> Timestamp {
        self.jobs.last().map_or(Timestamp(0), |job| job.arrival)
    }

    /// The length of all jobs times their slots, in slot-milliseconds.
    pub fn area(&self) -> i64 {
        self.jobs.iter().map(Job::area).sum()
    }

    /// Jobs arrive `factor` times as fast.
    pub fn compress(&mut self, factor: Fixed) {
        for job in &mut self.jobs {
            let arrival = Fixed::thousandths(job.arrival.0);
            job.arrival.0 = arrival.scale(1_000, factor.in_thousandths()).in_thousandths();
        }
    }

    /// Jobs arrive so fast that `slots` slots are asked for `load` times what they can do.
    pub fn compress_to(&mut self, load: Fixed, slots: u64) {
        let span = i128::from(self.last_arrival().0);
        let (area, load) = (i128::from(self.area()), i128::from(load.in_thousandths()));
        let wanted = area * 1_000 / (i128::from(slots) * load).max(1);
        for job in &mut self.jobs {
            let arrival = i128::from(job.arrival.0) * wanted / span.max(1);
            job.arrival.0 = i64::try_from(arrival).unwrap_or(i64::MAX);
        }
    }
}

fn places<'a, T: Ord>(all: impl Iterator<Item = &'a T>) -> BTreeMap<&'a T, usize> {
    let mut places: BTreeMap<&T, usize> = all.map(|one| (one, 0)).collect();
    for (at, (_, place)) in places.iter_mut().enumerate() {
        *place = at;
    }
    places
}

/// The place of each row by id.
fn ranks(rows: &[Row]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|one, two| rows[*one].id.cmp(&rows[*two].id).then(one.cmp(two)));
    let mut ranks = vec![0; rows.len()];
    for (rank, row) in (0..).zip(order) {
        ranks[row] = rank;
    }
    ranks
}
