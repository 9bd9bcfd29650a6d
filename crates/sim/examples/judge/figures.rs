//! What is measured of a replay.

use model::{Fixed, Millis};
use sim::{Conditions, Estimates, Fleet, Measures, Workload, replay};

use crate::policy::Policy;

/// Figures of a replay.
#[derive(Clone, Copy)]
pub(crate) struct Figures {
    /// Mean wait, p99, longest wait, in seconds, and slowdown.
    pub(crate) waits: [f64; 4],
    /// The most that a tenant got too much or too little, as a part of its due, while all tenants
    /// were backlogged. `None` if that was never so.
    pub(crate) error: Option<f64>,
}

impl Figures {
    /// Replays a workload on a fleet and measures it.
    pub(crate) fn new(
        policy: &Policy,
        source: &str,
        (workload, fleet): (&Workload, &Fleet),
        seed: u64,
    ) -> Result<Self, String> {
        let unknown = || format!("there is no source of estimates `{source}`");
        let estimates = Estimates::parse(source).ok_or_else(unknown)?;
        let mut scheduler = policy.scheduler((workload, fleet), estimates, seed)?;
        let conditions = Conditions::default();
        let replay = replay(workload, fleet, &mut *scheduler, &conditions, &mut |_| {});
        let replay = replay.map_err(|error| error.to_string())?;
        let measures = Measures::new(workload, fleet, &replay);
        let seconds = |Millis(ms)| Fixed::thousandths(ms).to_f64();
        let all = &measures.all;
        Ok(Self {
            waits: [all.mean_ms / 1_000.0, seconds(all.p99), seconds(all.max), all.slowdown],
            error: measures.share.map(|share| share.error),
        })
    }
}
