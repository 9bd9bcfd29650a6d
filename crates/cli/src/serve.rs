//! `maitre dev` and `maitre serve`: a scheduler, and for `dev` a worker beside it.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use server::{Config, Server};
use store::{Options as StoreOptions, Postgres, Store};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::place::{Kept, Place};
use crate::print::{self, Failure};
use crate::settings::{Said, Settings};
use crate::signals::Signals;
use crate::spec::pairs;
use crate::work;

/// Options of `maitre serve`.
#[derive(Args, Clone)]
#[command(after_help = "\
Every setting can be given in a file, as a variable (`MAITRE_LEASE` for `lease`)
and as a flag (`--set lease=30s`): `maitre config` lists them, with their values.")]
pub(crate) struct Options {
    /// Settings; `maitre.toml` in the working directory is read if it is there.
    #[arg(long, env = "MAITRE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen; others can connect only with tokens and TLS.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Where jobs are kept; `:memory:` forgets them at the end.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
    /// A Postgres in which jobs are kept instead, alone or with other schedulers:
    /// `postgres://user@host/database`.
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// Workers give a sign of life this often.
    #[arg(long, value_name = "LENGTH")]
    heartbeat: Option<String>,
    /// A worker that gives none for so long has lost its attempts.
    #[arg(long, value_name = "LENGTH")]
    lease: Option<String>,
    /// Finished jobs are kept for so long.
    #[arg(long, value_name = "LENGTH")]
    retention: Option<String>,
    /// Unfinished jobs that one tenant may have.
    #[arg(long, value_name = "N")]
    tenant_jobs_max: Option<String>,
    /// Any setting; `maitre config` lists them. May be given several times.
    #[arg(long = "set", value_name = "SETTING=VALUE")]
    set: Vec<String>,
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
    let mut all = options.settings()?.all;
    let place = Place::of(&all);
    all.config.what_if.replayer = place.replayer();
    run(all.config, &place, |server, stop| async move {
        print::note(&format!("maitre listens on {}", server.address));
        ended(server.run(stop.cancelled_owned()).await)
    })
}

