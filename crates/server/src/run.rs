//! Starting and stopping, in which order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use model::JobId;
use store::{News, Store};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use crate::config::{Config, ConfigError};
use crate::edge::front::Front;
use crate::edge::listen::{Connection, incoming};
use crate::edge::router::router;
use crate::edge::{Door, serving, tls};
use crate::inbox::{Envelope, Inbox};
use crate::meters::Tolls;
use crate::patience::patiently;
use crate::recover::recover;
use crate::scheduler::{Message, Scheduler};
use crate::secret::Secret;
use crate::share::watched::{hear_others, tell_others};
use crate::task::{Tasks, Tracker};
use crate::tokens::{Grant, Scope, Token, Tokens};
use crate::watch::Hub;
use crate::webhook;
use crate::what_if::Replays;

/// A token in a file has at least so many characters.
const TOKEN_CHARACTERS_MIN: usize = 32;
/// News of what others changed that may wait for those who watch.
const CHANGES_MAX: usize = 256;
/// Who is not heard of for so long is asked whether it is there, and given as long to answer.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why a scheduler did not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It may not be set up like this.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It could not listen.
    #[error("could not listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The connections failed.
    #[error("could not serve")]
    Serve(#[from] tonic::transport::Error),
    /// A task ended, although the scheduler was not stopped.
    #[error("could not keep running: the task `{name}` ended before shutdown")]
    TaskEnded {
        /// The task.
        name: &'static str,
    },
    /// A task panicked.
    #[error("could not keep running: the task `{name}` panicked: {message}")]
    TaskPanicked {
        /// The task.
        name: &'static str,
        /// The message of the panic.
        message: String,
    },
}

/// A scheduler that runs.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    tasks: Tasks,
    requests: Tracker,
    grace: Duration,
    tokens: Tokens,
}

/// The tasks for which a shutdown waits.
const DOORS: &str = "doors";
const SCHEDULER: &str = "scheduler";

/// Tokens that others may have changed are read again this often.
const TOKENS_EVERY: Duration = Duration::from_secs(30);

/// The outermost door, open: whoever asks is told that there is life, and that it is not time yet.
pub struct Doors {
    /// Where it listens.
    pub address: SocketAddr,
    config: Arc<Config>,
    front: Front,
    tasks: Tasks,
}

/// Opens the outermost door, builds the world from the store, then opens the others: nothing is
/// decided on half a world.
pub async fn start(config: Config, store: Arc<dyn Store>) -> Result<Server, Error> {
    let doors = open(config).await?;
    Box::pin(doors.start(store)).await
}

