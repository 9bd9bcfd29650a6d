//! Runs one command.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Core;
use super::exit::Exit;
use super::group::Group;
use super::measure::Usage;
use super::output::{Tail, pump};
use super::place::Place;
use crate::child::RUN;
use crate::{Attempt, Done, Failure, Outcome, Stream, proc};

/// The interval of samples: short after the start, then longer.
const LOOK_FIRST: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The wait for output after all writers were killed. Only a process that left the session can
/// still hold the pipe.
const OUTPUT_AFTER: Duration = Duration::from_secs(2);

/// The command of a job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) argv: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    /// `None` means an empty directory of its own.
    pub(super) dir: Option<PathBuf>,
    pub(super) stdin: Option<String>,
    pub(super) permanent_codes: Vec<i32>,
}

pub(super) async fn run(core: &Arc<Core>, attempt: &Attempt, job: Job) -> Outcome {
    let name = format!("{}-{}", attempt.job(), attempt.number());
    let place = Place::create(&core.base, &name)
        .map_err(|error| Failure::transient(format!("could not make its directory: {error}")))?;
    let memory_kills = proc::out_of_memory_kills();
    let mut child = start(core, attempt, &job, &place).await?;
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let Some(pid) = pid else {
        return Err(Failure::transient("the command ended before it began"));
    };
    let group = Group::new(pid, Arc::clone(&core.guard));
    let (mut pumps, tail) = (JoinSet::new(), Tail::default());
    if let Some((mut pipe, stdin)) = child.stdin.take().zip(job.stdin) {
        // A command need not read its input.
        pumps.spawn(async move { drop(pipe.write_all(stdin.as_bytes()).await) });
    }
    if let Some(pipe) = child.stdout.take() {
        pumps.spawn(pump(pipe, attempt.clone(), Stream::Out, Tail::default()));
    }
    if let Some(pipe) = child.stderr.take() {
        pumps.spawn(pump(pipe, attempt.clone(), Stream::Err, tail.clone()));
    }
    let watched = watch(core, attempt, &mut child, group).await;
    // Processes that left the session may hold the pipes open.
    let _ = timeout(OUTPUT_AFTER, async { while pumps.join_next().await.is_some() {} }).await;
    let watched = watched
        .map_err(|error| Failure::transient(format!("could not wait for its end: {error}")))?;
    let exit = Exit {
        status: watched.status,
        measured: watched.usage.measured(),
        memory_was_short: proc::out_of_memory_kills() > memory_kills,
        was_told: watched.was_told,
        tail: tail.text(),
        permanent_codes: &job.permanent_codes,
    };
    let bytes_max = attempt.result_bytes_max();
    let outcome = exit.outcome().and_then(|done| with_result(done, &place, bytes_max));
    // Its directory may have many files.
    let _ = tokio::task::spawn_blocking(move || drop(place)).await;
    outcome
}

/// A successful command has the result that it wrote, if any.
fn with_result(mut done: Done, place: &Place, bytes_max: usize) -> Outcome {
    match place.result(bytes_max) {
        Ok(result) => {
            done.result = result;
            Ok(done)
        }
        Err(error) => {
            let mut failure = Failure::permanent(format!("could not read its result: {error}"));
            (failure.exit_code, failure.measured) = (done.exit_code, done.measured);
            Err(failure)
        }
    }
}

async fn start(core: &Core, attempt: &Attempt, job: &Job, place: &Place) -> Result<Child, Failure> {
    let dir = job.dir.clone().unwrap_or_else(|| place.work());
    if !dir.is_dir() {
        // The system would report the program as missing. A different worker may have the
        // directory.
        return Err(Failure::transient(format!("there is no directory `{}`", dir.display())));
    }
    let mut command = match (&core.settings.child, job.argv.split_first()) {
        (_, None) => return Err(Failure::permanent("there is no program to run")),
        (Some(between), Some(_)) => {
            let mut command = Command::new(&between.path);
            let parent = std::process::id().to_string();
            command.args(&between.args).args([RUN, &parent, &core.settings.limits.word()]);
            command.args(&job.argv);
            command
        }
        (None, Some((program, args))) => {
            let mut command = Command::new(program);
            command.args(args).process_group(0);
            command
        }
    };
    command
        .env_clear()
        .envs(core.environment.of(attempt, &job.env, &place.result_path()))
        .current_dir(dir)
        .stdin(if job.stdin.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let has_child = core.settings.child.is_some();
    core.spawner.spawn(command).await.map_err(|error| {
        let text = format!("could not run `{}`: {error}", job.argv.join(" "));
        let kind = error.kind();
        let is_missing = kind == io::ErrorKind::NotFound || kind == io::ErrorKind::PermissionDenied;
        // With a child in between, the missing program is the child, which is no fault of the job.
        if is_missing && !has_child { Failure::permanent(text) } else { Failure::transient(text) }
    })
}

/// The end of the process.
struct Watched {
    status: ExitStatus,
    usage: Usage,
    was_told: bool,
}

/// Waits for the end, samples the usage, and signals the processes when the attempt should stop.
async fn watch(
    core: &Arc<Core>,
    attempt: &Attempt,
    child: &mut Child,
    mut group: Group,
) -> io::Result<Watched> {
    let (mut usage, mut was_told, mut was_killed) = (Usage::default(), false, false);
    let leader = group.leader().as_raw_nonzero().get();
    let mut look_after = LOOK_FIRST;
    let mut ended = Ended::of(group.leader())?;
    loop {
        tokio::select! {
            () = ended.wait() => break,
            () = attempt.stop_token().cancelled(), if !was_told => {
                was_told = true;
                group.terminate();
            }
            () = attempt.kill_token().cancelled(), if !was_killed => {
                (was_told, was_killed) = (true, true);
                group.kill();
            }
            () = sleep(look_after) => {
                look_after = (look_after * 2).min(LOOK_EVERY);
                let core = Arc::clone(core);
                let look = move || usage.look(leader, &core.seen);
                usage = tokio::task::spawn_blocking(look).await.unwrap_or(usage);
            }
        }
    }
    let look = move || usage.look_last(leader);
    usage = tokio::task::spawn_blocking(look).await.unwrap_or(usage);
    // Before the leader is reaped, so that no other process has its number.
    group.end();
    Ok(Watched { status: child.wait().await?, usage, was_told })
}

/// Waits for the end of a child without reaping it.
struct Ended {
    leader: Pid,
    /// Some child has ended, perhaps this one.
    signal: tokio::signal::unix::Signal,
}

impl Ended {
    fn of(leader: Pid) -> io::Result<Self> {
        Ok(Self { leader, signal: signal(SignalKind::child())? })
    }

    async fn wait(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that there is no such child.
        while let Ok(None) = waitid(WaitId::Pid(self.leader), options) {
            self.signal.recv().await;
        }
    }
}
