//! `maitre store`: looks after what is kept, without a scheduler.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use serde_json::json;
use store::{Checked, Options as StoreOptions, Postgres};

use crate::place::{self, DATABASE, Place};
use crate::print::{self, Failure};
use crate::settings::Settings;

/// What can be done with a store.
#[derive(Subcommand)]
pub(crate) enum Upkeep {
    /// Find out whether all that is kept agrees with itself; changes nothing.
    Check(CheckOptions),
    /// Copy everything from a data directory into an empty Postgres.
    Move(MoveOptions),
}

/// Options of `maitre store move`.
#[derive(Args)]
#[command(after_help = "\
Stop the scheduler first; what is moved stays where it was. If it is cut short,
the same command goes on where it stopped. At the end the counts are compared.

Example:
  maitre store move sqlite://maitre-data postgres://me@db.example/maitre")]
pub(crate) struct MoveOptions {
    /// Where everything is: `sqlite://DIR`.
    #[arg(value_name = "FROM")]
    from: String,
    /// An empty database: `postgres://user@host/database`.
    #[arg(value_name = "TO")]
    to: String,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Options of `maitre store check`.
#[derive(Args)]
#[command(after_help = "Schedulers may run meanwhile.")]
pub(crate) struct CheckOptions {
    /// Settings; `maitre.toml` in the working directory is read if it is there.
    #[arg(long, env = "MAITRE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where a scheduler keeps its jobs.
    #[arg(long, env = "MAITRE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// The Postgres in which schedulers keep their jobs.
    #[arg(long, env = "MAITRE_STORE", value_name = "URL", hide_env_values = true)]
    store: Option<String>,
    /// For machines.
    #[arg(long)]
    json: bool,
}

/// Looks after a store.
pub(crate) async fn run(upkeep: &Upkeep) -> Result<(), Failure> {
    match upkeep {
        Upkeep::Check(options) => check(options).await,
        Upkeep::Move(options) => move_all(options).await,
    }
}

async fn check(options: &CheckOptions) -> Result<(), Failure> {
    let mut all = Settings::read(options.config.as_deref(), Vec::new())?.all;
    if let Some(data_dir) = &options.data_dir {
        all.data_dir.clone_from(data_dir);
    }
    if let Some(url) = &options.store {
        all.store = Some(Place::named(url)?);
    }
    let place = Place::of(&all);
    let failed = |error: store::Error| {
        Failure::Other(anyhow!(error).context(format!("could not check `{place}`")))
    };
    let checked = match &place {
        Place::Directory(directory) => store::check(&directory.join(DATABASE)),
        Place::Postgres(url) => {
            match Postgres::connect_to_check(url, StoreOptions::default()).await {
                Ok(store) => store.check().await,
                Err(error) => Err(error),
            }
        }
    };
    show(&place, &checked.map_err(failed)?, options)
}

async fn move_all(options: &MoveOptions) -> Result<(), Failure> {
    let places = (Place::named(&options.from)?, Place::named(&options.to)?);
    let (Place::Directory(directory), Place::Postgres(url)) = &places else {
        return Err(Failure::Input {
            error: "only `sqlite://DIR` can be moved, and only to `postgres://…`".to_owned(),
            hint: Some("`pg_dump` and `pg_restore` move a Postgres".to_owned()),
        });
    };
    let failed = |error: store::Error| Failure::Other(anyhow!(error));
    // Nobody may write meanwhile.
    let _lock = place::lock(directory)?;
    let target = Postgres::connect_to_import(url, StoreOptions::default());
    let target = target.await.map_err(failed)?;
    let progress = indicatif::ProgressBar::no_length();
    let file = directory.join(DATABASE);
    let moved = target.import(&file, |table, n, total| {
        progress.set_length(total);
        progress.set_position(n);
        progress.set_message(table.to_owned());
    });
    let n_jobs = moved.await.map_err(failed)?;
    progress.finish_and_clear();
    if options.json {
        return print::json(&json!({ "jobs": n_jobs }));
    }
    let jobs = print::count(n_jobs, "job");
    print::data(&format!("{jobs} moved from {} to {}", places.0, places.1))
}

fn show(place: &Place, checked: &Checked, options: &CheckOptions) -> Result<(), Failure> {
    let Checked { unfinished, finished, problems } = checked;
    if options.json {
        print::json(&json!({
            "unfinished": unfinished, "finished": finished, "problems": problems,
        }))?;
    } else {
        let verdict =
            if problems.is_empty() { "everything agrees" } else { "not everything agrees" };
        print::data(&format!(
            "{place}: {unfinished} unfinished and {finished} finished jobs; {verdict}"
        ))?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure::Other(anyhow!("the store does not agree with itself: {}", problems.join("; "))))
}
