//! Starting and stopping, in which order.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use proto::v1::admin_server::AdminServer;
use proto::v1::jobs_server::JobsServer;
use proto::v1::worker_server::WorkerServer;
use store::{News, Store};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::server::NamedService as _;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;

use crate::config::{Config, ConfigError};
use crate::edge::Door;
use crate::inbox::Inbox;
use crate::recover::recover;
use crate::scheduler::Message;
use crate::task;
use crate::watch::Hub;

/// Bytes in one message, either way.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Requests at once on one connection.
const STREAMS_MAX: u32 = 1_024;
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
    /// A part of it ended without being asked to.
    #[error("a part of the scheduler ended: {0}")]
    Ended(String),
}

/// A scheduler that runs.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    stop: CancellationToken,
    scheduler: JoinHandle<Result<(), store::Error>>,
    doors: JoinHandle<Result<(), tonic::transport::Error>>,
    grace: Duration,
}

/// Builds the world from the store, then opens the doors: nothing is decided on half a world.
pub async fn start(config: Config, store: Arc<dyn Store>) -> Result<Server, Error> {
    config.check()?;
    let listen = |source| Error::Listen { address: config.listen, source };
    let listener = TcpListener::bind(config.listen).await.map_err(listen)?;
    let address = listener.local_addr().map_err(listen)?;
    let grace = Duration::from_millis(config.shutdown_grace.0.unsigned_abs());
    let config = Arc::new(config);
    let hub = Hub::new();
    let scheduler = recover(config, Arc::clone(&store), hub.clone()).await?;
    let types = scheduler.types.subscribe();
    let is_ready = scheduler.is_ready.subscribe();
    let (inbox, messages) = Inbox::new();
    let stop = CancellationToken::new();
    if let Some(shared) = store.shared() {
        task::spawn("news", pass_on(shared.listen(), inbox.clone()));
    }
    let door = Door { store, scheduler: inbox, types, hub };
    Ok(Server {
        address,
        scheduler: task::spawn("scheduler", scheduler.run(messages, stop.clone())),
        doors: task::spawn("doors", serve(door, (listener, is_ready), stop.clone())),
        stop,
        grace,
    })
}

/// What other schedulers do goes to the owner of the world.
async fn pass_on(mut news: mpsc::Receiver<News>, inbox: Inbox) {
    while let Some(one) = news.recv().await {
        if inbox.put(Message::News(one)).await.is_err() {
            return;
        }
    }
}

impl Server {
    /// Runs until `until` says to stop, or something breaks; then stops cleanly: what is under way
    /// gets its grace, and nothing that was answered is lost.
    pub async fn run(mut self, until: impl Future<Output = ()>) -> Result<(), Error> {
        let ended = |part: &str| Error::Ended(part.to_owned());
        let broken = tokio::select! {
            () = until => None,
            answer = &mut self.scheduler => Some(match answer {
                Ok(Err(error)) => Error::Store(error),
                Ok(Ok(())) => ended("the owner of the world"),
                Err(error) => ended(&error.to_string()),
            }),
            answer = &mut self.doors => Some(match answer {
                Ok(Err(error)) => Error::Serve(error),
                Ok(Ok(())) => ended("the doors"),
                Err(error) => ended(&error.to_string()),
            }),
        };
        self.stop.cancel();
        if !self.doors.is_finished() {
            // Streams of workers have no end of their own, so the grace is for requests.
            let _ = tokio::time::timeout(self.grace, &mut self.doors).await;
            self.doors.abort();
        }
        if !self.scheduler.is_finished() {
            let _ = tokio::time::timeout(self.grace, &mut self.scheduler).await;
        }
        broken.map_or(Ok(()), Err)
    }
}

async fn serve(
    door: Door,
    (listener, is_ready): (TcpListener, watch::Receiver<bool>),
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let (health, health_service) = tonic_health::server::health_reporter();
    task::spawn("health", tell_health(health, is_ready, stop.clone()));
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(proto::DESCRIPTORS)
        .build_v1()
        .expect("our own descriptors are well formed");
    let limit = MESSAGE_BYTES_MAX;
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    tonic::transport::Server::builder()
        .max_concurrent_streams(STREAMS_MAX)
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(
            WorkerServer::new(door.clone())
                .max_decoding_message_size(limit)
                .max_encoding_message_size(limit),
        )
        .add_service(
            JobsServer::new(door.clone())
                .max_decoding_message_size(limit)
                .max_encoding_message_size(limit),
        )
        .add_service(
            AdminServer::new(door)
                .max_decoding_message_size(limit)
                .max_encoding_message_size(limit),
        )
        .serve_with_incoming_shutdown(incoming, async move { stop.cancelled().await })
        .await
}

/// Says that requests are welcome for as long as the store answers and nobody stops.
async fn tell_health(
    health: HealthReporter,
    mut is_ready: watch::Receiver<bool>,
    stop: CancellationToken,
) {
    loop {
        let is_serving = *is_ready.borrow_and_update() && !stop.is_cancelled();
        let status = if is_serving { ServingStatus::Serving } else { ServingStatus::NotServing };
        for name in
            [JobsServer::<Door>::NAME, WorkerServer::<Door>::NAME, AdminServer::<Door>::NAME]
        {
            health.set_service_status(name, status).await;
        }
        if stop.is_cancelled() {
            return;
        }
        tokio::select! {
            changed = is_ready.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = stop.cancelled() => {}
        }
    }
}
