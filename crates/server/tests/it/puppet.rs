//! A worker that says what a test has it say.

use std::collections::VecDeque;
use std::time::Duration;

use proto::v1;
use proto::v1::server_message::Message as Theirs;
use proto::v1::worker_client::WorkerClient;
use proto::v1::worker_message::Message as Ours;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::site::{PATIENCE, Site};

/// What would come at once has come by then.
pub(crate) const MOMENT: Duration = Duration::from_millis(50);

/// One session of a worker, from its side.
pub(crate) struct Puppet {
    pub(crate) welcome: v1::Welcome,
    sender: mpsc::Sender<v1::WorkerBatch>,
    stream: Streaming<v1::ServerBatch>,
    /// What came and was not looked at.
    came: VecDeque<Theirs>,
    /// What each batch brought.
    pub(crate) batches: Vec<v1::ServerBatch>,
    sequence: u64,
}

impl Puppet {
    pub(crate) async fn connect(site: &Site, hello: v1::Hello) -> Result<Self, Status> {
        Self::connect_by(site.channel.clone(), hello).await
    }

    /// By a connection of its own, so that what it does not read stands in nobody's way.
    pub(crate) async fn connect_by(channel: Channel, hello: v1::Hello) -> Result<Self, Status> {
        let (sender, receiver) = mpsc::channel(16);
        let hello = v1::WorkerMessage { message: Some(Ours::Hello(hello)) };
        sender.try_send(v1::WorkerBatch { messages: vec![hello] }).expect("there is room");
        let mut client = WorkerClient::new(channel);
        let stream = client.session(ReceiverStream::new(receiver)).await?.into_inner();
        let mut puppet = Self {
            welcome: v1::Welcome::default(),
            sender,
            stream,
            came: VecDeque::new(),
            batches: Vec::new(),
            sequence: 0,
        };
        let Theirs::Welcome(welcome) = puppet.next().await? else {
            panic!("the first word is a welcome");
        };
        puppet.welcome = welcome;
        Ok(puppet)
    }

    pub(crate) async fn say(&self, message: Ours) {
        self.say_all(vec![message]).await;
    }

    /// Says all of it in one batch.
    pub(crate) async fn say_all(&self, messages: Vec<Ours>) {
        let messages =
            messages.into_iter().map(|message| v1::WorkerMessage { message: Some(message) });
        let batch = v1::WorkerBatch { messages: messages.collect() };
        self.sender.send(batch).await.expect("the stream is open");
    }

    /// What comes next; an error if the scheduler ends the stream.
    pub(crate) async fn next(&mut self) -> Result<Theirs, Status> {
        while self.came.is_empty() {
            let batch =
                timeout(PATIENCE, self.stream.message()).await.expect("it comes in time")?;
            let batch = batch.ok_or_else(|| Status::cancelled("the stream ended"))?;
            self.batches.push(batch.clone());
            self.came.extend(batch.messages.into_iter().filter_map(|message| message.message));
        }
        Ok(self.came.pop_front().expect("there is one"))
    }

    /// Whether nothing comes in a moment.
    pub(crate) async fn hears_nothing(&mut self) -> bool {
        timeout(MOMENT, self.next()).await.is_err()
    }

    /// The next job that it gets.
    pub(crate) async fn offer(&mut self) -> v1::Offer {
        loop {
            if let Theirs::Offer(offer) = self.next().await.expect("the stream goes on") {
                return offer;
            }
        }
    }

    /// The next word about an end.
    pub(crate) async fn ack(&mut self) -> v1::CompleteAck {
        loop {
            if let Theirs::CompleteAck(ack) = self.next().await.expect("the stream goes on") {
                return ack;
            }
        }
    }

    /// Gives a sign of life, and waits until it is acknowledged.
    pub(crate) async fn beat(&mut self, beat: v1::Heartbeat) {
        self.sequence += 1;
        self.say(Ours::Heartbeat(v1::Heartbeat { sequence: self.sequence, ..beat })).await;
        let mut others = VecDeque::new();
        loop {
            let next = self.next().await.expect("the stream goes on");
            if let Theirs::HeartbeatAck(ack) = &next
                && ack.sequence == self.sequence
            {
                break;
            }
            others.push_back(next);
        }
        // What else came is looked at later.
        others.append(&mut self.came);
        self.came = others;
    }

    pub(crate) async fn accept(&self, offer: &v1::Offer) {
        self.say(Ours::Accept(v1::Accept { attempt: Some(attempt(offer)) })).await;
    }

    pub(crate) async fn refuse(&self, offer: &v1::Offer) {
        let reason = "at capacity".to_owned();
        self.say(Ours::Refuse(v1::Refuse { attempt: Some(attempt(offer)), reason })).await;
    }

    /// Takes the next job, and does it at once.
    pub(crate) async fn serve(&mut self) -> v1::Offer {
        let offer = self.offer().await;
        self.accept(&offer).await;
        self.say(Ours::Complete(succeeded(&offer))).await;
        self.ack().await;
        offer
    }
}

pub(crate) fn attempt(offer: &v1::Offer) -> v1::AttemptRef {
    v1::AttemptRef { job: offer.job, attempt: offer.attempt }
}

pub(crate) fn succeeded(offer: &v1::Offer) -> v1::Complete {
    let ending = v1::Ending::Succeeded.into();
    v1::Complete { attempt: Some(attempt(offer)), ending, ..v1::Complete::default() }
}

/// A sign of life that names what it has.
pub(crate) fn having(offers: &[&v1::Offer]) -> v1::Heartbeat {
    let attempts = offers.iter().map(|offer| attempt(offer)).collect();
    v1::Heartbeat { attempts, ..v1::Heartbeat::default() }
}
