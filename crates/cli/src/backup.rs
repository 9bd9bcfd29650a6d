//! `maitre backup`: a copy of everything, while it is in use.

use std::path::PathBuf;

use clap::Args;
use indicatif::HumanBytes;
use serde_json::json;

use crate::place::{DATABASE, MEMORY};
use crate::print::{self, Failure};
use crate::settings::Settings;

/// Options of `maitre backup`.
#[derive(Args)]
#[command(after_help = "\
The scheduler may run meanwhile: the copy is of one moment, and has everything
that was acknowledged before. It is read to its end before it gets its name.

To restore: stop the scheduler, remove `maitre.db-wal` and `maitre.db-shm` from
the data directory, put the copy in the place of `maitre.db`, and start again.")]
pub(crate) struct Options {
    /// The file to make; it must not be there yet.
    file: PathBuf,
    /// Settings; `maitre.toml` in the working directory is read if it is there.
    #[arg(long, env = "MAITRE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where the scheduler keeps its jobs.
    #[arg(long, env = "MAITRE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Copies the store of a scheduler, and says what is in the copy.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let settings = Settings::read(options.config.as_deref(), Vec::new())?;
    let data_dir = options.data_dir.clone().unwrap_or(settings.all.data_dir);
    if data_dir.as_os_str() == MEMORY {
        return Err(Failure::Input {
            error: format!("`{MEMORY}` keeps nothing that could be copied"),
            hint: Some("name the data directory of a scheduler with `--data-dir`".to_owned()),
        });
    }
    // As private as the data directory: nobody else may read a copy either.
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    let backup = store::backup(&data_dir.join(DATABASE), &options.file);
    let backup = backup.map_err(|error| Failure::Input {
        error: error.to_string(),
        hint: Some("`--data-dir` says where the store is; the copy must be a new file".to_owned()),
    })?;
    let path = options.file.display();
    if options.json {
        return print::json(&json!({
            "file": path.to_string(),
            "bytes": backup.bytes,
            "unfinished": backup.unfinished,
            "finished": backup.finished,
            "is_whole": true,
        }));
    }
    let (bytes, unfinished, finished) =
        (HumanBytes(backup.bytes), backup.unfinished, backup.finished);
    print::data(&format!(
        "`{path}` is whole: {unfinished} unfinished and {finished} finished jobs in {bytes}"
    ))
}
