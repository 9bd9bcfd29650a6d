//! A worker, from its start to its goodbye.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use proto::v1;
use proto::v1::worker_message::Message;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::Error;
use crate::backoff::Backoff;
use crate::builder::{Builder, Settings};
use crate::lock::lock;
use crate::session::{End, session};
use crate::shared::{Condition, Departure, Shared};
use crate::stop::StopReason;
use crate::watch::watch;

/// The interval of samples of the machine.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Timeout for the acknowledgement of the last completions.
const FAREWELL: Duration = Duration::from_secs(10);
/// Timeout for the end of the connection after the goodbye.
const GOODBYE: Duration = Duration::from_secs(2);
/// Timeout for the end of attempts when the worker cannot continue.
const VANISH: Duration = Duration::from_secs(10);

/// Runs jobs for a server.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    condition: Arc<Mutex<Condition>>,
}

impl Worker {
    /// Builds a worker for the server at `address`: `host:port`, or a URL.
    pub fn builder(address: &str) -> Builder {
        Builder::new(address)
    }

    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, condition: Arc::default() }
    }

    /// The shared state of its tasks.
    #[cfg(test)]
    pub(crate) fn into_shared(self) -> Shared {
        Shared::new(self.settings, self.condition, Handle::current())
    }

    /// A handle to control the worker while it runs.
    pub fn control(&self) -> Control {
        Control { condition: Arc::clone(&self.condition) }
    }

    /// Works until `shutdown` is cancelled, or the server shuts the worker down. The worker then
    /// takes no more jobs, lets attempts finish within the grace period, gives the rest back, and
    /// says goodbye. A drop of the future kills all attempts.
    ///
    /// Handlers run on the runtime of the caller. The connection has a thread of its own, so that a
    /// blocking handler does not stop heartbeats.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let shared = Arc::new(Shared::new(self.settings, self.condition, Handle::current()));
        let abandoned = CancellationToken::new();
        let _abandon = abandoned.clone().drop_guard();
        let (done, ended) = oneshot::channel();
        let system = |what| move |source| Error::System { what, source };
        let main = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let worked = match runtime {
                Ok(runtime) => {
                    let worked = runtime.block_on(work(&shared, &shutdown, &abandoned));
                    runtime.shutdown_background();
                    worked
                }
                Err(source) => Err(Error::System { what: "an event loop", source }),
            };
            // The receiver is gone if the future was dropped.
            let _ = done.send(worked);
        };
        let thread = thread::Builder::new().name("maitre-worker".to_owned());
        thread.spawn(main).map_err(system("a thread"))?;
        ended.await.unwrap_or_else(|_| {
            Err(system("an answer of its own thread")(io::Error::other("it panicked")))
        })
    }
}

/// Controls a worker while it runs.
#[derive(Clone, Debug)]
pub struct Control {
    condition: Arc<Mutex<Condition>>,
}

impl Control {
    /// Marks the worker as unhealthy: it gets no jobs.
    pub fn unwell(&self) {
        lock(&self.condition).is_unwell = true;
    }

    /// Marks the worker as healthy.
    pub fn well(&self) {
        lock(&self.condition).is_unwell = false;
    }

    /// Publishes a JSON object for all workers once it is connected. The server accepts it only
    /// from the worker that the operator selected.
    pub fn publish(&self, json: impl Into<String>) {
        lock(&self.condition).published = Some(json.into());
    }

    /// Replaces its locality labels.
    pub fn hints(&self, hints: Vec<String>) {
        lock(&self.condition).hints = Some(hints);
    }
}

async fn work(
    shared: &Arc<Shared>,
    shutdown: &CancellationToken,
    abandoned: &CancellationToken,
) -> Result<(), Error> {
    tokio::spawn(look(Arc::clone(shared)));
    tokio::spawn(fence(Arc::clone(shared)));
    tokio::spawn(watch(Arc::clone(shared)));
    let heed = async {
        shutdown.cancelled().await;
        shared.depart(Departure::Soon);
        std::future::pending::<()>().await;
    };
    let worked = tokio::select! {
        error = connect(shared) => Err(error),
        () = leave(shared) => Ok(()),
        () = heed => Ok(()),
        () = abandoned.cancelled() => Ok(()),
    };
    // The remaining attempts cannot be reported.
    let text = "the worker is gone";
    shared.roster.stop_all(StopReason::LeaseOver, text, Duration::ZERO);
    if timeout(VANISH, shared.roster.emptied()).await.is_err() {
        tracing::error!("worker attempts did not end in time");
    }
    worked
}

/// Runs one session after the other, until a retry cannot succeed.
async fn connect(shared: &Arc<Shared>) -> Error {
    let mut backoff = Backoff::new();
    loop {
        match session(shared, &mut backoff).await {
            End::Final(error) => return error,
            End::Gone => {
                shared.gone.cancel();
                std::future::pending::<()>().await;
            }
            End::Broken(reason) => {
                // A random wait, so that workers do not all reconnect at once. Without randomness
                // it still works.
                let wait = backoff.next(getrandom::u64().unwrap_or(0));
                tracing::warn!(reason, ?wait, "worker connection failed");
                sleep(wait).await;
            }
        }
    }
}

/// Waits for a departure, and leaves.
async fn leave(shared: &Shared) {
    let mut departure = shared.departure.subscribe();
    if departure.wait_for(|departure| *departure > Departure::No).await.is_err() {
        return;
    }
    shared.roster.leave();
    let _ = shared.outbox.answer(Message::Draining(v1::Draining { draining: true }));
    let mut stop_at: Option<Instant> = None;
    let grace = loop {
        let now = *departure.borrow_and_update();
        match now {
            Departure::No | Departure::WhenEmpty => {}
            Departure::Soon => {
                stop_at.get_or_insert_with(|| Instant::now() + shared.settings.leave_grace);
            }
            Departure::Now(grace) => break grace,
        }
        let late = async {
            match stop_at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.roster.emptied() => break Duration::ZERO,
            () = late => break shared.settings.stop_grace,
            _ = departure.changed() => {}
        }
    };
    shared.roster.stop_all(StopReason::Leaving, "the worker shuts down", grace);
    shared.roster.emptied().await;
    if timeout(FAREWELL, shared.outbox.all_acknowledged()).await.is_err() {
        tracing::warn!("worker completions not acknowledged before exit");
    }
    if shared.outbox.is_connected() {
        shared.outbox.goodbye();
        let _ = timeout(GOODBYE, shared.gone.cancelled()).await;
    }
}

/// Kills all attempts when the lease is over.
async fn fence(shared: Arc<Shared>) {
    let mut over_at = shared.lease.over_at();
    loop {
        let at = *over_at.borrow_and_update();
        let over = async {
            match at {
                Some(at) => sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let is_over = tokio::select! {
            () = over => true,
            _ = over_at.changed() => false,
        };
        if is_over {
            shared.fence();
            // Once is enough, until the next lease begins.
            if over_at.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Samples the machine periodically, on a thread that may block.
async fn look(shared: Arc<Shared>) {
    let gauges = Arc::clone(&shared.gauges);
    let _ = tokio::task::spawn_blocking(move || gauges.measure()).await;
    loop {
        let gauges = Arc::clone(&shared.gauges);
        let _ = tokio::task::spawn_blocking(move || gauges.look()).await;
        sleep(LOOK_EVERY).await;
    }
}
