//! A list of traces, as data: which file, on which fleet, with which options.

use std::path::{Path, PathBuf};

use model::Fixed;
use serde::Deserialize;

use crate::error::Error;
use crate::fleet::Fleet;
use crate::read::{self, Options, Reading};
use crate::workload::Workload;

/// A list of traces.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalog {
    /// In the order in which tables show them.
    #[serde(rename = "trace")]
    pub traces: Vec<Trace>,
}

/// A trace, and how it is replayed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Its name in tables.
    pub name: String,
    /// The file of the workload, without its folder.
    pub jobs: String,
    /// The file of the fleet, without its folder, or a size such as `64` or `10x8`.
    pub fleet: String,
    /// Weights of the tenants, by id; after the last, the first again. Empty means equal weights.
    #[serde(default)]
    pub weights: Vec<u32>,
    /// Whether the file is the log of KTH with three tenants, priorities and interactive jobs.
    #[serde(default)]
    pub kth_m: bool,
    /// Arrivals are compressed until the fleet is asked for so many times what it can do. `None`
    /// keeps the arrivals of the file.
    pub load: Option<f64>,
    /// The replay accepts so many bad rows.
    #[serde(default)]
    pub bad_max: usize,
    /// Sources of estimates, as [`crate::Estimates::parse`] reads them.
    pub estimates: Vec<String>,
}

impl Catalog {
    /// A list as TOML: `[[trace]]` with the fields of [`Trace`].
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::form(name, error.to_string()))
    }
}

impl Trace {
    /// The workload and the fleet, from the first folder that has the file. `None` means that no
    /// folder has it.
    pub fn load(&self, folders: &[PathBuf]) -> Result<Option<(Workload, Fleet)>, Error> {
        let Some(jobs) = find(&self.jobs, folders) else { return Ok(None) };
        let mut fleet = match Fleet::parse_size(&self.fleet) {
            Some(fleet) => fleet,
            None => match find(&self.fleet, folders) {
                Some(path) => read::fleet(&path)?,
                None => return Ok(None),
            },
        };
        let reading = if self.kth_m { Reading::KthM } else { Reading::Plain };
        let options = Options { reading, weights: self.weights.clone(), bad_max: self.bad_max };
        let mut workload = read::workload(&jobs, &options)?;
        fleet.sift(&mut workload, self.bad_max)?;
        if let Some(load) = self.load {
            let problem = || Error::form(&self.name, format!("has `load` {load}; more than 0"));
            let load = Fixed::from_f64(load).filter(|load| *load > Fixed::ZERO);
            workload.compress_to(load.ok_or_else(problem)?, fleet.capacity());
        }
        Ok(Some((workload, fleet)))
    }
}

fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
[[trace]]
name = 'calm'
jobs = 'het90_jobs.csv.gz'
fleet = 'het_slots.csv'
weights = [1, 2, 5]
estimates = ['none']

[[trace]]
name = 'absent'
jobs = 'absent.csv.gz'
fleet = '64'
load = 0.9
estimates = ['history']
";

    #[test]
    fn list_says_which_traces_are_there() {
        let catalog = Catalog::parse("list", LIST).expect("the list is well formed");
        let folders = [Path::new(env!("CARGO_MANIFEST_DIR")).join("traces")];
        let [calm, absent] = [0, 1].map(|at| catalog.traces[at].load(&folders).expect("readable"));
        let (workload, fleet) = calm.expect("the file is ours");
        assert_eq!((workload.jobs.len(), fleet.slots()), (18_709, 64));
        assert!(absent.is_none(), "no folder has the file");
    }

    #[test]
    fn list_with_unknown_field_is_refused() {
        let error = Catalog::parse("list", &LIST.replace("load", "lod")).expect_err("unknown");
        assert!(error.to_string().contains("lod"), "{error}");
    }
}
