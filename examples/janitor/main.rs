//! A janitor: a worker that looks after a folder tree. Start three of them on one folder.
//!
//! It looks for large files and proposes to compress them, and for files that are there twice and
//! proposes to remove one; and it does both. Maitre asks one of them at a time to look, and gives
//! what it finds to whoever has room.

mod tree;
mod compress;
mod duplicates;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use tokio_util::sync::CancellationToken;
use worker::{Attempt, Detection, Worker, blocking};

/// Looks after a folder tree, for a scheduler.
#[derive(Parser)]
struct Options {
    /// The scheduler's address.
    #[arg(long, env = "MAITRE_SERVER", default_value = "127.0.0.1:7070")]
    server: String,
    /// A token that lets it work, if the scheduler wants one.
    #[arg(long, env = "MAITRE_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// What this worker is called; unlike every other.
    #[arg(long)]
    name: String,
    /// The folder.
    #[arg(long)]
    folder: PathBuf,
    /// Look after this alone: `compress` or `duplicates`.
    #[arg(long)]
    only: Option<String>,
    /// Write a line here for everything that is looked for or done.
    #[arg(long)]
    journal: Option<PathBuf>,
}

/// What looking and doing have in common.
struct Place {
    name: String,
    folder: PathBuf,
    journal: Option<PathBuf>,
}

impl Place {
    /// Writes down that something was done, before it is.
    fn note(&self, what: &str) -> std::io::Result<()> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let mut file = OpenOptions::new().create(true).append(true).open(journal)?;
        // One write, so that lines of several workers do not mix.
        file.write_all(format!("{} {what}\n", self.name).as_bytes())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::parse();
    let Options { server, token, name, folder, only, journal } = options;
    let place = Arc::new(Place { name: name.clone(), folder, journal });
    let mut builder = Worker::builder(&server).name(&name).slots(2).software("janitor/1");
    if let Some(token) = &token {
        builder = builder.token(token);
    }
    let is_wanted = |kind: &str| only.as_ref().is_none_or(|only| only == kind);
    if is_wanted("compress") {
        builder = builder
            .describe("compress", compress::descriptor())
            .detect("compress", 1, with(&place, compress::look))
            .type_("compress", 0, blocking(doing(&place, compress::run)));
    }
    if is_wanted("duplicates") {
        builder = builder
            .describe("duplicates", duplicates::descriptor())
            .detect("duplicates", 1, with(&place, duplicates::look))
            .type_("duplicates", 0, blocking(doing(&place, duplicates::run)));
    }
    let worker = builder.build()?;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    tokio::spawn(async move {
        // Without signals there is no other way to end than to be killed.
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.cancel();
        }
    });
    worker.run(stop).await?;
    Ok(())
}

/// A detector that knows its place.
fn with<R: Future<Output = Result<(), worker::Failure>> + Send + 'static>(
    place: &Arc<Place>,
    look: fn(Arc<Place>, Detection) -> R,
) -> impl worker::Detector {
    let place = Arc::clone(place);
    move |detection: Detection| look(Arc::clone(&place), detection)
}

/// A handler that knows its place.
fn doing(
    place: &Arc<Place>,
    run: fn(&Place, &Attempt) -> worker::Outcome,
) -> impl Fn(Attempt) -> worker::Outcome + Send + Sync + 'static {
    let place = Arc::clone(place);
    move |attempt: Attempt| run(&place, &attempt)
}
