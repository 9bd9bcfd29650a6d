//! Where the workload and the fleet come from.

use std::mem;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use model::{Fixed, Millis, Timestamp};
use sim::generate::{Family, Instance};
use sim::read::{self, Reading};
use sim::{Fleet, Workload};

use super::history::{self, Span};
use super::{failure, wrong};
use crate::place::Place;
use crate::print::Failure;

/// What is replayed, and on what.
#[derive(Args)]
pub(crate) struct Source {
    /// The workload: `.swf` or `.csv`, packed with gzip or not.
    file: Option<PathBuf>,
    /// Make a workload up, from a recipe.
    #[arg(long, value_name = "FILE.toml", conflicts_with = "file")]
    generate: Option<PathBuf>,
    /// Generate a workload and its fleet, from a family and `--seed`: mixed, poisson, bursts,
    /// daily, constant, exponential, lognormal, pareto, bimodal, tenants, rare, wide, overload or
    /// backlogged.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "generate", "from"])]
    family: Option<String>,
    /// Our own history: the store of a scheduler, such as `sqlite://maitre-data/maitre.db`; `-`
    /// reads the address from a line of the input, where nobody else sees its password.
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "generate"])]
    from: Option<String>,
    /// Only jobs that were submitted from then on: `2026-11-15T08:00:00Z`, or so long ago, `6h`.
    #[arg(long, value_name = "TIME", requires = "from")]
    since: Option<String>,
    /// Only jobs that were submitted before then.
    #[arg(long, value_name = "TIME", requires = "from")]
    until: Option<String>,
    /// Only the newest so many jobs of it.
    #[arg(long, value_name = "N", requires = "from")]
    newest: Option<usize>,
    /// The workers: a `.csv` or `.toml` file, or a size such as `64` or `10x8` (workers x slots).
    #[arg(long, value_name = "FILE|SIZE")]
    fleet: Option<String>,
    /// How to read the workload.
    #[arg(long, value_enum, default_value_t = Kind::Plain)]
    workload: Kind,
    /// Weights of the tenants, by id; after the last, the first again.
    #[arg(long, value_delimiter = ',', value_name = "WEIGHT")]
    weights: Vec<u32>,
    /// Jobs arrive so many times as fast.
    #[arg(long, value_name = "FACTOR", conflicts_with = "load")]
    compress: Option<f64>,
    /// Jobs arrive so fast that the fleet is asked for so many times what it can do.
    #[arg(long, value_name = "LOAD")]
    load: Option<f64>,
    /// Only the first so many jobs.
    #[arg(long, value_name = "N")]
    first: Option<usize>,
    /// So many bad rows are passed over.
    #[arg(long, default_value_t = 100, value_name = "N")]
    bad_max: usize,
}

/// How to read a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// As its format says.
    Plain,
    /// The log of KTH with three tenants, priorities and people; on 100 slots.
    KthM,
}

/// Slots of the machine of KTH.
const KTH_SLOTS: u32 = 100;
/// Weights of its tenants.
const KTH_WEIGHTS: [u32; 3] = [1, 2, 5];

impl Source {
    /// How the workload is read.
    pub(crate) const fn kind(&self) -> Kind {
        self.workload
    }

    /// What it is called.
    pub(crate) fn name(&self) -> String {
        if let Some(url) = &self.from {
            if url == INPUT {
                return "what happened here".to_owned();
            }
            // Without its password.
            return Place::named(url).map_or_else(|_| url.clone(), |place| place.to_string());
        }
        if let Some(family) = &self.family {
            return format!("family {family}");
        }
        let file = self.file.as_ref().or(self.generate.as_ref()).and_then(|file| file.file_name());
        file.map_or_else(|| "workload".to_owned(), |name| name.to_string_lossy().into_owned())
    }

    /// The workload and the fleet, as they were asked for, and what there is to say about them.
    pub(crate) fn load(&self, seed: u64) -> Result<(Workload, Fleet, Vec<String>), Failure> {
        let mut notes = Vec::new();
        let (mut workload, recorded) = match &self.family {
            Some(name) => {
                let Instance { workload, fleet, summary } = family(name)?.instance(seed);
                notes.push(summary);
                (workload, Some(fleet))
            }
            None => self.read(&mut notes)?,
        };
        let mut fleet = self.fleet(recorded)?;
        fleet.sift(&mut workload, self.bad_max).map_err(failure)?;
        workload.jobs.truncate(self.first.unwrap_or(usize::MAX));
        if workload.jobs.is_empty() {
            let error = "no job of the workload fits the fleet".to_owned();
            return Err(wrong(error, workload.bad.told.first().cloned()));
        }
        if let Some(factor) = self.compress {
            workload.compress(positive("--compress", factor)?);
        }
        if let Some(load) = self.load {
            workload.compress_to(positive("--load", load)?, fleet.capacity());
        }
        Ok((workload, fleet, notes))
    }

