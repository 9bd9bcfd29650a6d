//! What asks a program to stop.

use anyhow::anyhow;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::print::{self, Failure};

/// Heard from the moment it is made: whoever reads that a program has started may stop it at once.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let heard = |kind| {
            signal(kind)
                .map_err(|error| Failure::Other(anyhow!(error).context("listen for signals")))
        };
        Ok(Self {
            interrupt: heard(SignalKind::interrupt())?,
            terminate: heard(SignalKind::terminate())?,
        })
    }

    /// Cancels `stop` at the first signal, and returns at the second: then nobody waits any longer.
    pub(crate) async fn stop(mut self, stop: CancellationToken) {
        for _ in 0..2 {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            print::note("stopping; once more to stop at once");
            stop.cancel();
        }
    }
}
