//! The worker of a benchmark: its jobs do nothing, or say how long after their submission they
//! started.

use anyhow::anyhow;
use clap::Args;
use tokio_util::sync::CancellationToken;
use worker::{Attempt, Done, Worker};

use super::site::NOOP;
use crate::bench::machine::wall_nanos;
use crate::client::{Target, runtime};
use crate::print::{self, Failure};

/// Options of a benchmark's worker.
#[derive(Args)]
pub(crate) struct Options {
    #[arg(long)]
    name: String,
    #[arg(long)]
    slots: u32,
}

/// Works until it is killed.
pub(crate) fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    crate::serve::logging();
    let worker = Worker::builder(&target.url()).name(&options.name).slots(options.slots);
    let worker = worker.type_(NOOP, 0, |attempt: Attempt| async move {
        if let Ok(submitted) = <[u8; 8]>::try_from(attempt.payload()) {
            let nanos = wall_nanos().saturating_sub(u64::from_le_bytes(submitted));
            let _ = print::data(&nanos.to_string());
        }
        Ok(Done::new())
    });
    let worker = worker.build().map_err(|error| anyhow!(error))?;
    runtime()?.block_on(worker.run(CancellationToken::new())).map_err(|error| anyhow!(error).into())
}
