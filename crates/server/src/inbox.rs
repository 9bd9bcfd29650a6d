//! The way to the owner of the world: bounded by messages and by bytes.

use std::sync::Arc;

use model::Record;
use store::NewJob;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use crate::fleet::words::Heard;
use crate::scheduler::Message;

/// Messages that wait for the owner of the world, at most; then doors wait.
const MESSAGES_MAX: usize = 4_096;
/// Bytes in them, at most.
const BYTES_MAX: u32 = 64 << 20;
/// What any message, job or word takes beside the bytes that it brings.
const OVERHEAD: usize = 512;

/// A message on its way, with the room that it takes.
pub(crate) struct Envelope {
    pub(crate) message: Message,
    _room: OwnedSemaphorePermit,
}

/// Where messages are put in. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inbox {
    messages: mpsc::Sender<Envelope>,
    room: Arc<Semaphore>,
}

impl Inbox {
    /// An empty one, and where messages are taken out.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Envelope>) {
        let (messages, taken) = mpsc::channel(MESSAGES_MAX);
        let room = usize::try_from(BYTES_MAX).expect("it is small");
        (Self { messages, room: Arc::new(Semaphore::new(room)) }, taken)
    }

    /// Puts a message in once there is room. `Err`: nobody takes messages out any more.
    pub(crate) async fn put(&self, message: Message) -> Result<(), ()> {
        // Nothing is larger than all there is.
        let n_bytes = u32::try_from(n_bytes(&message)).unwrap_or(BYTES_MAX).min(BYTES_MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(n_bytes).await;
        let room = room.expect("it is never closed");
        let envelope = Envelope { message, _room: room };
        self.messages.send(envelope).await.map_err(|_| ())
    }
}

fn n_bytes(message: &Message) -> usize {
    let brought: usize = match message {
        Message::Submit(taking) => taking.submission.jobs.iter().map(bytes_of_job).sum(),
        Message::Waiting(records) => records.iter().map(bytes_of_record).sum(),
        Message::Heard(_, heard) => heard.iter().map(bytes_of_word).sum(),
        Message::Gone(jobs) | Message::Cancelling(jobs) => 16 * jobs.len(),
        Message::Set(_)
        | Message::Hello(_)
        | Message::Parted(_)
        | Message::Ask(_)
        | Message::News(_) => 0,
    };
    OVERHEAD + brought
}

fn bytes_of_job(job: &NewJob) -> usize {
    OVERHEAD + job.spec.payload.len()
}

fn bytes_of_record(record: &Record) -> usize {
    OVERHEAD + record.spec.payload.len() + record.result.as_ref().map_or(0, Vec::len)
}

fn bytes_of_word(heard: &Heard) -> usize {
    let brought = match heard {
        Heard::Log(_, piece) => piece.bytes.len(),
        Heard::Complete(_, completion) => completion.result.as_ref().map_or(0, Vec::len),
        Heard::Inventory(inventory) => {
            inventory.added.iter().chain(&inventory.removed).map(|digest| digest.len() + 32).sum()
        }
        Heard::Heartbeat(beat) => 16 * beat.attempts.len() + OVERHEAD * beat.progress.len(),
        Heard::Proposals(proposals) => prost::Message::encoded_len(proposals),
        Heard::Described(_, json) | Heard::Publish(json) => json.len(),
        Heard::Accept(_)
        | Heard::Refuse(..)
        | Heard::Progress(..)
        | Heard::Draining(_)
        | Heard::Detected(_)
        | Heard::Goodbye => 0,
    };
    OVERHEAD + brought
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::fleet::words::{Piece, StreamId};

    fn logs(n_bytes: usize) -> Message {
        let (stream, bytes) = (store::Stream::Out, vec![0; n_bytes].into());
        let piece = Piece { number: 0, stream, offset: 0, bytes };
        let log = Heard::Log(proto::v1::AttemptRef::default(), piece);
        Message::Heard(StreamId(1), vec![log])
    }

    #[tokio::test]
    async fn few_large_messages_fill_it_like_many_small_ones() {
        let (inbox, mut taken) = Inbox::new();
        let large = 40 << 20;
        inbox.put(logs(large)).await.unwrap();
        let mut second = Box::pin(inbox.put(logs(large)));
        assert!(second.as_mut().now_or_never().is_none(), "two are more than it holds");
        drop(taken.recv().await);
        second.await.unwrap();
        drop(taken.recv().await);
        // One that is larger than all there is goes alone.
        inbox.put(logs(100 << 20)).await.unwrap();
    }
}
