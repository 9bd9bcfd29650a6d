//! The workers of a replay.

use model::{Name, Worker, WorkerId};

use crate::error::Error;
use crate::workload::{Fit, Workload};

/// Workers by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// By id.
    pub workers: Vec<Worker>,
    /// Whether any worker will do, whatever jobs need: a fleet of which only the size is known.
    pub takes_all: bool,
}

impl Fleet {
    /// So many workers of so many slots each, that take all.
    pub fn of_size(n_workers: u32, slots: u32) -> Self {
        let workers = (0..n_workers)
            .map(|id| Worker { slots, ..Worker::new(WorkerId::number(u64::from(id))) });
        Self { workers: workers.collect(), takes_all: true }
    }

    /// `64` for so many workers of one slot, `10x8` for so many of so many slots.
    pub fn parse_size(text: &str) -> Option<Self> {
        let (n_workers, slots) = text.split_once('x').unwrap_or((text, "1"));
        let (n_workers, slots) = (n_workers.parse().ok()?, slots.parse().ok()?);
        (n_workers > 0 && slots > 0).then(|| Self::of_size(n_workers, slots))
    }

    /// A table with a header: the first column is the id; `types` and `has` are joined by `+`,
    /// each thing that a worker has is `key=value` or a word; `slots` is 1 where it is left out.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let header = reader.headers().map_err(|error| Error::form(name, error.to_string()))?;
        let column = |title: &str| header.iter().position(|own| own == title);
        let columns = [column("types"), column("slots"), column("has")];
        let known = 1 + columns.iter().flatten().count();
        if header.len() != known {
            let titles: Vec<&str> = header.iter().collect();
            let problem =
                format!("has the columns {titles:?}; an id, `types`, `slots` and `has` are known");
            return Err(Error::form(name, problem));
        }
        let mut workers = Vec::new();
        for row in reader.records() {
            let row = row.map_err(|error| Error::form(name, error.to_string()))?;
            let cell = |column: Option<usize>| column.and_then(|at| row.get(at)).unwrap_or("");
            workers.push(worker(&row[0], columns.map(cell)).map_err(|problem| {
                Error::form(name, format!("has a bad worker `{}`: {problem}", &row[0]))
            })?);
        }
        workers.sort_by(|one: &Worker, two| one.id.cmp(&two.id));
        if let Some(two) = workers.windows(2).find(|two| two[0].id == two[1].id) {
            return Err(Error::form(name, format!("has worker `{}` twice", two[0].id)));
        }
        if workers.is_empty() {
            return Err(Error::form(name, "has no workers"));
        }
        Ok(Self { workers, takes_all: false })
    }

    /// All slots of all workers.
    pub fn slots(&self) -> u64 {
        self.workers.iter().map(|worker| u64::from(worker.slots)).sum()
    }

    /// Whether the worker could run jobs of this fit.
    pub fn fits(&self, worker: &Worker, fit: &Fit) -> bool {
        let runs = |kind: &Name| worker.types.is_empty() || worker.types.contains(kind);
        let offers = |key: &Name, values: &[Name]| {
            let own = worker.has.get(key);
            own.is_some_and(|own| values.iter().any(|value| own.contains(value)))
        };
        self.takes_all
            || fit.kind.as_ref().is_none_or(runs)
                && fit.needs.iter().all(|(key, values)| offers(key, values))
    }

    /// Takes the jobs out that no worker could ever run, and counts them as bad; `bad_max` of all
    /// rows may be.
    pub fn sift(&self, workload: &mut Workload, bad_max: usize) -> Result<(), Error> {
        let room = |fit: &Fit| {
            let fitting = self.workers.iter().filter(|worker| self.fits(worker, fit));
            fitting.map(|worker| worker.slots).max().unwrap_or(0)
        };
        let room: Vec<u32> = workload.fits.iter().map(room).collect();
        let bad = &mut workload.bad;
        workload.jobs.retain(|job| {
            let has_room = job.slots <= room[job.fit];
            if !has_room {
                bad.add(|| format!("job `{}` fits no worker", job.id));
            }
            has_room
        });
        workload.bad.check("the workload", bad_max)
    }
}

fn worker(id: &str, [types, slots, has]: [&str; 3]) -> Result<Worker, String> {
    let words = |text: &'_ str| -> Vec<String> {
        text.split('+').filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let mut worker = Worker::new(WorkerId::new(id));
    worker.types = words(types).iter().map(|word| Name::new(word)).collect();
    worker.types.sort_unstable();
    worker.types.dedup();
    if !slots.is_empty() {
        let slots_given: Option<u32> = slots.parse().ok().filter(|slots| *slots > 0);
        worker.slots = slots_given.ok_or_else(|| format!("`slots` is `{slots}`"))?;
    }
    for word in words(has) {
        // A bare word is something that one has or has not.
        let (key, value) = word.split_once('=').unwrap_or((&word, &word));
        worker.has.entry(Name::new(key)).or_default().push(Name::new(value));
    }
    for values in worker.has.values_mut() {
        values.sort_unstable();
        values.dedup();
    }
    Ok(worker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_read_from_a_table_by_id() {
        let fleet = Fleet::parse("f", "slot,types\n10,A+B\n9,\n").unwrap();
        let ids: Vec<String> = fleet.workers.iter().map(|worker| worker.id.to_string()).collect();
        assert_eq!(ids, ["9", "10"]);
        let kind = |name: &str| Fit { kind: Some(Name::new(name)), ..Fit::default() };
        assert!(fleet.fits(&fleet.workers[0], &kind("C")));
        assert!(fleet.fits(&fleet.workers[1], &kind("B")));
        assert!(!fleet.fits(&fleet.workers[1], &kind("C")));
    }

    #[test]
    fn what_a_worker_has_are_words_or_keys_with_values() {
        let fleet = Fleet::parse("f", "worker,slots,has\na,4,gpu+model=T4+model=V100\n").unwrap();
        let worker = &fleet.workers[0];
        assert_eq!(worker.slots, 4);
        assert!(worker.has("gpu", "gpu") && worker.has("model", "T4"));
    }

    #[test]
    fn a_bad_fleet_is_refused_by_name() {
        for (text, problem) in [
            ("slot,color\n1,red\n", "`f` has the columns [\"slot\", \"color\"]"),
            ("slot,slots\n1,0\n", "`f` has a bad worker `1`: `slots` is `0`"),
            ("slot,types\n1,A\n1,B\n", "`f` has worker `1` twice"),
            ("slot,types\n", "`f` has no workers"),
        ] {
            let error = Fleet::parse("f", text).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn a_size_is_a_number_of_workers_and_of_slots() {
        assert_eq!(Fleet::parse_size("64").map(|fleet| fleet.slots()), Some(64));
        assert_eq!(Fleet::parse_size("10x8").map(|fleet| fleet.slots()), Some(80));
        assert_eq!(Fleet::parse_size("0"), None);
        assert_eq!(Fleet::parse_size("het.csv"), None);
    }
}
