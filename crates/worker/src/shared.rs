//! The shared state of a worker's tasks.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::builder::Settings;
use crate::detection::Detections;
use crate::known::Told;
use crate::lease::Lease;
use crate::lock::lock;
use crate::metrics::{Gauges, Speeds};
use crate::outbox::Outbox;
use crate::roster::Roster;
use crate::stop::StopReason;

/// One worker, over all its sessions.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) roster: Arc<Roster>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) lease: Lease,
    /// Configurations and the context of the server.
    pub(crate) known: Told,
    pub(crate) detections: Detections,
    pub(crate) speeds: Arc<Speeds>,
    pub(crate) gauges: Arc<Gauges>,
    pub(crate) condition: Arc<Mutex<Condition>>,
    /// The runtime of handlers. Heartbeats have a different one, which a handler cannot block.
    pub(crate) handlers: Handle,
    /// Whether any session ever began.
    pub(crate) was_welcomed: AtomicBool,
    /// The number of the last heartbeat, over all sessions.
    pub(crate) sequence: AtomicU64,
    /// Ends the session, because the server acknowledges no heartbeats.
    pub(crate) cut: Notify,
    pub(crate) departure: watch::Sender<Departure>,
    /// The goodbye is sent, and the server closed the connection.
    pub(crate) gone: CancellationToken,
    limits: Mutex<Limits>,
}

/// The condition of a worker that its program sets at run time.
#[derive(Debug, Default)]
pub(crate) struct Condition {
    pub(crate) is_unwell: bool,
    /// `None` means those of the hello.
    pub(crate) hints: Option<Vec<String>>,
    /// A context to publish with the next heartbeat.
    pub(crate) published: Option<String>,
}

/// Whether the worker leaves, and how fast. Later variants are more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Departure {
    No,
    /// After the end of its attempts.
    WhenEmpty,
    /// Attempts may continue for `leave_grace`.
    Soon,
    /// Attempts are stopped, with this grace period.
    Now(Duration),
}

/// The limits of the server for one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) result_bytes_max: usize,
    pub(crate) log_bytes_max: u64,
}

impl Shared {
    pub(crate) fn new(
        settings: Settings,
        condition: Arc<Mutex<Condition>>,
        handlers: Handle,
    ) -> Self {
        let slots = settings.hello.slots;
        Self {
            settings,
            roster: Arc::new(Roster::new(slots)),
            outbox: Arc::new(Outbox::new(slots)),
            lease: Lease::new(),
            known: Told::default(),
            detections: Detections::default(),
            speeds: Arc::default(),
            gauges: Arc::new(Gauges::new(slots)),
            condition,
            handlers,
            was_welcomed: AtomicBool::new(false),
            sequence: AtomicU64::new(0),
            cut: Notify::new(),
            departure: watch::Sender::new(Departure::No),
            gone: CancellationToken::new(),
            limits: Mutex::new(Limits { result_bytes_max: 0, log_bytes_max: 0 }),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        *lock(&self.limits)
    }

    pub(crate) fn set_limits(&self, limits: Limits) {
        *lock(&self.limits) = limits;
    }

    /// Leaves, unless the worker already leaves as fast.
    pub(crate) fn depart(&self, departure: Departure) {
        self.departure.send_if_modified(|known| {
            let is_faster = *known < departure;
            if is_faster {
                *known = departure;
            }
            is_faster
        });
    }

    /// The lease is over: kills every attempt without a report, and reconnects.
    pub(crate) fn fence(&self) {
        let text = "the lease is over";
        let n_attempts = self.roster.stop_all(StopReason::LeaseOver, text, Duration::ZERO);
        if n_attempts > 0 {
            tracing::error!(n_attempts, "no heartbeat was acknowledged in time: all are killed");
        }
        self.cut.notify_waiters();
    }
}
