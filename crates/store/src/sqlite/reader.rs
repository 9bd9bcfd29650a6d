//! Threads that only read, so that a long list delays no write.
//!
//! Each read is a transaction of its own that begins when it is taken up: it sees everything that
//! was answered before it was asked.

use rusqlite::{Connection, Result};
use tokio::sync::{mpsc, oneshot};

use super::fault::Broken;
use crate::Error;

/// Something to read, and somebody to tell.
pub(super) type Read = Box<dyn FnOnce(&Connection, &Broken) + Send>;

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
    let read: Read = Box::new(move |connection, broken| {
        let answer = match broken.error(doing) {
            Some(error) => Err(error),
            None => in_transaction(connection, work).map_err(|error| broken.note(doing, &error)),
        };
        // Whoever does not wait any more does not want to know.
        let _ = reply.send(answer);
    });
    (read, receiver)
}

/// Until nobody can ask any more.
pub(super) fn run(connection: &Connection, broken: &Broken, mut reads: mpsc::Receiver<Read>) {
    while let Some(read) = reads.blocking_recv() {
        read(connection, broken);
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
