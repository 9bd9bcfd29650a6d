//! What the wire could do if nobody decided or kept anything: a worker's stream that is answered
//! at once, by another process.

use std::io::{BufRead as _, BufReader};
use std::pin::Pin;
use std::process::Stdio;

use anyhow::{Context as _, anyhow};
use proto::v1;
use proto::v1::worker_client::WorkerClient;
use proto::v1::worker_server::{Worker, WorkerServer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status, Streaming};

use super::site::{Process, this};
use super::{PAUSE, Spread, nanos, per_second};
use crate::bench::machine::now;
use crate::client::runtime;
use crate::print::{self, Failure};

/// Messages under way at once.
const IN_FLIGHT: u64 = 512;

/// The wire alone.
pub(crate) struct Wire {
    /// Messages that came back in a second, on one stream.
    pub(crate) messages: f64,
    /// One message there and back.
    pub(crate) round_trip: Spread,
}

struct Echo;

#[tonic::async_trait]
impl Worker for Echo {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<v1::ServerBatch, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::WorkerBatch>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let answer = |batch: Result<v1::WorkerBatch, Status>| {
            let answer = v1::server_message::Message::HeartbeatAck(v1::HeartbeatAck::default());
            let answer = v1::ServerMessage { message: Some(answer) };
            batch.map(|batch| v1::ServerBatch { messages: vec![answer; batch.messages.len()] })
        };
        Ok(Response::new(Box::pin(request.into_inner().map(answer))))
    }
}

/// Answers every message, until it is killed.
pub(crate) fn serve() -> Result<(), Failure> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
        print::data(&listener.local_addr().context("listen")?.to_string())?;
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let server = Server::builder().add_service(WorkerServer::new(Echo));
        Ok(server.serve_with_incoming(incoming).await.context("answer messages")?)
    })
}

/// Sends messages to such a process, for so many seconds.
pub(crate) async fn measure(seconds: f64) -> Result<Wire, Failure> {
    let child = this(&["bench", "echo"])?.stdout(Stdio::piped()).spawn();
    let mut child = child.context("start an echo")?;
    let said = child.stdout.take().context("an echo has an output")?;
    let _process = Process::of(child);
    let mut address = String::new();
    BufReader::new(said).read_line(&mut address).context("hear the echo")?;
    let endpoint = Endpoint::from_shared(format!("http://{}", address.trim()));
    let channel = endpoint.context("an address")?.tcp_nodelay(true).connect().await;
    let mut client = WorkerClient::new(channel.context("reach the echo")?);
    let (sender, receiver) = mpsc::channel(usize::try_from(IN_FLIGHT).unwrap_or(1));
    let stream = client.session(ReceiverStream::new(receiver)).await;
    let mut stream = stream.map_err(|status| anyhow!("no echo: {status}"))?.into_inner();

    let (start, mut trips) = (now(), Vec::new());
    while start.elapsed().as_secs_f64() < seconds / 2.0 {
        let begun = now();
        exchange(&sender, &mut stream, 1).await?;
        trips.push(nanos(begun.elapsed()));
        tokio::time::sleep(PAUSE).await;
    }
    let (start, mut n_messages) = (now(), 0);
    while start.elapsed().as_secs_f64() < seconds / 2.0 {
        exchange(&sender, &mut stream, IN_FLIGHT).await?;
        n_messages += IN_FLIGHT;
    }
    let messages = per_second(n_messages, start.elapsed());
    Ok(Wire { messages, round_trip: Spread::of(trips) })
}

/// Sends so many messages, each by itself, and waits for as many answers.
async fn exchange(
    sender: &mpsc::Sender<v1::WorkerBatch>,
    stream: &mut Streaming<v1::ServerBatch>,
    n_messages: u64,
) -> Result<(), Failure> {
    let message = v1::worker_message::Message::Accept(v1::Accept::default());
    let batch = v1::WorkerBatch { messages: vec![v1::WorkerMessage { message: Some(message) }] };
    for _ in 0..n_messages {
        sender.send(batch.clone()).await.context("send a message")?;
    }
    for _ in 0..n_messages {
        let answer = stream.message().await;
        answer.map_err(|status| anyhow!("no echo: {status}"))?;
    }
    Ok(())
}
