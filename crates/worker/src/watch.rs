//! One task checks all attempts. It stops those that timed out, and drops those that do not stop
//! when they are killed. It runs on a runtime that no handler can block.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::Failure;
use crate::attempt::Ticket;
use crate::life::finish;
use crate::shared::Shared;
use crate::stop::StopReason;

/// The time that a handler has after its kill, before it is dropped.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) async fn watch(shared: Arc<Shared>) {
    loop {
        while let Some(ticket) = shared.roster.due(Instant::now()) {
            look_after(&shared, &ticket);
        }
        tokio::select! {
            () = until(shared.roster.next_alarm()) => {}
            () = shared.roster.is_sooner.notified() => {}
        }
    }
}

fn look_after(shared: &Shared, ticket: &Arc<Ticket>) {
    let now = Instant::now();
    let next = match ticket.stops.kill_at() {
        Some(at) if at <= now && !ticket.stops.killed.is_cancelled() => {
            ticket.stops.killed.cancel();
            // From now on: after a suspension of the process, the handler has not seen its kill
            // before.
            Some(now + PATIENCE)
        }
        Some(at) if at + PATIENCE <= now => {
            ticket.abort();
            let failure = Failure::transient("it did not stop when it was made to");
            return finish(shared, ticket, Err(failure));
        }
        Some(at) if at <= now => Some(at + PATIENCE),
        Some(at) => Some(at),
        None => match ticket.due() {
            Some((at, text)) if at <= now => {
                let grace = shared.settings.stop_grace;
                return shared.roster.stop(ticket, StopReason::Timeout, text, grace);
            }
            // The attempt may have reported since.
            due => due.map(|(at, _)| at),
        },
    };
    if let Some(at) = next {
        shared.roster.look_at(ticket.key, at);
    }
}

/// `None` means never.
async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
