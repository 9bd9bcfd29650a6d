//! `maitre`: the binary. Wiring only: what is decided is decided elsewhere.

mod settings;
mod signals;
mod config;
mod serve;
mod place;
mod upkeep;
mod work;
mod client;
mod away;
mod spec;
mod lines;
mod meant;
mod bulk;
mod foresee;
mod submit;
mod job;
mod logs;
mod watch;
mod filter;
mod change;
mod poison;
mod admin;
mod types;
mod detect;
mod schedule;
mod token;
mod top;
mod setting;
mod decide;
mod simulate;
mod rules;
mod bench;
mod view;
mod backup;
mod completions;
mod print;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::client::{Target, wait};
use crate::print::Failure;

/// Millions of small things of a few sizes come and go: this keeps those of a size together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seats jobs at workers, and can always say why.
#[derive(Parser)]
#[command(name = "maitre", version, max_term_width = 80)]
#[command(after_help = "\
Start here:
  maitre dev                         a scheduler and a worker, in this terminal
  maitre run -- echo hello           in another: runs it, shows its output
  maitre submit -- sleep 5           puts a job into the queue
  maitre jobs                        what became of all of them
  maitre why 2                       why job 2 waits, and what would change it
  maitre top                         what waits and runs, as it changes")]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: Target,
}

#[derive(Subcommand)]
enum Command {
    /// Try it out: a scheduler and a worker in one process.
    Dev(serve::DevOptions),
    /// Run a scheduler.
    Serve(serve::Options),
    /// Run a worker.
    Work(work::Options),
    /// Show the settings of a scheduler, and where each comes from.
    Config(config::ConfigOptions),
    /// Put a job into the queue.
    Submit(submit::Options),
    /// Run a command, show its output, and exit with its code.
    Run(submit::RunOptions),
    /// List jobs, newest first.
    Jobs(job::ListOptions),
    /// Show one job and all its attempts.
    Job(job::OneOptions),
    /// Show what becomes of jobs as it happens.
    Watch(watch::Options),
    /// Show what a job wrote.
    Logs(logs::Options),
    /// Say why a job waits, or why it is where it is.
    #[command(after_help = job::WHY_HELP)]
    Why(job::OneOptions),
    /// Call jobs off.
    Cancel(change::Options),
    /// Take up jobs again that failed or were cancelled.
    Retry(change::Options),
    /// Keep jobs in the queue.
    Hold(change::Options),
    /// Let jobs go again.
    Release(change::Options),
    /// Give jobs another priority.
    Priority(change::PriorityOptions),
    /// List jobs that took workers with them, or try them again.
    Poison(poison::Options),
    /// List the workers.
    Workers(admin::WorkersOptions),
    /// Let a worker take no more work.
    Drain(admin::DrainOptions),
    /// Watch what waits and runs: queue, waits, slots, shares, reasons.
    Top(top::Options),
    /// List the tenants, with what they have and use.
    Tenants(admin::ListOptions),
    /// List the types of jobs; show, set and look back at one.
    Types(types::Options),
    /// Let workers look for work of a type now.
    Detect(detect::Options),
    /// List what happened: detections, groups, settings, leads.
    Activity(detect::ActivityOptions),
    /// Add, list, pause or remove jobs that recur.
    Schedule(schedule::Options),
    /// Show or publish what all workers are told.
    Context(detect::ContextOptions),
    /// Show or set a tenant's slots in a pool.
    Quota(setting::QuotaOptions),
    /// Show or set the policy.
    Policy(setting::PolicyOptions),
    /// Set a tenant, type, resource, pool or budget.
    Set(setting::SetOptions),
    /// List everything that is set.
    Settings(admin::ListOptions),
    /// Make, revoke and list tokens: who may do what.
    Token(token::Options),
    /// Copy everything that is kept, while the scheduler runs.
    Backup(backup::Options),
    /// Look after what is kept.
    #[command(subcommand)]
    Store(upkeep::Upkeep),
    /// Write the live world down, for `maitre decide`.
    Snapshot,
    /// Decide on a snapshot: who runs where, and why the others wait.
    Decide(decide::Options),
    /// Replay a workload: what a policy would have done with it.
    Simulate(simulate::Options),
    /// List every rule: what it rewards, its range, which presets use it.
    Rules(rules::Options),
    /// Write a script that completes these commands in a shell.
    Completions(completions::Options),
    /// Measure this machine.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Bench {
    /// How fast decisions are, and how that grows with the queue.
    Decide(bench::Options),
    /// How fast jobs go through a scheduler and its workers, durably.
    Run(bench::run::Options),
    /// A worker of `maitre bench run`.
    #[command(hide = true)]
    Worker(bench::run::worker::Options),
    /// The wire alone, for `maitre bench run`.
    #[command(hide = true)]
    Echo,
    /// How a replay grows with the number of jobs.
    Simulate(bench::simulate::Options),
}

