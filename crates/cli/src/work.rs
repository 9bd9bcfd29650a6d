//! `maitre work`: a worker that runs commands.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use worker::{ChildProgram, Command, CommandSettings, Commands, Worker};

use crate::client::{Target, runtime};
use crate::print::{self, Failure};
use crate::serve::logging;
use crate::settings::{Length, Settings};
use crate::signals::Signals;
use crate::spec::pairs;

/// The type of jobs that bring their own command.
const EXEC: &str = "exec";
/// The hidden word that makes this program stand between a worker and its commands.
pub(crate) const CHILD: &str = "work-child";

/// Options of `maitre work`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre work --exec --slots 4
  maitre work --exec --name gpu-1 --pool gpu --has gpu=a100 --amount gpu=2
  maitre work --config worker.toml    (named commands: see docs/operating.md)")]
pub(crate) struct Options {
    /// Settings; `maitre.toml` in the working directory is read if it is there.
    #[arg(long, env = "MAITRE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Run any command that a job brings, as this user.
    #[arg(long)]
    exec: bool,
    #[command(flatten)]
    worker: WorkerOptions,
}

/// What a worker is like, on the command line.
#[derive(Args)]
pub(crate) struct WorkerOptions {
    /// What it is called; the same after every restart.
    #[arg(long, env = "MAITRE_WORKER_NAME")]
    name: Option<String>,
    /// Jobs that it runs at once.
    #[arg(long, env = "MAITRE_WORKER_SLOTS")]
    slots: Option<u32>,
    /// The pool that it belongs to.
    #[arg(long, env = "MAITRE_WORKER_POOL")]
    pool: Option<String>,
    /// What it offers; may be given several times.
    #[arg(long = "has", value_name = "KEY=VALUE")]
    has: Vec<String>,
    /// Amounts that it has: `--amount gpu=2`.
    #[arg(long = "amount", value_name = "NAME=NUMBER")]
    amounts: Vec<String>,
    /// Lower is preferred.
    #[arg(long, allow_negative_numbers = true)]
    rank: Option<i32>,
    /// A locality label.
    #[arg(long = "hint")]
    hints: Vec<String>,
    /// A directory of files named by their digests: what this worker holds already.
    #[arg(long, value_name = "DIR")]
    inventory: Option<PathBuf>,
}

/// What a worker is like, in a file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Section {
    name: Option<String>,
    slots: Option<u32>,
    pool: Option<String>,
    has: BTreeMap<String, Vec<String>>,
    amounts: BTreeMap<String, u64>,
    rank: i32,
    hints: Vec<String>,
    /// Run any command that a job brings.
    exec: bool,
    /// Commands by their type.
    commands: BTreeMap<String, Command>,
    /// Running jobs get so long when the worker stops.
    leave_grace: Option<Length>,
    inventory: Option<PathBuf>,
}

/// What each part of the section says, in a few words.
const ABOUT: [(&str, &str); 11] = [
    ("worker.name", "what the worker is called"),
    ("worker.slots", "jobs that it runs at once"),
    ("worker.pool", "the pool that it belongs to"),
    ("worker.has", "what it offers"),
    ("worker.amounts", "amounts that it has"),
    ("worker.rank", "lower is preferred"),
    ("worker.hints", "its locality labels"),
    ("worker.exec", "it runs any command that a job brings"),
    ("worker.leave_grace", "what running jobs get when it stops"),
    ("worker.inventory", "files named by digest: what it holds already"),
    ("worker.commands", "what jobs of this type run"),
];

/// What a part of the section says; commands are parts of their own.
pub(crate) fn about(key: &str) -> Option<&'static str> {
    let is_it = |name: &str| key == name || key.starts_with(&format!("{name}."));
    ABOUT.iter().find(|(name, _)| is_it(name)).map(|(_, about)| *about)
}

