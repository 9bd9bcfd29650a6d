//! Links between processes, whose traffic can be cut, slowed down and stopped.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use faults::Chance;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::Error;

/// The size of a forwarded piece in bytes.
const PIECE: usize = 16 * 1024;
/// The timeout of a connection to a target.
const CONNECT: Duration = Duration::from_secs(1);

/// The target of a link.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A port of this machine.
    Port(u16),
    /// A socket.
    Socket(PathBuf),
}

/// The direction that is stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stuck {
    /// None.
    #[default]
    Nothing,
    /// To the target.
    There,
    /// From the target.
    Back,
    /// Both directions.
    All,
}

/// The condition of a link to one target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Weather {
    /// Each increase ends all connections.
    n_cuts: u64,
    slow: Duration,
    stuck: Stuck,
}

/// A port that forwards each connection to one of several targets.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) port: u16,
    weathers: Vec<watch::Sender<Weather>>,
}

impl Way {
    /// A link to any of these targets.
    pub(crate) async fn to(targets: Vec<Target>, chance: Chance) -> Result<Self, Error> {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(Error::system("listen"))?;
        let port = listener.local_addr().map_err(Error::system("listen"))?.port();
        let weathers: Vec<_> =
            targets.iter().map(|_| watch::Sender::new(Weather::default())).collect();
        let sides = targets.into_iter().zip(weathers.iter().map(watch::Sender::subscribe));
        let sides: Arc<Vec<Side>> = Arc::new(sides.collect());
        let chance = Arc::new(Mutex::new(chance));
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let first = chance.lock().unwrap_or_else(PoisonError::into_inner).draw();
                tokio::spawn(lead(from, Arc::clone(&sides), first));
            }
        });
        Ok(Self { port, weathers })
    }

    /// Ends all connections with a target.
    pub(crate) fn cut(&self, side: usize) {
        self.change(side, |weather| weather.n_cuts += 1);
    }

    /// Delays every piece.
    pub(crate) fn slow(&self, side: usize, slow: Duration) {
        self.change(side, |weather| weather.slow = slow);
    }

    /// Stops the traffic without an error.
    pub(crate) fn stick(&self, side: usize, stuck: Stuck) {
        self.change(side, |weather| weather.stuck = stuck);
    }

    /// Resumes normal traffic, stopped bytes included.
    pub(crate) fn calm(&self, side: usize) {
        self.change(side, |weather| {
            (weather.slow, weather.stuck) = (Duration::ZERO, Stuck::Nothing);
        });
    }

    fn change(&self, side: usize, change: impl FnOnce(&mut Weather)) {
        if let Some(weather) = self.weathers.get(side) {
            weather.send_modify(change);
        }
    }
}

type Side = (Target, watch::Receiver<Weather>);

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Forwards a connection to the first target that accepts it.
async fn lead(from: TcpStream, sides: Arc<Vec<Side>>, first: u64) {
    let n = sides.len().max(1);
    let first = usize::try_from(first % u64::try_from(n).unwrap_or(1)).unwrap_or(0);
    for place in 0..n {
        let Some((target, weather)) = sides.get((first + place) % n) else { return };
        if let Ok(Some(to)) = timeout(CONNECT, connect(target)).await {
            let _ = from.set_nodelay(true);
            return pass(Box::new(from), to, weather.clone()).await;
        }
    }
}

async fn connect(target: &Target) -> Option<Box<dyn Stream>> {
    match target {
        Target::Port(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).await.ok()?;
            let _ = stream.set_nodelay(true);
            Some(Box::new(stream))
        }
        Target::Socket(path) => Some(Box::new(UnixStream::connect(path).await.ok()?)),
    }
}

async fn pass(from: Box<dyn Stream>, to: Box<dyn Stream>, weather: watch::Receiver<Weather>) {
    let n_cuts = weather.borrow().n_cuts;
    let (from, into) = tokio::io::split(from);
    let (back, there) = tokio::io::split(to);
    let ways = async {
        tokio::join!(
            pump(from, there, Stuck::There, weather.clone()),
            pump(back, into, Stuck::Back, weather.clone()),
        )
    };
    let mut end = weather.clone();
    tokio::select! {
        _ = ways => {}
        _ = end.wait_for(|weather| weather.n_cuts != n_cuts) => {}
    }
}

async fn pump(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: Stuck,
    mut weather: watch::Receiver<Weather>,
) {
    let mut piece = vec![0; PIECE];
    loop {
        let n = from.read(&mut piece).await.unwrap_or(0);
        let is_open = |weather: &Weather| weather.stuck != way && weather.stuck != Stuck::All;
        let slow = match weather.wait_for(is_open).await {
            Ok(weather) => weather.slow,
            Err(_) => return,
        };
        if !slow.is_zero() {
            sleep(slow).await;
        }
        if n == 0 {
            let _ = to.shutdown().await;
            return;
        }
        if to.write_all(&piece[..n]).await.is_err() {
            return;
        }
    }
}
