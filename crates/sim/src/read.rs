//! Workloads and fleets from files, packed or not.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::error::Error;
use crate::fleet::Fleet;
use crate::generate::Recipe;
use crate::sharers::{self, Dues};
use crate::workload::{Bad, Workload};
use crate::{rows, seating, swf};

pub use crate::swf::Reading;

/// What a workload's file leaves open.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the numbers of an SWF file mean.
    pub reading: Reading,
    /// Weights of tenants in turn; none means equal ones.
    pub weights: Vec<u32>,
    /// So many rows may be bad.
    pub bad_max: usize,
}

/// Unpacked, a file has at most so many bytes.
const BYTES_MAX: u64 = 4 << 30;

/// The workload in a file: `.swf` and `.csv`, each also with `.gz`.
pub fn workload(path: &Path, options: &Options) -> Result<Workload, Error> {
    let text = text(path)?;
    let name = path.display().to_string();
    let mut bad = Bad::default();
    let rows = match extension(path).as_str() {
        "swf" => swf::rows(&text, options.reading, &mut bad),
        "csv" => rows::rows(&name, &text, &mut bad)?,
        _ => return Err(Error::form(&name, "is neither `.swf` nor `.csv`, with or without `.gz`")),
    };
    let workload = Workload::new(&rows, &options.weights, bad)?;
    workload.bad.check(&format!("`{name}`"), options.bad_max)?;
    if workload.jobs.is_empty() {
        return Err(Error::form(&name, "has no jobs"));
    }
    Ok(workload)
}

/// The fleet in a `.csv` or `.toml` file.
pub fn fleet(path: &Path) -> Result<Fleet, Error> {
    let name = path.display().to_string();
    match extension(path).as_str() {
        "toml" => seating::parse_toml(&name, &text(path)?),
        _ => seating::parse(&name, &text(path)?),
    }
}

/// The recipe of a workload in a `.toml` file.
pub fn recipe(path: &Path) -> Result<Recipe, Error> {
    Recipe::parse(&path.display().to_string(), &text(path)?)
}

/// What a `.toml` file says about tenants.
pub fn dues(path: &Path) -> Result<Dues, Error> {
    sharers::parse(&path.display().to_string(), &text(path)?)
}

/// Whether this is a log in the Standard Workload Format, by its name.
pub fn is_swf(path: &Path) -> bool {
    extension(path) == "swf"
}

/// The extension of a file, without `.gz`.
fn extension(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    name.rsplit('.').next().unwrap_or_default().to_owned()
}

/// Logs are older than UTF-8: a byte that is none is shown as such, and what it is in is read all
/// the same.
fn text(path: &Path) -> Result<String, Error> {
    let read = || -> io::Result<String> {
        let (packed, mut bytes) = (fs::read(path)?, Vec::new());
        let n_bytes = if packed.starts_with(&[0x1f, 0x8b]) {
            MultiGzDecoder::new(packed.as_slice()).take(BYTES_MAX).read_to_end(&mut bytes)?
        } else {
            packed.as_slice().take(BYTES_MAX).read_to_end(&mut bytes)?
        };
        if u64::try_from(n_bytes).is_ok_and(|n_bytes| n_bytes >= BYTES_MAX) {
            return Err(io::Error::other(format!("more than {BYTES_MAX} bytes")));
        }
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    };
    read().map_err(|source| Error::Read { path: path.to_owned(), source })
}
