//! `maitre dev` and `maitre serve`: a scheduler, and for `dev` a worker beside it.

use std::fs::{self, File, TryLockError};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow};
use clap::Args;
use server::{Config, Server};
use store::{Options as StoreOptions, Sqlite, Store};
use tokio_util::sync::CancellationToken;

use crate::print::{self, Failure};
use crate::settings::{self, Length};
use crate::work;

/// The database, in the data directory.
pub(crate) const DATABASE: &str = "maitre.db";
/// Who holds this open has the data directory.
const LOCK: &str = "lock";
/// A data directory of this name keeps everything in memory.
pub(crate) const MEMORY: &str = ":memory:";

/// Options of `maitre serve`.
#[derive(Args, Clone)]
pub(crate) struct Options {
    /// Settings; `maitre.toml` in the working directory is read if it is there.
    #[arg(long, env = "MAITRE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; only addresses of this machine are allowed.
    #[arg(long, env = "MAITRE_LISTEN", value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where jobs are kept; `:memory:` forgets them at the end.
    #[arg(long, env = "MAITRE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Workers give a sign of life this often.
    #[arg(long, env = "MAITRE_HEARTBEAT", value_name = "LENGTH")]
    heartbeat: Option<Length>,
    /// A worker that gives none for so long has lost its attempts.
    #[arg(long, env = "MAITRE_LEASE", value_name = "LENGTH")]
    lease: Option<Length>,
    /// Finished jobs are kept for so long.
    #[arg(long, env = "MAITRE_RETENTION", value_name = "LENGTH")]
    retention: Option<Length>,
    /// Unfinished jobs that one tenant may have.
    #[arg(long, env = "MAITRE_TENANT_JOBS_MAX", value_name = "N")]
    tenant_jobs_max: Option<u64>,
}

/// Options of `maitre dev`.
#[derive(Args)]
pub(crate) struct DevOptions {
    #[command(flatten)]
    serve: Options,
    #[command(flatten)]
    work: work::WorkerOptions,
}

/// Runs a scheduler until it is told to stop.
pub(crate) fn serve(options: &Options) -> Result<(), Failure> {
    let file = settings::read(options.config.as_deref())?;
    let (config, data_dir) = options.over(&file);
    run(config, &data_dir, |server, stop| async move {
        print::note(&format!("maitre listens on {}", server.address));
        ended(server.run(stop.cancelled_owned()).await)
    })
}

/// Runs a scheduler and a worker that runs any command, until it is told to stop.
pub(crate) fn dev(options: &DevOptions) -> Result<(), Failure> {
    let file = settings::read(options.serve.config.as_deref())?;
    let (config, data_dir) = options.serve.over(&file);
    let section = options.work.over(file.worker)?;
    run(config, &data_dir.clone(), |server, stop| async move {
        let address = server.address;
        let (worker, name) = work::exec_worker(&format!("http://{address}"), section)?;
        print::note(&welcome(address, &data_dir, &name));
        let working = CancellationToken::new();
        let work = tokio::spawn(report(worker.run(working.clone())));
        // The worker goes first: what it finishes on its way out is still written down.
        let leave = async move {
            stop.cancelled().await;
            working.cancel();
            let _ = work.await;
        };
        ended(server.run(leave).await)
    })
}

/// Tells of a worker that ended before it was told to: the scheduler goes on without it.
async fn report(work: impl Future<Output = Result<(), worker::Error>>) {
    if let Err(error) = work.await {
        print::note(&format!("the worker ended: {error}"));
    }
}

fn ended(outcome: Result<(), server::Error>) -> Result<(), Failure> {
    outcome.map_err(failed)
}

fn failed(error: server::Error) -> Failure {
    Failure::Other(error.into())
}

fn welcome(address: SocketAddr, data_dir: &Path, worker: &str) -> String {
    format!(
        "maitre listens on {address}, keeps its data in {}, and has one worker, `{worker}`\n\
         \n\
         in another terminal:\n\
         \x20 maitre run -- echo hello      runs a command and shows what it says\n\
         \x20 maitre submit -- sleep 5      puts a command into the queue\n\
         \x20 maitre jobs                   lists what became of them\n\
         \n\
         Ctrl-C stops it; nothing is lost",
        data_dir.display()
    )
}

