//! `maitre dev` and `maitre serve`: a scheduler, and for `dev` a worker beside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use server::{Config, Server};
use store::Options as StoreOptions;
use tokio_util::sync::CancellationToken;

use crate::place::Place;
use crate::print::{self, Failure};
use crate::settings::{self, Length};
use crate::work;

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
    /// A Postgres in which jobs are kept instead, alone or with other schedulers:
    /// `postgres://user@host/database`.
    #[arg(long, env = "MAITRE_STORE", value_name = "URL", hide_env_values = true)]
    store: Option<String>,
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
    let (config, place) = options.over(&file)?;
    run(config, &place, |server, stop| async move {
        print::note(&format!("maitre listens on {}", server.address));
        ended(server.run(stop.cancelled_owned()).await)
    })
}

/// Runs a scheduler and a worker that runs any command, until it is told to stop.
pub(crate) fn dev(options: &DevOptions) -> Result<(), Failure> {
    let file = settings::read(options.serve.config.as_deref())?;
    let (config, place) = options.serve.over(&file)?;
    let section = options.work.over(file.worker)?;
    run(config, &place.clone(), |server, stop| async move {
        let address = server.address;
        let (worker, name) = work::exec_worker(&format!("http://{address}"), section)?;
        print::note(&welcome(address, &place, &name));
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

fn welcome(address: SocketAddr, place: &Place, worker: &str) -> String {
    format!(
        "maitre listens on {address}, keeps its data in {place}, and has one worker, `{worker}`\n\
         \n\
         in another terminal:\n\
         \x20 maitre run -- echo hello      runs a command and shows what it says\n\
         \x20 maitre submit -- sleep 5      puts a command into the queue\n\
         \x20 maitre jobs                   lists what became of them\n\
         \n\
         Ctrl-C stops it; nothing is lost"
    )
}

impl Options {
    /// What the file says, unless a flag or the environment says otherwise.
    fn over(&self, file: &settings::File) -> Result<(Config, Place), Failure> {
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
        let data_dir = self.data_dir.clone().unwrap_or_else(|| file.data_dir());
        let url = self.store.as_ref().or(file.store.as_ref());
        let place = url.map_or(Ok(Place::Directory(data_dir)), |url| Place::named(url))?;
        Ok((config, place))
    }
}

/// Opens the store, starts a scheduler on it, and lets `body` run it.
fn run<F: Future<Output = Result<(), Failure>>>(
    config: Config,
    place: &Place,
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
    let runtime = crate::client::runtime()?;
    // Held until the very end: nobody else may open the data before the last write.
    let kept = runtime.block_on(place.open(options))?;
    runtime.block_on(async {
        let store = Arc::clone(&kept.store);
        let server = server::start(config, store).await.map_err(failed)?;
        let stop = CancellationToken::new();
        tokio::select! {
            ended = body(server, stop.clone()) => ended,
            () = stop_on_signal(stop) => Ok(()),
        }
    })?;
    drop(runtime);
    drop(kept);
    Ok(())
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
