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

/// How often the machine is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long a worker that leaves waits for the server to take its last completions.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long it then waits for the server to hang up.
const GOODBYE: Duration = Duration::from_secs(2);
/// How long attempts have to vanish when the worker cannot go on.
const VANISH: Duration = Duration::from_secs(10);

/// Runs jobs for a server.
#[derive(Debug)]
pub struct Worker {
    settings: Settings,
    condition: Arc<Mutex<Condition>>,
}

impl Worker {
    /// Puts a worker together that works for the server at `address`: `host:port`, or a URL.
    pub fn builder(address: &str) -> Builder {
        Builder::new(address)
    }

    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings, condition: Arc::default() }
    }

    /// What its tasks would share.
    #[cfg(test)]
    pub(crate) fn into_shared(self) -> Shared {
        Shared::new(self.settings, self.condition, Handle::current())
    }

    /// A way to say things about the worker while it runs.
    pub fn control(&self) -> Control {
        Control { condition: Arc::clone(&self.condition) }
    }

    /// Works until `shutdown` is cancelled, or the server sends it away. It then takes no more
    /// work, lets attempts finish within the grace, stops the rest and gives them back, and says
    /// goodbye. Dropping the future kills all attempts.
    ///
    /// Handlers run on the runtime that this is called on. The connection has a thread of its
    /// own, so that a handler that blocks does not stop the heartbeats.
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
            // Nobody listens if the future was dropped.
            let _ = done.send(worked);
        };
        let thread = thread::Builder::new().name("maitre-worker".to_owned());
        thread.spawn(main).map_err(system("a thread"))?;
        ended.await.unwrap_or_else(|_| {
            Err(system("an answer of its own thread")(io::Error::other("it panicked")))
        })
    }
}

/// Says things about a worker while it runs.
#[derive(Clone, Debug)]
pub struct Control {
    condition: Arc<Mutex<Condition>>,
}

impl Control {
    /// It is not well enough to take work.
    pub fn unwell(&self) {
        lock(&self.condition).is_unwell = true;
    }

    /// It is well again.
    pub fn well(&self) {
        lock(&self.condition).is_unwell = false;
    }

    /// Publishes a JSON object for all workers, once it is connected; the server takes it only from
    /// the worker that the operator chose.
    pub fn publish(&self, json: impl Into<String>) {
        lock(&self.condition).published = Some(json.into());
    }

    /// Its locality labels are these from now on.
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
    // Whatever is left has nobody to report to.
    let text = "the worker is gone";
    shared.roster.stop_all(StopReason::LeaseOver, text, Duration::ZERO);
    if timeout(VANISH, shared.roster.emptied()).await.is_err() {
        tracing::error!("some attempts did not end");
    }
    worked
}

/// Has one session after the other, until there is no point in another.
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
                // Without chance, all workers would come back at once; with it, one does not
                // depend on it.
                let wait = backoff.next(getrandom::u64().unwrap_or(0));
                tracing::warn!(reason, ?wait, "no connection to the server");
                sleep(wait).await;
            }
        }
    }
}

/// Waits until it is to leave, and does so.
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
        tracing::warn!("the server did not take the last completions");
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
            // Once is enough, until another lease begins.
            if over_at.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Looks at the machine now and then, where it disturbs nobody.
async fn look(shared: Arc<Shared>) {
    let gauges = Arc::clone(&shared.gauges);
    let _ = tokio::task::spawn_blocking(move || gauges.measure()).await;
    loop {
        let gauges = Arc::clone(&shared.gauges);
        let _ = tokio::task::spawn_blocking(move || gauges.look()).await;
        sleep(LOOK_EVERY).await;
    }
}
