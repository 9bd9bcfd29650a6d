//! `maitre poison`: jobs that took workers with them, and are kept from doing it again.

use clap::{Args, Subcommand};
use proto::v1;
use serde_json::{Value, json};

use crate::change;
use crate::client::{Target, job_number};
use crate::filter::{self, FilterOptions};
use crate::print::{self, Failure};
use crate::view;

/// The cause of their end.
const POISON: &str = "poison";

/// Options of `maitre poison`.
#[derive(Args)]
#[command(after_help = "\
A job is poison once it has lost its worker `losses_max` times (3 by default).
It is parked as failed, so that it takes no more workers with it.

Examples:
  maitre poison                      (what is parked)
  maitre job 17                      (on which workers it was lost)
  maitre poison release 17           (try again)")]
pub(crate) struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// At most so many.
    #[arg(long, short = 'n', default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    max: u32,
    /// For machines.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum What {
    /// Try poisonous jobs again.
    Release {
        /// The jobs.
        #[arg(required_unless_present = "all", conflicts_with = "all", value_parser = job_number)]
        ids: Vec<u64>,
        /// All of them.
        #[arg(long)]
        all: bool,
        /// Do not ask before all are released.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Lists or releases poisonous jobs.
pub(crate) async fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    let poison = FilterOptions::of_cause(POISON);
    match &options.what {
        None => list(options, target, &poison).await,
        Some(What::Release { ids, all: true, yes }) => {
            let released = change::Options::of(ids, poison, *yes, options.json);
            change::retry(&released, target).await
        }
        Some(What::Release { ids, all: false, yes }) => {
            let filter = FilterOptions::default();
            let released = change::Options::of(ids, filter, *yes, options.json);
            change::retry(&released, target).await
        }
    }
}

async fn list(options: &Options, target: &Target, poison: &FilterOptions) -> Result<(), Failure> {
    let mut client = target.jobs().await?;
    let response = filter::newest(&mut client, &poison.wire()?, 0, options.max).await?;
    if options.json {
        let jobs: Vec<Value> = response.jobs.iter().map(proto::json::job).collect();
        return print::json(&json!({ "jobs": jobs, "next_before": response.next_before }));
    }
    if response.jobs.is_empty() {
        print::note("no job is poison");
        return Ok(());
    }
    let now = target.now_ms().await?;
    let rows = response.jobs.iter().map(|job| row(job, now)).collect();
    let header = ["job", "tenant", "type", "losses", "last worker", "parked", "error"];
    print::data(&print::table(&header, rows, &[0, 3]))?;
    if response.next_before != 0 {
        print::note(&format!("more: maitre poison -n {}", options.max.saturating_mul(2)));
    }
    Ok(())
}

fn row(job: &v1::Job, now: i64) -> Vec<String> {
    let spec = job.spec.clone().unwrap_or_default();
    vec![
        job.id.to_string(),
        spec.tenant,
        spec.r#type,
        job.counts.unwrap_or_default().losses.to_string(),
        job.worker.clone(),
        job.finished_ms.map(|at| view::ago(at, now)).unwrap_or_default(),
        job.error.lines().last().unwrap_or_default().to_owned(),
    ]
}
