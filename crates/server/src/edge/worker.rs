//! The workers' door: one stream each.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use model::Name;
use model::maxima::NAME_BYTES_MAX;
use proto::v1::worker_message::Message as Said;
use proto::v1::worker_server::Worker;
use proto::{PROTOCOL, PROTOCOL_OLDEST, v1};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{Door, answer};
use crate::fleet::words::{Arrival, Heard, StreamId, heard};
use crate::scheduler::Message;

/// Batches that a worker may be behind before it is cut off.
const OUTBOX_MAX: usize = 1_024;
/// Who does not say hello within this is shown the door.
const HELLO_WAIT: Duration = Duration::from_secs(5);

/// What a worker's stream brings it.
pub(crate) type Told = mpsc::Receiver<Result<v1::ServerBatch, Status>>;

static STREAMS: AtomicU64 = AtomicU64::new(1);

#[tonic::async_trait]
impl Worker for Door {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<v1::ServerBatch, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::WorkerBatch>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let mut incoming = request.into_inner();
        let (hello, rest) = hello(&mut incoming).await?;
        let stream = StreamId(STREAMS.fetch_add(1, Ordering::Relaxed));
        let (arrival, outgoing) = arrival(stream, hello)?;
        // Weak: when the owner of the world lets go of a worker, its stream ends.
        let weak = arrival.outbox.downgrade();
        self.tell(Message::Hello(Box::new(arrival))).await?;
        let door = self.clone();
        self.requests.spawn("worker-stream", async move {
            if let Err(status) = door.listen(stream, rest, &mut incoming).await {
                tracing::warn!(%status, "a worker said something wrong");
                if let Some(outbox) = weak.upgrade() {
                    let _ = outbox.try_send(Err(status));
                }
            }
            let _ = door.tell(Message::Parted(stream)).await;
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing))))
    }
}

impl Door {
    /// Passes on what a worker says, until its stream ends or it says something wrong.
    async fn listen(
        &self,
        stream: StreamId,
        first: Vec<v1::WorkerMessage>,
        incoming: &mut Streaming<v1::WorkerBatch>,
    ) -> Result<(), Status> {
        let mut messages = first;
        loop {
            let mut said = Vec::with_capacity(messages.len());
            for message in messages {
                said.extend(checked(message)?);
            }
            if !said.is_empty() {
                self.tell(Message::Heard(stream, said)).await?;
            }
            messages = match incoming.message().await {
                Ok(Some(batch)) => batch.messages,
                // A connection that breaks is no news: the worker comes back, or its lease ends.
                Ok(None) | Err(_) => return Ok(()),
            };
        }
    }
}

/// A worker that came, and what it will be told.
pub(crate) fn arrival(stream: StreamId, hello: v1::Hello) -> Result<(Arrival, Told), Status> {
    let protocol = common_protocol(&hello)?;
    let (outbox, outgoing) = mpsc::channel(OUTBOX_MAX);
    proto::text("hello.software", &hello.software, NAME_BYTES_MAX)
        .map_err(|invalid| answer::invalid(&invalid))?;
    let worker = hello.checked().map_err(|invalid| answer::invalid(&invalid.inside("hello")))?;
    let detecting = hello.types.iter().filter(|kind| kind.detect_max > 0);
    let detects = detecting.map(|kind| (Name::new(&kind.name), kind.detect_max)).collect();
    let runs_jobs = hello.runs_jobs();
    let arrival = Arrival {
        stream,
        worker,
        instance: hello.instance,
        software: hello.software,
        protocol,
        attempts: hello.attempts,
        has_inventory: hello.has_inventory,
        detects,
        runs_jobs,
        outbox,
    };
    Ok((arrival, outgoing))
}

pub(crate) fn checked(message: v1::WorkerMessage) -> Result<Option<Heard>, Status> {
    heard(message).map_err(|invalid| answer::invalid(&invalid))
}

/// The hello that every stream starts with, and what came with it.
async fn hello(
    incoming: &mut Streaming<v1::WorkerBatch>,
) -> Result<(v1::Hello, Vec<v1::WorkerMessage>), Status> {
    let first = tokio::time::timeout(HELLO_WAIT, incoming.message());
    let first = first.await.map_err(|_| Status::deadline_exceeded("no hello came"))??;
    let mut messages = first.unwrap_or_default().messages.into_iter();
    let Some(v1::WorkerMessage { message: Some(Said::Hello(hello)) }) = messages.next() else {
        return Err(Status::failed_precondition("the first message must be `hello`"));
    };
    Ok((hello, messages.collect()))
}

/// The newest version that both sides speak.
fn common_protocol(hello: &v1::Hello) -> Result<u32, Status> {
    let newest = hello.protocol;
    let oldest = if hello.protocol_oldest == 0 { newest } else { hello.protocol_oldest };
    let common = newest.min(PROTOCOL);
    if common >= oldest.max(PROTOCOL_OLDEST) {
        return Ok(common);
    }
    let older = if newest < PROTOCOL_OLDEST { "worker" } else { "scheduler" };
    Err(Status::failed_precondition(format!(
        "the worker speaks protocol {oldest} to {newest}; this scheduler speaks {PROTOCOL_OLDEST} \
         to {PROTOCOL}; upgrade the {older}"
    )))
}
