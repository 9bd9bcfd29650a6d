//! A worker that reports what a test tells it to: its health, its metrics and its inventory.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Heard;
use proto::v1::worker_client::WorkerClient;
use proto::v1::worker_message::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use crate::site::Site;

/// Shorter than the heartbeat of every scheduler in these tests.
const BEAT: Duration = Duration::from_millis(50);
/// Batches that wait for the connection.
const BATCHES_MAX: usize = 16;

/// A worker of the test's own. It accepts each job that it gets, and never ends it.
pub(crate) struct Puppet {
    beat: Arc<Mutex<v1::Heartbeat>>,
    stop: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

impl Puppet {
    /// Connects a worker. Its heartbeats say `beat` until [`Puppet::report`] changes it.
    pub(crate) fn connect(site: &Site, hello: v1::Hello, beat: v1::Heartbeat) -> Self {
        let (beat, stop) = (Arc::new(Mutex::new(beat)), CancellationToken::new());
        let session = session(site.address().to_owned(), hello, Arc::clone(&beat));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a test has room for an event loop");
            runtime.block_on(stopped.run_until_cancelled(session));
        });
        Self { beat, stop, thread: Some(thread) }
    }

    /// Changes its heartbeats, from the next one on.
    pub(crate) fn report(&self, change: impl FnOnce(&mut v1::Heartbeat)) {
        change(&mut self.beat.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The hello of a worker of one slot that runs commands.
pub(crate) fn hello(name: &str) -> v1::Hello {
    let kind = v1::WorkerType { name: "exec".to_owned(), ..v1::WorkerType::default() };
    v1::Hello {
        worker: name.to_owned(),
        instance: format!("{name}-1"),
        protocol: proto::PROTOCOL,
        types: vec![kind],
        slots: 1,
        ..v1::Hello::default()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One session, from the hello to the end of the test.
async fn session(address: String, hello: v1::Hello, beat: Arc<Mutex<v1::Heartbeat>>) {
    let endpoint = Endpoint::from_shared(format!("http://{address}"));
    let channel = endpoint.expect("a scheduler has an address").connect_lazy();
    let (outgoing, batches) = mpsc::channel(BATCHES_MAX);
    let say = async |message| {
        let messages = vec![v1::WorkerMessage { message: Some(message) }];
        outgoing.send(v1::WorkerBatch { messages }).await.is_ok()
    };
    let has_inventory = hello.has_inventory;
    assert!(say(Message::Hello(hello)).await, "nothing is before it");
    let session = WorkerClient::new(channel).session(ReceiverStream::new(batches)).await;
    let mut incoming = session.expect("the scheduler takes the worker in").into_inner();
    let mut is_welcome = false;
    while !is_welcome {
        let batch = incoming.message().await.expect("the session goes on");
        let messages = batch.expect("the scheduler answers").messages;
        is_welcome = messages.iter().any(|one| matches!(one.message, Some(Heard::Welcome(_))));
    }
    if has_inventory {
        // It holds nothing, and nothing more follows.
        say(Message::Inventory(v1::Inventory { full: true, ..v1::Inventory::default() })).await;
    }
    for sequence in 1.. {
        let now = beat.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_said = say(Message::Heartbeat(v1::Heartbeat { sequence, ..now })).await;
        let hears = async {
            while let Ok(Some(batch)) = incoming.message().await {
                let offers = batch.messages.into_iter().filter_map(offered);
                for attempt in offers {
                    beat.lock().unwrap_or_else(PoisonError::into_inner).attempts.push(attempt);
                    say(Message::Accept(v1::Accept { attempt: Some(attempt) })).await;
                }
            }
        };
        let is_over = tokio::time::timeout(BEAT, hears).await.is_ok();
        if !is_said || is_over {
            return;
        }
    }
}

fn offered(message: v1::ServerMessage) -> Option<v1::AttemptRef> {
    match message.message {
        Some(Heard::Offer(offer)) => {
            Some(v1::AttemptRef { job: offer.job, attempt: offer.attempt })
        }
        _ => None,
    }
}