    /// The workload, and the fleet that it came with.
    fn read(&self, notes: &mut Vec<String>) -> Result<(Workload, Option<Fleet>), Failure> {
        let (reading, weights) = match self.workload {
            Kind::Plain => (Reading::Plain, self.weights.clone()),
            Kind::KthM if self.weights.is_empty() => (Reading::KthM, KTH_WEIGHTS.to_vec()),
            Kind::KthM => (Reading::KthM, self.weights.clone()),
        };
        if self.workload == Kind::KthM && !self.file.as_deref().is_some_and(read::is_swf) {
            let error = "`--workload kth-m` is a way to read a log in SWF".to_owned();
            return Err(wrong(error, Some("leave it out for anything else".to_owned())));
        }
        if let Some(path) = &self.generate {
            return Ok((read::recipe(path).map_err(failure)?.workload(), None));
        }
        if let Some(url) = &self.from {
            return self.history(url, &weights, notes);
        }
        let Some(file) = &self.file else {
            return Err(wrong("there is no workload".to_owned(), Some(SOURCES.to_owned())));
        };
        let how = read::Options { reading, weights, bad_max: self.bad_max };
        Ok((read::workload(file, &how).map_err(failure)?, None))
    }

    fn history(
        &self,
        url: &str,
        weights: &[u32],
        notes: &mut Vec<String>,
    ) -> Result<(Workload, Option<Fleet>), Failure> {
        let line = if url == INPUT { input()? } else { url.to_owned() };
        let mut history = history::read(line.trim(), self.span()?)?;
        if history.is_cut {
            let n = history.rows.len();
            notes.push(format!("Only the newest {n} jobs of that time were read."));
        }
        let bad = mem::take(&mut history.bad);
        let mut workload = Workload::new(&history.rows, weights, bad).map_err(failure)?;
        if weights.is_empty() {
            history.weigh(&mut workload);
        }
        Ok((workload, history.fleet))
    }

    fn span(&self) -> Result<Span, Failure> {
        let since = self.since.as_deref().map(|text| moment("--since", text)).transpose()?;
        let until = self.until.as_deref().map(|text| moment("--until", text)).transpose()?;
        Ok(Span {
            since: since.unwrap_or(Timestamp(i64::MIN)),
            until: until.unwrap_or(Timestamp(i64::MAX)),
            jobs_max: self.newest.unwrap_or(history::JOBS_MAX),
        })
    }

    fn fleet(&self, recorded: Option<Fleet>) -> Result<Fleet, Failure> {
        match (&self.fleet, recorded, self.workload) {
            (Some(text), ..) => match Fleet::parse_size(text) {
                Some(fleet) => Ok(fleet),
                None if looks_like_size(text) => {
                    let hint = "workers, or workers x slots, each at least 1: `64`, `10x8`";
                    Err(wrong(format!("`--fleet` is `{text}`"), Some(hint.to_owned())))
                }
                None => read::fleet(Path::new(text)).map_err(failure),
            },
            (None, Some(recorded), _) => Ok(recorded),
            (None, None, Kind::KthM) => Ok(Fleet::of_size(1, KTH_SLOTS)),
            (None, None, Kind::Plain) => Err(wrong(
                "there is no fleet to run the workload on".to_owned(),
                Some("`--fleet slots.csv`, `--fleet 64` or `--fleet 10x8`".to_owned()),
            )),
        }
    }
}

fn family(name: &str) -> Result<Family, Failure> {
    Family::from_name(name).ok_or_else(|| {
        let known = Family::ALL.map(Family::name).join(", ");
        wrong(format!("there is no family `{name}`"), Some(format!("families are {known}")))
    })
}

/// Stands for the first line of the input.
const INPUT: &str = "-";

fn input() -> Result<String, Failure> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("read the address of the store")?;
    Ok(line)
}

/// Whether a text is meant as a size, though it may be none.
fn looks_like_size(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'x')
}

/// A moment, or how long ago it was.
fn moment(flag: &str, text: &str) -> Result<Timestamp, Failure> {
    let now = store::wall_clock()();
    if let Ok(ago) = humantime::parse_duration(text) {
        return Ok(now - Millis(i64::try_from(ago.as_millis()).unwrap_or(i64::MAX)));
    }
    let since_epoch = humantime::parse_rfc3339_weak(text)
        .or_else(|_| humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z")))
        .ok()
        .and_then(|moment| moment.duration_since(SystemTime::UNIX_EPOCH).ok());
    let since_epoch = since_epoch.and_then(|length| i64::try_from(length.as_millis()).ok());
    since_epoch.map(Timestamp).ok_or_else(|| {
        let hint = "a moment, `2026-11-15T08:00:00Z`, a day, or how long ago, `6h`";
        wrong(format!("`{flag}` is `{text}`"), Some(hint.to_owned()))
    })
}

const SOURCES: &str = "name a file, `.swf` or `.csv`, `--generate recipe.toml`, `--family mixed`, \
                       or `--from sqlite://…`";

fn positive(flag: &str, number: f64) -> Result<Fixed, Failure> {
    let fixed = Fixed::from_f64(number).filter(|fixed| *fixed > Fixed::ZERO);
    fixed.ok_or_else(|| wrong(format!("`{flag}` is {number}; it is more than 0"), None))
}
