//! Workers for tests, and helpers that observe them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proto::v1;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use worker::{Builder, ChildProgram, Command, CommandSettings, Commands, Error, Worker};

use crate::server::{DEADLINE, Server, Session};

/// A running worker, and its shutdown.
pub(crate) struct Running {
    pub(crate) shutdown: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Running {
    /// Builds and starts the worker.
    pub(crate) fn start(builder: Builder) -> Self {
        let shutdown = CancellationToken::new();
        let worker = builder.build().unwrap();
        let task = tokio::spawn(worker.run(shutdown.clone()));
        Self { shutdown, task }
    }

    /// The result of the worker.
    pub(crate) async fn ended(self) -> Result<(), Error> {
        timeout(DEADLINE, self.task).await.expect("the worker ends in time").unwrap()
    }

    /// Drops the worker.
    pub(crate) fn abandon(&self) {
        self.task.abort();
    }
}

/// A worker `w` that leaves quickly.
pub(crate) fn builder(server: &Server) -> Builder {
    let short = Duration::from_millis(200);
    Worker::builder(&server.address).name("w").leave_grace(short).stop_grace(short)
}

/// A job of this type with defaults.
pub(crate) fn spec(kind: &str) -> v1::Spec {
    v1::Spec { r#type: kind.to_owned(), ..v1::Spec::default() }
}

/// A job for a handler that runs commands.
pub(crate) fn command_spec(kind: &str, payload: &Value) -> v1::Spec {
    v1::Spec { payload: payload.to_string().into_bytes(), ..spec(kind) }
}

/// A job that runs a script in a shell.
pub(crate) fn script(text: &str) -> v1::Spec {
    command_spec("exec", &serde_json::json!({ "argv": ["sh", "-c", text] }))
}

/// Commands with the child program of this crate.
pub(crate) fn commands() -> Commands {
    Commands::start(settings()).unwrap()
}

pub(crate) fn settings() -> CommandSettings {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_maitre-child"));
    CommandSettings::new(ChildProgram { path, args: Vec::new() })
}

/// A worker that runs commands: any as `exec`, and some by name.
pub(crate) fn command_builder(server: &Server, commands: &Commands) -> Builder {
    let argv = |argv: &[&str]| argv.iter().map(ToString::to_string).collect();
    let show = Command {
        argv: argv(&["printf", "[%s]"]),
        env: BTreeMap::from([("FROM_WORKER".to_owned(), "yes".to_owned())]),
        ..Command::default()
    };
    let nap = Command { argv: argv(&["sleep"]), timeout_ms: Some(100), ..Command::default() };
    let odd = Command {
        argv: argv(&["sh", "-c", "exit 3"]),
        permanent_codes: Some(vec![3]),
        ..Command::default()
    };
    builder(server)
        .slots(4)
        .type_("exec", 0, commands.exec())
        .type_("show", 0, commands.named(show))
        .type_("nap", 0, commands.named(nap))
        .type_("odd", 0, commands.named(odd))
}

/// A connected worker that runs commands.
pub(crate) async fn command_world() -> (Server, Running, Session) {
    let mut server = Server::start();
    let running = Running::start(command_builder(&server, &commands()));
    let session = server.welcomed().await;
    (server, running, session)
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < DEADLINE, "not in time: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// The numbers in `text`, which are process ids in the scripts of these tests.
pub(crate) fn pids(text: &str) -> Vec<i32> {
    text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}
