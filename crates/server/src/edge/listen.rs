//! Connections come in: so many at once, encrypted if there is a certificate.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::task;

/// Whoever does not come to terms within this is gone.
const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);
/// Connections that wait to be served.
const WAITING_MAX: usize = 64;
/// After an error that is ours (no more files), nobody is let in for so long.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection, with the place that it takes.
pub(crate) struct Connection {
    stream: Plain,
    _place: OwnedSemaphorePermit,
}

enum Plain {
    Open(TcpStream),
    Sealed(Box<TlsStream<TcpStream>>),
}

/// Connections as they come, at most `connections_max` at once; further ones are closed.
pub(crate) fn incoming(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    connections_max: usize,
) -> impl Stream<Item = io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(WAITING_MAX);
    let places = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    task::spawn("listen", async move {
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
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                tracing::warn!(connections_max, "a connection too many was closed");
                continue;
            };
            let (tls, sender) = (tls.clone(), sender.clone());
            task::spawn("handshake", async move {
                if let Some(stream) = sealed(stream, tls).await {
                    let _ = sender.send(Ok(Connection { stream, _place: place })).await;
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

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
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
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
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
