//! Building a world from a snapshot.

use std::time::Duration;

use decide::World;
use model::{Event, Preset};
use serde_json::{Value, json};

use super::machine::{Progress, timed};
use super::workload::Workload;
use crate::print::Failure;

const N_JOBS: usize = 100_000;
const N_WORKERS: usize = 1_000;

/// How long reading and building took.
pub(crate) struct Report {
    bytes: usize,
    read: Duration,
    build: Duration,
}

impl Report {
    pub(crate) fn json(&self) -> Value {
        json!({
            "jobs": N_JOBS,
            "snapshot_bytes": self.bytes,
            "parse_ms": millis(self.read),
            "build_ms": millis(self.build),
        })
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "A snapshot of {N_JOBS} jobs ({} MB): read in {:.0} ms, a world built in {:.0} ms\n",
            self.bytes / 1_000_000,
            millis(self.read),
            millis(self.build),
        )
    }
}

/// Writes a world down, reads it and builds it again.
pub(crate) fn measure(progress: &Progress) -> Result<Report, Failure> {
    progress.say(format!("a snapshot of {N_JOBS} jobs"));
    let mut workload = Workload::new(Preset::Balanced);
    let mut world = World::new(Preset::Balanced.policy(), 0);
    Workload::tenants().for_each(|event| world.apply(event));
    for at in 0..N_WORKERS {
        world.apply(Event::Joined(Box::new(workload.worker(at))));
    }
    for _ in 0..N_JOBS {
        world.apply(Event::Queued(Box::new(workload.job())));
    }
    let text = snapshot::write_text(&world.snapshot());
    let (parsed, read) = timed(|| snapshot::parse(&text));
    let parsed = parsed.map_err(|error| anyhow::anyhow!("our own snapshot: {error}"))?;
    let (_world, build) = timed(|| World::from_snapshot(&parsed));
    Ok(Report { bytes: text.len(), read, build })
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 10_000.0).round() / 10.0
}
