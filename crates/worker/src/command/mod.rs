//! A handler that runs commands: those that jobs name, or those that the worker defines.
//!
//! It starts them without a shell. All processes of a command end with it, and with the worker.
//! Only a process that creates a session of its own, such as a daemon, is not killed.

mod payload;
mod run;
mod exit;
mod environment;
mod place;
mod output;
mod measure;
mod spawn;
pub(crate) mod group;
mod guard;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use serde::Deserialize;

use crate::child::Limits;
use crate::{Attempt, Error, Handler, Outcome, Running};
use environment::Environment;
use exit::PERMANENT_CODES;
use guard::Guard;
use measure::Seen;
use payload::{Args, Exec};
use run::Job;
use spawn::Spawner;

/// Runs commands. Clones share their threads, their guard and their directory.
#[derive(Clone, Debug)]
pub struct Commands {
    core: Arc<Core>,
}

/// Settings for commands.
#[derive(Clone, Debug)]
pub struct CommandSettings {
    /// The process between the worker and its commands. `None`: commands have no limits, and
    /// outlive a worker that is killed.
    pub child: Option<ChildProgram>,
    /// The parent directory of the attempts' directories.
    pub temp_dir: PathBuf,
    /// The limits of a command.
    pub limits: Limits,
}

/// A program that calls [`crate::child::main`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildProgram {
    /// Its path.
    pub path: PathBuf,
    /// The arguments that make it call that function. The worker adds its own behind them.
    pub args: Vec<OsString>,
}

impl ChildProgram {
    /// The running program, with these arguments. It stays the same if its file is replaced.
    pub fn this(args: impl IntoIterator<Item = impl Into<OsString>>) -> io::Result<Self> {
        let running = Path::new("/proc/self/exe");
        let path = if running.exists() { running.to_owned() } else { env::current_exe()? };
        Ok(Self { path, args: args.into_iter().map(Into::into).collect() })
    }
}

/// A command that the worker defines. Jobs of its type add arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The program and its first arguments. The job's arguments follow.
    pub argv: Vec<String>,
    /// Added to its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Its working directory. `None` means an empty directory for each attempt.
    pub dir: Option<PathBuf>,
    /// Its longest run time. `None` means that of the job.
    pub timeout_ms: Option<u64>,
    /// Exit codes of permanent failures. `None` means 64 to 66, 77, 78, 126 and 127.
    pub permanent_codes: Option<Vec<i32>>,
}

/// The shared state of all commands of a worker.
#[derive(Debug)]
pub(crate) struct Core {
    settings: CommandSettings,
    environment: Environment,
    base: PathBuf,
    spawner: Spawner,
    guard: Arc<Guard>,
    seen: Seen,
}

impl Commands {
    /// Starts the guard and the thread for commands.
    pub fn start(settings: CommandSettings) -> Result<Self, Error> {
        let system = |what| move |source| Error::System { what, source };
        let draw = getrandom::u64().map_err(|error| system("a random number")(error.into()))?;
        let base = settings.temp_dir.join(format!("maitre-{draw:016x}"));
        place::private(&base).map_err(system("a directory for attempts"))?;
        let guard = match &settings.child {
            Some(program) => Guard::start(program, &base),
            None => Ok(Guard::none()),
        };
        let core = Core {
            environment: Environment::here(),
            base,
            spawner: Spawner::start().map_err(system("a thread"))?,
            guard: Arc::new(guard.map_err(system("a guard process"))?),
            seen: Seen::default(),
            settings,
        };
        Ok(Self { core: Arc::new(core) })
    }

    /// Runs the command of a job: `{"argv": […], "env": {…}, "dir": "…", "stdin": "…"}`. A client
    /// that may submit jobs of its type can do everything that the worker's user can.
    pub fn exec(&self) -> impl Handler + use<> {
        ExecHandler { core: Arc::clone(&self.core) }
    }

    /// Runs one command with the additions of a job: `{"args": […], "stdin": "…"}`.
    pub fn named(&self, command: Command) -> impl Handler + use<> {
        NamedHandler { core: Arc::clone(&self.core), command }
    }
}

impl CommandSettings {
    /// No limits, and the system's directory for temporary files.
    pub fn new(child: ChildProgram) -> Self {
        Self { child: Some(child), temp_dir: env::temp_dir(), limits: Limits::default() }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // The directory is empty now. The guard may have removed it first.
        let _ = std::fs::remove_dir(&self.base);
    }
}

struct ExecHandler {
    core: Arc<Core>,
}

impl Handler for ExecHandler {
    fn run(&self, attempt: Attempt) -> Running<'_> {
        Box::pin(async move {
            let exec = Exec::read(attempt.payload())?;
            let job = Job {
                argv: exec.argv,
                env: exec.env,
                dir: exec.dir,
                stdin: exec.stdin,
                permanent_codes: PERMANENT_CODES.to_vec(),
            };
            run::run(&self.core, &attempt, job).await
        })
    }
}

struct NamedHandler {
    core: Arc<Core>,
    command: Command,
}

impl NamedHandler {
    async fn outcome(&self, attempt: Attempt) -> Outcome {
        let args = Args::read(attempt.payload())?;
        let Command { argv, env, dir, timeout_ms, permanent_codes } = self.command.clone();
        if let Some(ms) = timeout_ms {
            attempt.run_at_most(Duration::from_millis(ms));
        }
        let job = Job {
            argv: argv.into_iter().chain(args.args).collect(),
            env,
            dir,
            stdin: args.stdin,
            permanent_codes: permanent_codes.unwrap_or_else(|| PERMANENT_CODES.to_vec()),
        };
        run::run(&self.core, &attempt, job).await
    }
}

impl Handler for NamedHandler {
    fn run(&self, attempt: Attempt) -> Running<'_> {
        Box::pin(self.outcome(attempt))
    }
}