impl Options {
    /// What the file says, unless a flag or the environment says otherwise.
    fn over(&self, file: &settings::File) -> (Config, PathBuf) {
        let mut config = file.config();
        let set = |field: &mut model::Millis, given: Option<Length>| {
            if let Some(length) = given {
                *field = length.millis();
            }
        };
        set(&mut config.heartbeat, self.heartbeat);
        set(&mut config.lease, self.lease);
        set(&mut config.retention, self.retention);
        config.listen = self.listen.unwrap_or(config.listen);
        config.tenant_jobs_max = self.tenant_jobs_max.unwrap_or(config.tenant_jobs_max);
        (config, self.data_dir.clone().unwrap_or_else(|| file.data_dir()))
    }
}

/// Opens the data directory, starts a scheduler on it, and lets `body` run it.
fn run<F: Future<Output = Result<(), Failure>>>(
    config: Config,
    data_dir: &Path,
    body: impl FnOnce(Server, CancellationToken) -> F,
) -> Result<(), Failure> {
    config.check().map_err(|error| Failure::Input {
        error: error.to_string(),
        hint: Some(error.hint.to_owned()),
    })?;
    logging();
    let options = StoreOptions {
        log_bytes_max: config.log_bytes_max,
        jobs_max: config.jobs_max,
        tenant_jobs_max: config.tenant_jobs_max,
        patience: config.patience,
        ..StoreOptions::default()
    };
    // Held until the very end: nobody else may open the data before the last write.
    let (store, _lock) = open(data_dir, options)?;
    let store = Arc::new(store);
    let runtime = crate::client::runtime()?;
    runtime.block_on(async {
        let shared: Arc<dyn Store> = Arc::<Sqlite>::clone(&store);
        let server = server::start(config, shared).await.map_err(failed)?;
        let stop = CancellationToken::new();
        tokio::select! {
            ended = body(server, stop.clone()) => ended,
            () = stop_on_signal(stop) => Ok(()),
        }
    })?;
    drop(runtime);
    if let Some(store) = Arc::into_inner(store) {
        store.close();
    }
    Ok(())
}

/// The store in `data_dir`, and the lock that says whose it is.
fn open(data_dir: &Path, options: StoreOptions) -> Result<(Sqlite, Option<File>), Failure> {
    let unusable = |error: store::Error| Failure::Other(anyhow!(error).context("open the store"));
    if data_dir == Path::new(MEMORY) {
        return Ok((Sqlite::in_memory(options).map_err(unusable)?, None));
    }
    let lock = lock(data_dir)?;
    let store = Sqlite::open(&data_dir.join(DATABASE), options).map_err(unusable)?;
    Ok((store, Some(lock)))
}

/// Makes the directory if need be, and takes it.
fn lock(data_dir: &Path) -> Result<File, Failure> {
    let place = data_dir.display();
    let make = || -> anyhow::Result<File> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(data_dir)?;
        let path = data_dir.join(LOCK);
        Ok(File::options().create(true).truncate(false).write(true).open(path)?)
    };
    let file = make().with_context(|| format!("could not use `{place}` as data directory"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Failure::Input {
            error: format!("another scheduler uses the data in `{place}`"),
            hint: Some("stop it, or name another directory with `--data-dir`".to_owned()),
        }),
        Err(TryLockError::Error(error)) => {
            Err(Failure::Other(anyhow!(error).context(format!("could not lock `{place}`"))))
        }
    }
}

/// Cancels `stop` at the first signal, and returns at the second: then nobody waits any longer.
pub(crate) async fn stop_on_signal(stop: CancellationToken) {
    let Ok(mut terminate) =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
    else {
        return std::future::pending().await;
    };
    for _ in 0..2 {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = terminate.recv() => {}
        }
        print::note("stopping; once more to stop at once");
        stop.cancel();
    }
}

/// What operators read goes to stderr; `MAITRE_LOG` says how much of it.
pub(crate) fn logging() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::Level::WARN.into())
        .with_env_var("MAITRE_LOG")
        .from_env_lossy();
    // In a test, somebody else may have set it up.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        .try_init();
}