fn main() -> ExitCode {
    // Started by a worker, this program is what stands between it and its commands.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == work::CHILD) {
        return worker::child::main(words);
    }
    let cli = Cli::parse();
    print::exit_code(run(&cli.command, &cli.target))
}

fn run(command: &Command, target: &Target) -> Result<(), Failure> {
    match command {
        Command::Dev(options) => serve::dev(options),
        Command::Serve(options) => serve::serve(options),
        Command::Work(options) => work::run(options, target),
        Command::Config(options) => config::run(options),
        Command::Submit(options) => wait(submit::submit(options, target)),
        Command::Run(options) => wait(submit::run(options, target)),
        Command::Jobs(options) => wait(job::list(options, target)),
        Command::Job(options) => wait(job::show(options, target)),
        Command::Watch(options) => wait(watch::run(options, target)),
        Command::Logs(options) => wait(logs::run(options, target)),
        Command::Why(options) => wait(job::why(options, target)),
        Command::Cancel(options) => wait(change::cancel(options, target)),
        Command::Retry(options) => wait(change::retry(options, target)),
        Command::Hold(options) => wait(change::hold(options, target)),
        Command::Release(options) => wait(change::release(options, target)),
        Command::Priority(options) => wait(change::priority(options, target)),
        Command::Poison(options) => wait(poison::run(options, target)),
        Command::Workers(options) => wait(admin::workers(options, target)),
        Command::Drain(options) => wait(admin::drain(options, target)),
        Command::Top(options) => wait(top::run(options, target)),
        Command::Tenants(options) => wait(admin::tenants(options, target)),
        Command::Types(options) => wait(types::run(options, target)),
        Command::Detect(options) => wait(detect::detect(options, target)),
        Command::Activity(options) => wait(detect::activity(options, target)),
        Command::Schedule(options) => wait(schedule::run(options, target)),
        Command::Context(options) => wait(detect::context(options, target)),
        Command::Quota(options) => wait(setting::quota(options, target)),
        Command::Policy(options) => wait(setting::policy(options, target)),
        Command::Set(options) => wait(setting::set(options, target)),
        Command::Settings(options) => wait(setting::list(options, target)),
        Command::Token(options) => token::run(options, target),
        Command::Backup(options) => backup::run(options),
        Command::Store(upkeep) => wait(upkeep::run(upkeep)),
        Command::Snapshot => wait(setting::snapshot(target)),
        Command::Decide(options) => decide::run(options),
        Command::Simulate(options) => simulate::run(options),
        Command::Rules(options) => rules::run(options),
        Command::Completions(options) => completions::run::<Cli>(options),
        Command::Bench(Bench::Decide(options)) => bench::run(options),
        Command::Bench(Bench::Run(options)) => bench::run::run(options),
        Command::Bench(Bench::Worker(options)) => bench::run::worker::run(options, target),
        Command::Bench(Bench::Echo) => bench::run::echo::serve(),
        Command::Bench(Bench::Simulate(options)) => bench::simulate::run(options),
    }
}
