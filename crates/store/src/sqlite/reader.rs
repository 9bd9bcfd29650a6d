//! Threads that only read, so that a long list delays no write.
//!
//! Each read has a transaction, which begins when a thread takes it: it sees all changes that were
//! answered before. If it sees a commit that is not durable yet, its answer waits for the disk.

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::disk::Disk;
use crate::Error;

/// A read, with the way to answer its caller.
pub(super) type Read = Box<dyn FnOnce(&Connection, &Disk) + Send>;

/// A read, and the receiver of its answer.
pub(super) fn read<T, W>(
    doing: &'static str,
    work: W,
) -> (Read, oneshot::Receiver<Result<T, Error>>)
where
    T: Send + 'static,
    W: FnOnce(&Connection) -> Result<T> + Send + 'static,
{
    let (reply, receiver) = oneshot::channel();
    let read: Read = Box::new(move |connection, disk| {
        let answer = match disk.broken.error(doing) {
            Some(error) => Err(error),
            None => {
                in_transaction(connection, work).map_err(|error| disk.broken.note(doing, &error))
            }
        };
        disk.read(Box::new(move |broken| {
            let answer = broken.error(doing).map_or(answer, Err);
            // A caller that dropped its future needs no answer.
            let _ = reply.send(answer);
        }));
    });
    (read, receiver)
}

/// Runs until no caller is left.
pub(super) fn run(connection: &Connection, disk: &Disk, mut reads: mpsc::Receiver<Read>) {
    while let Some(read) = reads.blocking_recv() {
        read(connection, disk);
    }
}

fn in_transaction<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T>,
) -> Result<T> {
    let transaction = connection.unchecked_transaction()?;
    let answer = work(&transaction)?;
    transaction.commit()?;
    Ok(answer)
}
