//! The thread that starts commands.
//!
//! The parent-death signal of a command is tied to the *thread* that started it, and a runtime may
//! end its threads early. This thread lives as long as commands can run.

use std::io;
use std::thread;

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Commands that wait to be started. Further ones wait for room.
const REQUESTS_MAX: usize = 64;

#[derive(Debug)]
pub(crate) struct Spawner {
    requests: mpsc::Sender<Request>,
}

#[derive(Debug)]
struct Request {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

impl Spawner {
    pub(crate) fn start() -> io::Result<Self> {
        let (requests, mut received) = mpsc::channel::<Request>(REQUESTS_MAX);
        let serve = move || {
            while let Some(mut request) = received.blocking_recv() {
                let _runtime = request.runtime.enter();
                // A child is killed in its drop if its caller is gone.
                let _ = request.answer.send(request.command.spawn());
            }
        };
        thread::Builder::new().name("maitre-commands".to_owned()).spawn(serve)?;
        Ok(Self { requests })
    }

    pub(crate) async fn spawn(&self, command: Command) -> io::Result<Child> {
        let (answer, answered) = oneshot::channel();
        let request = Request { command, runtime: Handle::current(), answer };
        let is_gone = || io::Error::other("the thread that starts commands is gone");
        self.requests.send(request).await.map_err(|_| is_gone())?;
        answered.await.unwrap_or_else(|_| Err(is_gone()))
    }
}
