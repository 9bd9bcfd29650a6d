//! A scripted server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_message::Message as Ours;
use proto::v1::worker_server::{Worker, WorkerServer};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Timeout of each step, also on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_mins(1);

/// Listens on a port of its own.
pub(crate) struct Server {
    pub(crate) address: String,
    sessions: mpsc::UnboundedReceiver<Session>,
    task: AbortHandle,
}

/// One session of a worker, from the server's side.
pub(crate) struct Session {
    pub(crate) hello: v1::Hello,
    /// All messages but heartbeats, in order.
    messages: mpsc::UnboundedReceiver<Ours>,
    heartbeats: mpsc::UnboundedReceiver<v1::Heartbeat>,
    /// The number of messages in each batch.
    pub(crate) batches: mpsc::UnboundedReceiver<usize>,
    answers: mpsc::Sender<Result<v1::ServerBatch, Status>>,
    acknowledges: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        let incoming = TcpIncoming::bind(address.parse().unwrap()).unwrap();
        let address = incoming.local_addr().unwrap().to_string();
        let (opened, sessions) = mpsc::unbounded_channel();
        let service = WorkerServer::new(Door { opened });
        let server = tonic::transport::Server::builder().add_service(service);
        let task = tokio::spawn(server.serve_with_incoming(incoming)).abort_handle();
        Self { address, sessions, task }
    }

    /// The next session that a worker opens.
    pub(crate) async fn session(&mut self) -> Session {
        let session = timeout(DEADLINE, self.sessions.recv()).await;
        session.expect("a worker comes in time").expect("the server runs")
    }

    /// The next session, welcomed.
    pub(crate) async fn welcomed(&mut self) -> Session {
        let session = self.session().await;
        session.say(Theirs::Welcome(welcome())).await;
        session
    }

    /// Accepts no more connections.
    pub(crate) fn stop(self) {
        self.task.abort();
    }
}

/// A welcome with short times, and a lease that no test outlives by accident.
pub(crate) fn welcome() -> v1::Welcome {
    v1::Welcome {
        protocol: proto::PROTOCOL,
        generation: 1,
        heartbeat_ms: 50,
        lease_ms: 600_000,
        reconnect_ms: 20,
        reconnect_ms_max: 100,
        stale: Vec::new(),
        log_bytes_max: 1 << 20,
        result_bytes_max: 256 << 10,
        inventory_max: 100_000,
        acknowledges_output: false,
    }
}

impl Session {
    pub(crate) async fn say(&self, message: Theirs) {
        self.say_all(vec![message]).await;
    }

    pub(crate) async fn say_all(&self, messages: Vec<Theirs>) {
        let messages =
            messages.into_iter().map(|message| v1::ServerMessage { message: Some(message) });
        let batch = v1::ServerBatch { messages: messages.collect() };
        // A disconnected worker shows at the next receive.
        let _ = self.answers.send(Ok(batch)).await;
    }

    pub(crate) async fn offer(&self, job: u64, attempt: u32, spec: v1::Spec) {
        let spec = Some(Box::new(spec));
        let offer = v1::Offer { job, attempt, spec, failures: 0, resource: String::new() };
        self.say(Theirs::Offer(offer)).await;
    }

    pub(crate) async fn ack(&self, complete: &v1::Complete) {
        let ack = v1::CompleteAck { attempt: complete.attempt, stale: false };
        self.say(Theirs::CompleteAck(ack)).await;
    }

    pub(crate) async fn refuse(&self, status: Status) {
        let _ = self.answers.send(Err(status)).await;
    }

    pub(crate) fn stop_acknowledging(&self) {
        self.acknowledges.store(false, Ordering::SeqCst);
    }

    /// The next message that is not a heartbeat.
    pub(crate) async fn next(&mut self) -> Ours {
        let message = timeout(DEADLINE, self.messages.recv()).await;
        message.expect("a message comes in time").expect("the worker is connected")
    }

    /// The next message that is not a heartbeat. `None` after the worker disconnected.
    pub(crate) async fn next_or_end(&mut self) -> Option<Ours> {
        timeout(DEADLINE, self.messages.recv()).await.expect("a message, or the end, in time")
    }

    pub(crate) async fn heartbeat(&mut self) -> v1::Heartbeat {
        let heartbeat = timeout(DEADLINE, self.heartbeats.recv()).await;
        heartbeat.expect("a heartbeat comes in time").expect("the worker is connected")
    }

    /// The next heartbeat that meets a condition.
    pub(crate) async fn heartbeat_with(
        &mut self,
        is_so: impl Fn(&v1::Heartbeat) -> bool,
    ) -> v1::Heartbeat {
        let found = async {
            loop {
                let heartbeat = self.heartbeat().await;
                if is_so(&heartbeat) {
                    return heartbeat;
                }
            }
        };
        timeout(DEADLINE, found).await.expect("such a heartbeat comes in time")
    }

    /// The next completion. Skips other messages.
    pub(crate) async fn complete(&mut self) -> v1::Complete {
        self.run_to_end().await.0
    }

    /// The next completion, and the output before it.
    pub(crate) async fn run_to_end(&mut self) -> (v1::Complete, Vec<v1::LogChunk>) {
        let mut chunks = Vec::new();
        loop {
            match self.next().await {
                Ours::Complete(complete) => return (complete, chunks),
                Ours::Log(chunk) => chunks.push(chunk),
                _ => {}
            }
        }
    }

    /// Reads output until `text` was in it.
    pub(crate) async fn output_with(&mut self, text: &str) -> String {
        let mut output = String::new();
        while !output.contains(text) {
            if let Ours::Log(chunk) = self.next().await {
                output.push_str(&String::from_utf8_lossy(&chunk.bytes));
            }
        }
        output
    }
}

struct Door {
    opened: mpsc::UnboundedSender<Session>,
}

#[tonic::async_trait]
impl Worker for Door {
    type SessionStream = ReceiverStream<Result<v1::ServerBatch, Status>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::WorkerBatch>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut stream = request.into_inner();
        let (answers, answered) = mpsc::channel(1_000);
        let first = stream.message().await?.unwrap_or_default().messages;
        let [v1::WorkerMessage { message: Some(Ours::Hello(hello)) }] = &first[..] else {
            return Err(Status::aborted("a session begins with a hello alone"));
        };
        let (heard, messages) = mpsc::unbounded_channel();
        let (beat, heartbeats) = mpsc::unbounded_channel();
        let (counted, batches) = mpsc::unbounded_channel();
        let acknowledges = Arc::new(AtomicBool::new(true));
        let session = Session {
            hello: hello.clone(),
            messages,
            heartbeats,
            batches,
            answers: answers.clone(),
            acknowledges: Arc::clone(&acknowledges),
        };
        let answers = answers.downgrade();
        let _ = self.opened.send(session);
        tokio::spawn(async move {
            while let Ok(Some(batch)) = stream.message().await {
                let _ = counted.send(batch.messages.len());
                for message in batch.messages.into_iter().filter_map(|one| one.message) {
                    let Ours::Heartbeat(heartbeat) = message else {
                        let _ = heard.send(message);
                        continue;
                    };
                    let sequence = heartbeat.sequence;
                    let _ = beat.send(heartbeat);
                    if acknowledges.load(Ordering::SeqCst)
                        && let Some(answers) = answers.upgrade()
                    {
                        let ack = Theirs::HeartbeatAck(v1::HeartbeatAck { sequence });
                        let messages = vec![v1::ServerMessage { message: Some(ack) }];
                        let _ = answers.send(Ok(v1::ServerBatch { messages })).await;
                    }
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(answered)))
    }
}