/// Opens the outermost door. There may be no store yet.
pub async fn open(config: Config) -> Result<Doors, Error> {
    config.check()?;
    let tls = tls::acceptor(&config)?;
    let listen = |source| Error::Listen { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let connections_max = config.limits.connections_max;
    let front = Front { connections_max, ..Front::default() };
    let mut tasks = Tasks::default();
    let connections = incoming(listener, tls, connections_max, (&mut tasks, &front.requests));
    let requests_max = config.limits.requests_max;
    let doors = serve(front.clone().router(), connections, (requests_max, front.stop.clone()));
    tasks.spawn(DOORS, doors);
    Ok(Doors { address, config: Arc::new(config), front, tasks })
}

impl std::fmt::Debug for Doors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doors").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Doors {
    /// Repeats `ask` until the store answers, with a pause in between. An error that does not pass
    /// is returned at once. Fails if a task ends meanwhile.
    pub async fn patiently<T, F>(&mut self, ask: impl FnMut() -> F) -> Result<T, Error>
    where
        F: Future<Output = Result<T, Error>>,
    {
        tokio::select! {
            answer = patiently(ask) => answer,
            error = self.tasks.failed() => Err(error),
        }
    }

    /// Builds the world from the store, and lets everybody in.
    pub async fn start(mut self, store: Arc<dyn Store>) -> Result<Server, Error> {
        let _ = self.front.store.set(Arc::clone(&store));
        let (config, front) = (Arc::clone(&self.config), self.front.clone());
        let begun = Box::pin(self.patiently(|| begin(&config, &store, &front))).await;
        let grace = Duration::from_millis(config.shutdown_grace.0.unsigned_abs());
        let (built, tokens) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                front.built.cancel();
                front.stop.cancel();
                self.tasks.stop(DOORS, grace).await;
                return Err(error);
            }
        };
        let (mut tasks, stop) = (self.tasks, front.stop.clone());
        if store.shared().is_some() {
            share(&mut tasks, &built.door, &store);
        }
        let (router, reporter) = router(built.door).await;
        let _ = front.inside.set(router);
        front.built.cancel();
        tasks.spawn("health", serving::keep_saying(reporter, front.clone()));
        if config.webhooks.enabled {
            let (store, outside) = (Arc::clone(&store), (front.requests.clone(), stop.clone()));
            let webhooks = webhook::run(Arc::clone(&config), store, built.tolls, outside);
            tasks.spawn("webhooks", webhooks);
        }
        tasks.spawn("tokens", keep_tokens(tokens.clone(), store, stop.clone()));
        tasks.spawn(SCHEDULER, built.scheduler.run(built.messages, stop.clone()));
        let requests = front.requests;
        Ok(Server { address: self.address, stop, tasks, requests, grace, tokens })
    }
}

/// Exchanges news with the other schedulers of a store.
fn share(tasks: &mut Tasks, door: &Door, store: &Arc<dyn Store>) {
    let Some(shared) = store.shared() else { return };
    let (inbox, hub, stop) = (door.scheduler.clone(), door.hub.clone(), door.stop.clone());
    let (changed, changes) = mpsc::channel(CHANGES_MAX);
    tasks.spawn("news", pass_on(shared.listen(), inbox, (changed, hub.clone())));
    tasks.spawn("watched", hear_others(changes, hub.clone(), Arc::clone(store)));
    let telling = tell_others(hub, Arc::clone(store));
    tasks.spawn("watched elsewhere", async move {
        stop.run_until_cancelled(telling).await;
    });
}

async fn begin(
    config: &Arc<Config>,
    store: &Arc<dyn Store>,
    front: &Front,
) -> Result<(Built, Tokens), Error> {
    let tokens = tokens(config, store).await?;
    let built = build(config, store, front, &tokens).await?;
    Ok((built, tokens))
}