/// Runs a scheduler and a worker that runs any command, until it is told to stop.
pub(crate) fn dev(options: &DevOptions) -> Result<(), Failure> {
    let settings = options.serve.settings()?;
    let place = Place::of(&settings.all);
    let mut config = settings.all.config;
    config.what_if.replayer = place.replayer();
    let section = options.work.over(settings.worker)?;
    let tls_cert = config.tls_cert.clone();
    run(config, &place.clone(), |server, stop| async move {
        let address = server.address;
        let door = own_door(&server, tls_cert.as_deref())?;
        let (worker, name) = work::exec_worker(&door, section)?;
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

/// How a worker in this process comes to its scheduler.
fn own_door(server: &Server, tls_cert: Option<&Path>) -> Result<work::Door, Failure> {
    let scheme = if tls_cert.is_some() { "https" } else { "http" };
    let ca_pem = tls_cert.map(fs::read_to_string).transpose();
    Ok(work::Door {
        url: format!("{scheme}://{}", server.address),
        token: server.worker_token().map(|token| token.reveal().to_owned()),
        ca_pem: ca_pem.context("could not read the certificate")?,
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
    match error {
        server::Error::Config(error) => {
            let hint = Some(error.hint.to_owned());
            Failure::Input { error: error.to_string(), hint }
        }
        server::Error::Listen { address, source } => Failure::Input {
            error: format!("could not listen on {address}: {source}"),
            hint: Some("name another address with `--listen`".to_owned()),
        },
        error @ (server::Error::Store(_)
        | server::Error::Serve(_)
        | server::Error::TaskEnded { .. }
        | server::Error::TaskPanicked { .. }) => Failure::Other(error.into()),
    }
}

fn welcome(address: SocketAddr, place: &Place, worker: &str) -> String {
    format!(
        "maitre listens on {address}, keeps its data in {place}, and has one worker, `{worker}`\n\
         \n\
         in another terminal:\n\
         \x20 maitre run -- echo hello      runs a command and shows what it says\n\
         \x20 maitre submit -- sleep 5      puts a command into the queue\n\
         \x20 maitre jobs                   lists what became of them\n\
         \x20 maitre why 2                  says why job 2 waits\n\
         or in a browser: http://{address}/\n\
         \n\
         Ctrl-C stops it; nothing is lost"
    )
}

impl Options {
    /// What the flags say.
    pub(crate) fn flags(&self) -> Result<Vec<Said>, Failure> {
        let own = [
            ("--listen", "listen", &self.listen),
            ("--data-dir", "data_dir", &self.data_dir),
            ("--store", "store", &self.store),
            ("--heartbeat", "heartbeat", &self.heartbeat),
            ("--lease", "lease", &self.lease),
            ("--retention", "retention", &self.retention),
            ("--tenant-jobs-max", "tenant_jobs_max", &self.tenant_jobs_max),
        ];
        let said = |(flag, key, text): (&str, &str, &Option<String>)| {
            text.as_ref().map(|text| Said::by_flag(flag, key, text))
        };
        let set = pairs("--set", &self.set)?;
        let set = set.into_iter().map(|(key, text)| Said::by_flag("--set", &key, &text));
        Ok(own.into_iter().filter_map(said).chain(set).collect())
    }

    fn settings(&self) -> Result<Settings, Failure> {
        Settings::checked(self.config.as_deref(), self.flags()?)
    }
}

/// Says that this machine's clock is off by so much: only for rehearsals of clocks that disagree.
const SKEW: &str = "MAITRE_FAULT_CLOCK_SKEW_MS";

fn skew_ms() -> Result<i64, Failure> {
    let Some(text) = std::env::var_os(SKEW) else { return Ok(0) };
    let text = text.to_string_lossy();
    text.parse().map_err(|_| Failure::Input {
        error: format!("{SKEW} is `{text}`, which is no number of milliseconds"),
        hint: None,
    })
}

/// Opens the store, starts a scheduler on it, and lets `body` run it.
fn run<F: Future<Output = Result<(), Failure>>>(
    config: Config,
    place: &Place,
    body: impl FnOnce(Server, CancellationToken) -> F,
) -> Result<(), Failure> {
    logging();
    let options = StoreOptions {
        log_bytes_max: config.limits.log_bytes_max,
        jobs_max: config.limits.jobs_max,
        tenant_jobs_max: config.limits.tenant_jobs_max,
        patience: config.patience,
        skew_ms: skew_ms()?,
        ..StoreOptions::default()
    };
    let runtime = crate::client::runtime()?;
    let kept = runtime.block_on(async {
        let (signals, stop) = (Signals::listen()?, CancellationToken::new());
        let work = async {
            let begun = tokio::select! {
                begun = begin(config, place, options) => begun?,
                () = stop.cancelled() => return Ok::<_, Failure>(None),
            };
            let (kept, server) = begun;
            body(server, stop.clone()).await?;
            Ok(Some(kept))
        };
        tokio::select! {
            ended = work => ended,
            () = signals.stop(stop.clone()) => Ok(None),
        }
    })?;
    drop(runtime);
    // Held until the very end: nobody else may open the data before the last write.
    drop(kept);
    Ok(())
}

/// A directory is there or not, and is taken before anything else. A Postgres may be away: whoever
/// asks meanwhile is told so.
async fn begin(
    config: Config,
    place: &Place,
    options: StoreOptions,
) -> Result<(Kept, Server), Failure> {
    let Place::Postgres(url) = place else {
        let kept = place.open(options).await?;
        let server = server::start(config, Arc::clone(&kept.store)).await.map_err(failed)?;
        return Ok((kept, server));
    };
    let mut doors = server::open(config).await.map_err(failed)?;
    let connect = || async { Ok(Postgres::connect(url, options.clone()).await?) };
    // Whoever waits for it wants to know where it should be.
    let connected = doors.patiently(connect).instrument(tracing::warn_span!("store", %place));
    let connected = connected.await.map_err(|error| match failed(error) {
        Failure::Other(error) => Failure::Other(error.context(format!("`{place}`"))),
        told @ (Failure::Input { .. } | Failure::Exit(_)) => told,
    });
    let store: Arc<dyn Store> = Arc::new(connected?);
    let server = doors.start(Arc::clone(&store)).await.map_err(failed)?;
    Ok((Kept::shared(store), server))
}

/// What operators read goes to stderr; `MAITRE_LOG` says how much of it, and `MAITRE_LOG_FORMAT`
/// whether it is for machines.
pub(crate) fn logging() {
    let filter = tracing_subscriber::EnvFilter::builder()
        .with_default_directive(tracing::Level::WARN.into())
        .with_env_var("MAITRE_LOG")
        .from_env_lossy();
    // What passes on the wire is not for logs: there are tokens in it.
    let quiet = ["h2=info", "hyper=info", "hyper_util=info", "rustls=info", "tower=info"];
    let quiet = quiet.iter().filter_map(|directive| directive.parse().ok());
    let filter = quiet.fold(filter, tracing_subscriber::EnvFilter::add_directive);
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(print::is_watched() && std::env::var_os("NO_COLOR").is_none())
        .with_target(false);
    // In a test, somebody else may have set it up.
    let _ = if std::env::var("MAITRE_LOG_FORMAT").is_ok_and(|format| format == "json") {
        log.json().flatten_event(true).try_init()
    } else {
        log.try_init()
    };
}
