//! One turn at a time: the same scheduler and the same doors, without a runtime, a network or a
//! clock of their own, for tests that choose what happens when.
//!
//! What is left out is the loop of [`Scheduler::run`], which waits, and tonic.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use model::JobId;
use proto::v1;
use store::{News, Store};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tonic::Status;

use crate::config::Config;
use crate::edge::Door;
use crate::edge::changes::Named;
use crate::edge::front::Front;
use crate::edge::worker::{Told, arrival, checked};
use crate::fleet::words::StreamId;
use crate::inbox::Envelope;
use crate::run::{Built, Error, build};
use crate::scheduler::{Message, Scheduler};
use crate::tokens::Tokens;

/// A scheduler that does nothing by itself.
///
/// Futures that it returns wait for the store and for turns; they need no runtime.
pub struct Steps {
    scheduler: Scheduler,
    inbox: mpsc::Receiver<Envelope>,
    door: Door,
}

impl Steps {
    /// Builds the world from the store.
    pub async fn recover(config: Config, store: Arc<dyn Store>) -> Result<Self, Error> {
        let (front, tokens) = (Front::default(), Tokens::default());
        let Built { scheduler, messages, door, .. } =
            build(&Arc::new(config), &store, &front, &tokens).await?;
        Ok(Self { scheduler, inbox: messages, door })
    }

    /// Takes in whatever has come, decides, asks the store and tells the workers.
    pub fn turn(&mut self) {
        while let Ok(envelope) = self.inbox.try_recv() {
            self.scheduler.take(envelope.message);
        }
        self.scheduler.hear_answers();
        self.scheduler.turn();
        self.scheduler.hear_answers();
    }

    /// A worker opens a stream. No two streams of a process have the same number.
    pub fn hello(&mut self, stream: u64, hello: v1::Hello) -> Result<Words, Status> {
        let (arrival, told) = arrival(StreamId(stream), hello)?;
        self.scheduler.take(Message::Hello(Box::new(arrival)));
        Ok(Words(told))
    }

    /// A worker says something on its stream.
    pub fn hear(&mut self, stream: u64, message: v1::WorkerMessage) -> Result<(), Status> {
        let heard = checked(message)?.into_iter().collect();
        self.scheduler.take(Message::Heard(StreamId(stream), heard));
        Ok(())
    }

    /// A worker's stream ended.
    pub fn part(&mut self, stream: u64) {
        self.scheduler.take(Message::Parted(StreamId(stream)));
    }

    /// Others did something.
    pub fn news(&mut self, news: News) {
        self.scheduler.take(Message::News(news));
    }

    /// A client submits jobs.
    pub fn submit(
        &self,
        request: v1::SubmitRequest,
    ) -> BoxFuture<'static, Result<v1::SubmitResponse, Status>> {
        let door = self.door.clone();
        async move { door.take_in(request).await }.boxed()
    }

    /// A client calls jobs off.
    pub fn cancel(
        &self,
        jobs: Vec<JobId>,
    ) -> BoxFuture<'static, Result<v1::ChangeResponse, Status>> {
        let door = self.door.clone();
        let named = |job: JobId| Named { asked: job.clone(), job };
        let named = jobs.into_iter().map(named).collect();
        async move { door.cancel_jobs(named).await }.boxed()
    }
}

/// What a worker's stream brings it.
#[derive(Debug)]
pub struct Words(Told);

impl Words {
    /// The next batch. `None`: there is none yet. The error says that the stream is over.
    pub fn read(&mut self) -> Result<Option<v1::ServerBatch>, Status> {
        match self.0.try_recv() {
            Ok(batch) => batch.map(Some),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Status::unavailable("the stream ended")),
        }
    }
}
