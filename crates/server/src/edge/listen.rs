//! Connections come in: so many at once, encrypted if there is a certificate.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Sleep;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::task::{Tasks, Tracker};

/// Whoever does not come to terms within this is gone.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Connections that wait to be served.
const WAITING_MAX: usize = 64;
/// After an error that is ours (no more files), nobody is let in for so long.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections too many that are told so at once; further ones are closed.
const TOLD_MAX: usize = 64;
/// How long one of them has to ask something, and to hear that it is one too many.
const TOLD_WAIT: Duration = Duration::from_secs(5);

/// A connection, with the place that it takes.
pub(crate) struct Connection {
    stream: Plain,
    _place: OwnedSemaphorePermit,
    /// Set if it is one too many: it is at its end then.
    end: Option<Pin<Box<Sleep>>>,
}

/// What requests know of their connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// There was a place for it.
    Enough,
    /// It is one too many: whatever is asked by it is refused.
    None,
}

enum Plain {
    Open(TcpStream),
    Sealed(Box<TlsStream<TcpStream>>),
}

/// Connections as they come, at most `connections_max` at once. What further ones ask is refused,
/// and they are closed soon.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    connections_max: usize,
    (tasks, requests): (&mut Tasks, &Tracker),
) -> impl Stream<Item = io::Result<Connection>> + use<> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let told = Arc::new(Semaphore::new(TOLD_MAX));
    let requests = requests.clone();
    tasks.spawn("listen", async move {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = sender.closed() => return,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "could not let a connection in");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            };
            let place = Arc::clone(&places).try_acquire_owned();
            let room = if place.is_ok() { Room::Enough } else { Room::None };
            if room == Room::None {
                tracing::warn!(connections_max, "there is a connection too many");
            }
            let Ok(place) = place.or_else(|_| Arc::clone(&told).try_acquire_owned()) else {
                continue;
            };
            let (tls, sender) = (tls.clone(), sender.clone());
            requests.spawn("handshake", async move {
                let sealed = tokio::select! {
                    sealed = sealed(stream, tls) => sealed,
                    () = sender.closed() => return,
                };
                if let Some(stream) = sealed {
                    let _ = sender.send(Ok(Connection::new(stream, place, room))).await;
                }
            });
        }
    });
    ReceiverStream::new(receiver)
}

async fn sealed(stream: TcpStream, tls: Option<TlsAcceptor>) -> Option<Plain> {
    // Answers are small and awaited: they must not wait for more to go with them.
    stream.set_nodelay(true).ok()?;
    let Some(tls) = tls else { return Some(Plain::Open(stream)) };
    match tokio::time::timeout(HANDSHAKE_WAIT, tls.accept(stream)).await {
        Ok(Ok(stream)) => Some(Plain::Sealed(Box::new(stream))),
        Ok(Err(error)) => {
            tracing::debug!(%error, "no TLS with somebody");
            None
        }
        Err(_) => None,
    }
}

impl Connection {
    fn new(stream: Plain, place: OwnedSemaphorePermit, room: Room) -> Self {
        let end = match room {
            Room::Enough => None,
            Room::None => Some(Box::pin(tokio::time::sleep(TOLD_WAIT))),
        };
        Self { stream, _place: place, end }
    }
}

impl Connected for Connection {
    type ConnectInfo = Room;

    fn connect_info(&self) -> Room {
        if self.end.is_some() { Room::None } else { Room::Enough }
    }
}

macro_rules! either {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().stream {
            Plain::Open(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Plain::Sealed(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.as_mut().is_some_and(|end| end.as_mut().poll(context).is_ready()) {
            // As if the other side had closed it.
            return Poll::Ready(Ok(()));
        }
        either!(self, stream => stream.poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, stream => stream.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Plain::Open(stream) => stream.is_write_vectored(),
            Plain::Sealed(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_shutdown(context))
    }
}
