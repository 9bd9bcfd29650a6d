//! Fleets from tables and from TOML.

use model::{Fixed, Name, Worker, WorkerId};
use serde::Deserialize;

use crate::error::Error;
use crate::fleet::Fleet;
use crate::terms;

/// A fleet has at most so many workers.
const WORKERS_MAX: usize = 1_000_000;

/// A table with a header: the first column is the id; `types` and `has` are joined by `+`, each
/// thing that a worker has is `key=value` or a word; `slots` and `speed` are 1 where they are left
/// out.
pub fn parse(name: &str, text: &str) -> Result<Fleet, Error> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().map_err(|error| Error::form(name, error.to_string()))?;
    let column = |title: &str| header.iter().position(|own| own == title);
    let columns = ["types", "slots", "has", "speed"].map(column);
    let known = 1 + columns.iter().flatten().count();
    if header.len() != known {
        let titles: Vec<&str> = header.iter().collect();
        let known = "an id, `types`, `slots`, `has` and `speed` are known";
        return Err(Error::form(name, format!("has the columns {titles:?}; {known}")));
    }
    let mut workers = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|error| Error::form(name, error.to_string()))?;
        let cell = |column: Option<usize>| column.and_then(|at| row.get(at)).unwrap_or("");
        let [types, slots, has, speed] = columns.map(cell);
        let words = |text: &str| -> Vec<String> {
            text.split('+').filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let number = |title: &str, text: &str| match text {
            "" => Ok(1.0),
            _ => text.parse::<f64>().map_err(|_| bad(name, &row[0], title, text)),
        };
        let said = Said {
            id: row[0].to_owned(),
            count: 1,
            types: words(types),
            slots: number("slots", slots)?,
            has: words(has),
            speed: number("speed", speed)?,
        };
        said.add_to(&mut workers, name)?;
    }
    Fleet::new(name, workers)
}

/// `[[worker]]` for each kind of worker: `id`, `count` (its workers are called `id-1`, `id-2`, …),
/// `slots`, `types`, `has` and `speed`.
pub fn parse_toml(name: &str, text: &str) -> Result<Fleet, Error> {
    let file: File = toml::from_str(text).map_err(|error| Error::form(name, error.to_string()))?;
    let mut workers = Vec::new();
    for said in file.worker {
        said.add_to(&mut workers, name)?;
    }
    Fleet::new(name, workers)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    worker: Vec<Said>,
}

/// What a file says about a worker, or about several that are alike.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    id: String,
    #[serde(default = "one")]
    count: usize,
    #[serde(default)]
    types: Vec<String>,
    #[serde(default = "unit")]
    slots: f64,
    #[serde(default)]
    has: Vec<String>,
    #[serde(default = "unit")]
    speed: f64,
}

const fn one() -> usize {
    1
}

const fn unit() -> f64 {
    1.0
}

impl Said {
    fn add_to(&self, workers: &mut Vec<(Worker, Fixed)>, name: &str) -> Result<(), Error> {
        let speed = Fixed::from_f64(self.speed).filter(|speed| *speed > Fixed::ZERO);
        let speed = speed.ok_or_else(|| bad(name, &self.id, "speed", &self.speed.to_string()))?;
        if self.count == 0 || workers.len() + self.count > WORKERS_MAX {
            let problem = format!("has {} workers `{}`; 1 to {WORKERS_MAX}", self.count, self.id);
            return Err(Error::form(name, problem));
        }
        let worker = self.worker(name)?;
        for number in 1..=self.count {
            let id = match self.count {
                1 => WorkerId::new(&self.id),
                _ => WorkerId::new(&format!("{}-{number}", self.id)),
            };
            workers.push((Worker { id, ..worker.clone() }, speed));
        }
        Ok(())
    }

    fn worker(&self, name: &str) -> Result<Worker, Error> {
        let mut worker = Worker::new(WorkerId::new(&self.id));
        worker.types = self.types.iter().map(|word| Name::new(word)).collect();
        worker.types.sort_unstable();
        worker.types.dedup();
        let slots = Fixed::from_f64(self.slots).map(Fixed::in_thousandths);
        let slots = slots.filter(|slots| *slots > 0 && slots % 1_000 == 0);
        let slots = slots.and_then(|slots| u32::try_from(slots / 1_000).ok());
        worker.slots =
            slots.ok_or_else(|| bad(name, &self.id, "slots", &self.slots.to_string()))?;
        for word in &self.has {
            let (key, value) = terms::key_and_value(word);
            worker.has.entry(key).or_default().push(value);
        }
        for values in worker.has.values_mut() {
            values.sort_unstable();
            values.dedup();
        }
        Ok(worker)
    }
}

fn bad(name: &str, worker: &str, title: &str, text: &str) -> Error {
    Error::form(name, format!("has a bad worker `{worker}`: `{title}` is `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Fit;

    #[test]
    fn a_fleet_is_read_from_a_table_by_id() {
        let fleet = parse("f", "slot,types\n10,A+B\n9,\n").unwrap();
        let ids: Vec<String> = fleet.workers.iter().map(|worker| worker.id.to_string()).collect();
        assert_eq!(ids, ["9", "10"]);
        let kind = |name: &str| Fit { kind: Some(Name::new(name)), ..Fit::default() };
        assert!(fleet.fits(&fleet.workers[0], &kind("C")));
        assert!(fleet.fits(&fleet.workers[1], &kind("B")));
        assert!(!fleet.fits(&fleet.workers[1], &kind("C")));
    }

    #[test]
    fn what_a_worker_has_are_words_or_keys_with_values() {
        let fleet = parse("f", "worker,slots,has\na,4,gpu+model=T4+model=V100\n").unwrap();
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
            let error = parse("f", text).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn alike_workers_are_counted_in_toml() {
        let text = "[[worker]]\nid = 'gpu'\ncount = 2\nslots = 4\nhas = ['gpu']\nspeed = 1.5\n\
                    [[worker]]\nid = 'old'\ntypes = ['A']\n";
        let fleet = parse_toml("f", text).unwrap();
        let ids: Vec<String> = fleet.workers.iter().map(|worker| worker.id.to_string()).collect();
        assert_eq!((ids.join(" "), fleet.slots()), ("gpu-1 gpu-2 old".to_owned(), 9));
        assert_eq!((fleet.speed(1), fleet.speed(2)), (Fixed::thousandths(1_500), Fixed::ONE));
        assert!(parse_toml("f", "[[worker]]\nid = 'a'\nspeed = 0\n").is_err());
        assert!(parse_toml("f", "[[worker]]\nid = 'a'\ncolor = 'red'\n").is_err());
    }
}
