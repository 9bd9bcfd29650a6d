//! The doors: gRPC and HTTP, on one port. Requests are checked here, and answers put into the words
//! of the wire.

pub(crate) mod listen;
pub(crate) mod tls;
pub(crate) mod front;
pub(crate) mod serving;
pub(crate) mod router;
mod origin;
pub(crate) mod guard;
mod answer;
mod http;
mod board;
mod tokens;
pub(crate) mod worker;
pub(crate) mod jobs;
mod blockers;
mod told;
pub(crate) mod changes;
mod follow;
mod named;
pub(crate) mod admin;
mod detection;
mod schedules;
mod foresee;
mod load;

use std::sync::Arc;

use store::Store;
use tokio::sync::{Mutex, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::config::Config;
use crate::inbox::Inbox;
use crate::meters::Tolls;
use crate::scheduler::Message;
use crate::settings::Types;
use crate::status::Question;
use crate::task::Tracker;
use crate::tokens::Tokens;
use crate::watch::Hub;
use crate::what_if::Replays;

/// What every door needs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) scheduler: Inbox,
    pub(crate) types: watch::Receiver<Arc<Types>>,
    pub(crate) hub: Hub,
    pub(crate) config: Arc<Config>,
    pub(crate) tokens: Tokens,
    /// Places for requests that stay open.
    pub(crate) watches: Arc<Semaphore>,
    pub(crate) tolls: Tolls,
    /// Settings are kept one after the other, so that they take effect in that order.
    pub(crate) turn: Arc<Mutex<()>>,
    pub(crate) replays: Replays,
    /// Cancelled when the scheduler stops: requests that stay open end then.
    pub(crate) stop: CancellationToken,
    /// The tasks of requests.
    pub(crate) requests: Tracker,
}

impl Door {
    /// Tells the owner of the world; waits if it has too much to do.
    pub(crate) async fn tell(&self, message: Message) -> Result<(), Status> {
        self.scheduler.put(message).await.map_err(|()| stopping())
    }

    /// Does something to its end, even if whoever asked for it goes away in the middle: what is
    /// written to the store and what the owner of the world is told belong together.
    pub(crate) async fn whole<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Status>> + Send + 'static,
    ) -> Result<T, Status> {
        let done = self.requests.spawn("request", work).await;
        done.unwrap_or_else(|error| Err(Status::internal(error.to_string())))
    }

    /// Tells the owner of the world what is done. If it is stopping, it finds out from the store
    /// when it starts again; whoever asked for it is told that it is done.
    pub(crate) async fn tell_done(&self, message: Message) {
        let _ = self.tell(message).await;
    }

    /// Asks the owner of the world.
    pub(crate) async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> Question,
    ) -> Result<T, Status> {
        let (answer, answered) = oneshot::channel();
        self.tell(Message::Ask(question(answer))).await?;
        answered.await.map_err(|_| stopping())
    }
}

fn stopping() -> Status {
    answer::later("the scheduler is stopping; try again".to_owned())
}