/// What other schedulers do goes to the owner of the world, and to those who watch.
async fn pass_on(
    mut news: mpsc::Receiver<News>,
    inbox: Inbox,
    (changed, hub): (mpsc::Sender<Vec<JobId>>, Hub),
) {
    while let Some(one) = news.recv().await {
        match one {
            News::Changed(jobs) => {
                // Nobody waits for those who watch: they hear that they missed something.
                if changed.try_send(jobs).is_err() {
                    hub.miss();
                }
            }
            News::Missed => hub.miss(),
            News::Work | News::Listening | News::CalledOff(_) | News::Settings | News::Peers => {
                if inbox.put(Message::News(one)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// What a scheduler is made of, before it runs.
pub(crate) struct Built {
    pub(crate) scheduler: Scheduler,
    pub(crate) messages: mpsc::Receiver<Envelope>,
    pub(crate) door: Door,
    tolls: Tolls,
}

pub(crate) async fn build(
    config: &Arc<Config>,
    store: &Arc<dyn Store>,
    front: &Front,
    tokens: &Tokens,
) -> Result<Built, Error> {
    let hub = Hub::new();
    let mut scheduler = recover(Arc::clone(config), Arc::clone(store), hub.clone()).await?;
    scheduler.health = front.health.clone();
    let types = scheduler.types.subscribe();
    let (inbox, messages) = Inbox::new();
    let tolls = Tolls::default();
    let watches_max = config.limits.watches_max.min(Semaphore::MAX_PERMITS);
    let door = Door {
        store: Arc::clone(store),
        scheduler: inbox,
        types,
        hub,
        config: Arc::clone(config),
        tokens: tokens.clone(),
        watches: Arc::new(Semaphore::new(watches_max)),
        tolls: tolls.clone(),
        turn: Arc::default(),
        replays: Replays::default(),
        stop: front.stop.clone(),
        requests: front.requests.clone(),
    };
    Ok(Built { scheduler, messages, door, tolls })
}

/// The tokens that hold. An address that others can reach needs one at least.
async fn tokens(config: &Config, store: &Arc<dyn Store>) -> Result<Tokens, Error> {
    let tokens = Tokens::default();
    tokens.read(&store.settings().await?);
    if let Some(path) = &config.admin_token_file {
        let unusable = |problem: String| ConfigError {
            field: "admin_token_file",
            problem: format!("is `{}`, which {problem}", path.display()),
            hint: "it holds one token of at least 32 characters: `openssl rand -hex 32`",
        };
        let text = std::fs::read_to_string(path);
        let text = text.map_err(|error| unusable(format!("cannot be read: {error}")))?;
        if text.trim().len() < TOKEN_CHARACTERS_MIN {
            return Err(unusable("is too short to be a secret".to_owned()).into());
        }
        tokens.give(Token::of_file(&text, Grant::everything()));
    }
    if !config.listen.ip().is_loopback() && !tokens.is_on() {
        return Err(Error::Config(ConfigError {
            field: "listen",
            problem: format!(
                "is `{}`, which others can reach, and there are no tokens",
                config.listen
            ),
            hint: "`maitre token new --scope admin --data-dir DIR` makes the first one; or set \
                   `admin_token_file`",
        }));
    }
    Ok(tokens)
}

/// Another scheduler on the same store may have made or revoked some.
async fn keep_tokens(tokens: Tokens, store: Arc<dyn Store>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(TOKENS_EVERY) => {}
            () = stop.cancelled() => return,
        }
        // What cannot be read now is read later; until then, what was known holds.
        if let Ok(settings) = store.settings().await {
            tokens.read(&settings);
        }
    }
}

impl Server {
    /// A token for a worker in this process, good as long as the process; `None` if the system has
    /// no random numbers.
    pub fn worker_token(&self) -> Option<Secret> {
        self.tokens.own(Scope::Work)
    }

    /// Runs until `until` completes or a task ends, and then stops cleanly. Requests and calls of
    /// the store that are in flight get the grace. No acknowledged change is lost.
    pub async fn run(mut self, until: impl Future<Output = ()>) -> Result<(), Error> {
        let broken = tokio::select! {
            () = until => None,
            error = self.tasks.failed() => Some(error),
        };
        self.stop.cancel();
        // Streams of workers have no end of their own, so the grace is for requests.
        let of_doors = self.tasks.stop(DOORS, self.grace).await;
        let (of_scheduler, ()) =
            tokio::join!(self.tasks.stop(SCHEDULER, self.grace), self.requests.stop(self.grace));
        let errors = [broken, of_doors, of_scheduler];
        errors.into_iter().flatten().reduce(cause).map_or(Ok(()), Err)
    }
}

/// The error that explains the other one. A task may end because a different one failed.
fn cause(first: Error, next: Error) -> Error {
    match first {
        Error::TaskEnded { .. } => next,
        Error::Config(_)
        | Error::Listen { .. }
        | Error::Store(_)
        | Error::Serve(_)
        | Error::TaskPanicked { .. } => first,
    }
}

async fn serve(
    router: axum::Router,
    incoming: impl Stream<Item = io::Result<Connection>>,
    (requests_max, stop): (u32, CancellationToken),
) -> Result<(), tonic::transport::Error> {
    tonic::transport::Server::builder()
        .accept_http1(true)
        .max_concurrent_streams(requests_max)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_routes(Routes::from(router))
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await
}