impl WorkerOptions {
    /// What the file says, unless a flag or the environment says otherwise. A flag that is wrong
    /// is kept, and refused when the worker is made.
    pub(crate) fn over(&self, mut section: Section) -> Result<Section, Failure> {
        section.name = self.name.clone().or(section.name);
        section.slots = self.slots.or(section.slots);
        section.pool = self.pool.clone().or(section.pool);
        section.rank = self.rank.unwrap_or(section.rank);
        section.inventory = self.inventory.clone().or(section.inventory);
        section.hints.extend(self.hints.iter().cloned());
        for (key, value) in pairs("--has", &self.has)? {
            section.has.entry(key).or_default().push(value);
        }
        for (name, amount) in pairs("--amount", &self.amounts)? {
            let number = amount.parse().map_err(|_| Failure::Input {
                error: format!("`--amount {name}={amount}` is not a whole number"),
                hint: None,
            })?;
            section.amounts.insert(name, number);
        }
        Ok(section)
    }
}

/// Runs a worker until it is told to stop.
pub(crate) fn run(options: &Options, target: &Target) -> Result<(), Failure> {
    let settings = Settings::read(options.config.as_deref(), Vec::new())?;
    let mut section = options.worker.over(settings.worker)?;
    section.exec |= options.exec;
    if !section.exec && section.commands.is_empty() {
        return Err(Failure::Input {
            error: "this worker would run nothing".to_owned(),
            hint: Some(
                "`--exec` lets jobs bring any command; or name commands in a settings file"
                    .to_owned(),
            ),
        });
    }
    logging();
    runtime()?.block_on(async {
        let signals = Signals::listen()?;
        let door = Door { url: target.url(), token: target.token()?, ca_pem: target.ca_pem()? };
        let (worker, name) = make(&door, section)?;
        print::note(&format!("worker `{name}` works for {}", target.server));
        let stop = CancellationToken::new();
        let stopping = stop.clone();
        tokio::select! {
            ended = worker.run(stop) => ended.map_err(|error| Failure::Other(anyhow!(error))),
            () = signals.stop(stopping) => Ok(()),
        }
    })
}

/// Where a worker works, and what opens the door there.
#[derive(Default)]
pub(crate) struct Door {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) ca_pem: Option<String>,
}

/// A worker that runs any command, and what it is called.
pub(crate) fn exec_worker(door: &Door, section: Section) -> Result<(Worker, String), Failure> {
    let name = section.name.unwrap_or_else(|| format!("{}-dev", host_name()));
    make(door, Section { exec: true, name: Some(name), ..section })
}

fn make(door: &Door, section: Section) -> Result<(Worker, String), Failure> {
    let wrong = |error: worker::Error| Failure::Input { error: error.to_string(), hint: None };
    let child = ChildProgram::this([CHILD])
        .map_err(|error| Failure::Other(anyhow!(error).context("find this program")))?;
    let commands = Commands::start(CommandSettings::new(child)).map_err(wrong)?;
    let name = section.name.unwrap_or_else(host_name);
    let slots = section.slots.unwrap_or_else(cores);
    let mut builder = Worker::builder(&door.url).name(&name).slots(slots).rank(section.rank);
    if let Some(token) = &door.token {
        builder = builder.token(token);
    }
    if let Some(pem) = &door.ca_pem {
        builder = builder.ca_pem(pem.as_bytes());
    }
    if let Some(pool) = &section.pool {
        builder = builder.pool(pool);
    }
    for (key, values) in &section.has {
        builder = values.iter().fold(builder, |builder, value| builder.has(key, value));
    }
    for (name, amount) in &section.amounts {
        builder = builder.amount(name, *amount);
    }
    builder = section.hints.iter().fold(builder, |builder, hint| builder.hint(hint));
    if let Some(Length(grace)) = section.leave_grace {
        builder = builder.leave_grace(Duration::max(grace, Duration::from_millis(1)));
    }
    if let Some(inventory) = section.inventory {
        builder = builder.inventory(worker::Directory::new(inventory));
    }
    if section.exec {
        builder = builder.type_(EXEC, 0, commands.exec());
    }
    for (kind, command) in section.commands {
        builder = builder.type_(&kind, 0, commands.named(command));
    }
    Ok((builder.build().map_err(wrong)?, name))
}

/// The machine's name, so that workers on different machines differ.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "worker".to_owned() } else { name.to_owned() }
}

/// As many slots as the machine has cores.
fn cores() -> u32 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX)
}
