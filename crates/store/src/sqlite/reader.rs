//! Threads that only read, so that a long list delays no write.
//!
//! Each read is a transaction of its own that begins when it is taken up: it sees everything that
//! was answered before it was asked. What it sees and is not durable yet is told when it is.

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::disk::Disk;
use crate::Error;

/// Something to read, and somebody to tell.
pub(super) type Read = Box<dyn FnOnce(&Connection, &Disk) + Send>;

/// A read, and where its answer goes.
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
            // Whoever does not wait any more does not want to know.
            let _ = reply.send(answer);
        }));
    });
    (read, receiver)
}

/// Until nobody can ask any more.
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
