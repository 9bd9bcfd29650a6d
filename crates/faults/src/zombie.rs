//! A worker that does not stop at the end of its lease, and sends stale reports.

use std::collections::HashMap;
use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Heard;
use proto::v1::worker_client::WorkerClient;
use proto::v1::worker_message::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::Error;

/// Timeout for a message of the scheduler.
const PATIENCE: Duration = Duration::from_mins(1);
/// The requirement of its jobs.
pub(crate) const HAS: (&str, &str) = ("grave", "open");

/// One session of such a worker.
pub(crate) struct Zombie {
    outgoing: mpsc::Sender<v1::WorkerBatch>,
    incoming: Streaming<v1::ServerBatch>,
}

impl Zombie {
    /// Connects, and names its attempts.
    pub(crate) async fn arrive(
        port: u16,
        worker: &str,
        attempts: Vec<v1::AttemptRef>,
    ) -> Result<(Self, v1::Welcome), Error> {
        let channel = tonic::transport::Endpoint::from_shared(format!("http://127.0.0.1:{port}"));
        let channel: Channel = channel.expect("an address with a port is one").connect_lazy();
        let has = v1::Values { values: vec![HAS.1.to_owned()] };
        let kind = v1::WorkerType { name: "exec".to_owned(), ..v1::WorkerType::default() };
        let hello = v1::Hello {
            worker: worker.to_owned(),
            instance: format!("{worker}-{}", crate::clock::now_ms()),
            protocol: proto::PROTOCOL,
            types: vec![kind],
            has: HashMap::from([(HAS.0.to_owned(), has)]),
            slots: 3,
            attempts,
            ..v1::Hello::default()
        };
        let (outgoing, batches) = mpsc::channel(16);
        send(&outgoing, Message::Hello(hello)).await?;
        let session = WorkerClient::new(channel).session(ReceiverStream::new(batches)).await;
        let refused = |status| Error::Refused { doing: "let it in", source: Box::new(status) };
        let incoming = session.map_err(refused)?.into_inner();
        let mut zombie = Self { outgoing, incoming };
        let welcome = zombie.hear("a welcome", |heard| {
            if let Heard::Welcome(welcome) = heard { Some(welcome) } else { None }
        });
        let welcome = welcome.await?;
        Ok((zombie, welcome))
    }

    /// Waits for a job, and accepts it.
    pub(crate) async fn take(&mut self) -> Result<v1::AttemptRef, Error> {
        let offer =
            self.hear(
                "an offer",
                |heard| {
                    if let Heard::Offer(offer) = heard { Some(offer) } else { None }
                },
            );
        let offer = offer.await?;
        let attempt = v1::AttemptRef { job: offer.job, attempt: offer.attempt };
        self.say(Message::Accept(v1::Accept { attempt: Some(attempt) })).await?;
        Ok(attempt)
    }

    /// Reports the end of an attempt.
    pub(crate) async fn complete(
        &self,
        attempt: v1::AttemptRef,
        ending: v1::Ending,
    ) -> Result<(), Error> {
        let (attempt, ending) = (Some(attempt), ending.into());
        self.say(Message::Complete(v1::Complete { attempt, ending, ..v1::Complete::default() }))
            .await
    }

    /// Waits for the acknowledgement: whether the report was stale.
    pub(crate) async fn is_stale(&mut self, attempt: v1::AttemptRef) -> Result<bool, Error> {
        let ack = self.hear("an acknowledgement", |heard| {
            if let Heard::CompleteAck(ack) = heard { Some(ack) } else { None }
        });
        let ack = ack.await?;
        if ack.attempt != Some(attempt) {
            let what = format!("{attempt:?} was completed, and {ack:?} is the answer");
            return Err(Error::Violated(what));
        }
        Ok(ack.stale)
    }

    async fn say(&self, message: Message) -> Result<(), Error> {
        send(&self.outgoing, message).await
    }

    /// The next message of a kind. Others are skipped.
    async fn hear<T>(
        &mut self,
        what: &str,
        of_interest: impl Fn(Heard) -> Option<T>,
    ) -> Result<T, Error> {
        let late = |_| Error::Late { what: format!("{what} comes"), within: PATIENCE };
        let found = async {
            loop {
                let refused =
                    |status| Error::Refused { doing: "talk to it", source: Box::new(status) };
                let batch = self.incoming.message().await.map_err(refused)?;
                let Some(batch) = batch else {
                    let (who, how) = ("a stream".to_owned(), format!("without {what}"));
                    return Err(Error::Ended { who, how });
                };
                let mut messages = batch.messages.into_iter().filter_map(|one| one.message);
                if let Some(found) = messages.find_map(&of_interest) {
                    return Ok(found);
                }
            }
        };
        timeout(PATIENCE, found).await.map_err(late)?
    }
}

async fn send(outgoing: &mpsc::Sender<v1::WorkerBatch>, message: Message) -> Result<(), Error> {
    let messages = vec![v1::WorkerMessage { message: Some(message) }];
    let sent = outgoing.send(v1::WorkerBatch { messages }).await;
    sent.map_err(|error| Error::Ended { who: "a stream".to_owned(), how: error.to_string() })
}
