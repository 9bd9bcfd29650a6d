//! `maitre`: the binary. Wiring only: what is decided is decided elsewhere.

mod decide;
mod rules;
mod bench;
mod print;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Millions of small things of a few sizes come and go: this keeps those of a size together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Seats jobs at workers, and can always say why.
#[derive(Parser)]
#[command(name = "maitre", version, propagate_version = true, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Decide on a snapshot, once: who runs where, and why the others wait.
    Decide(decide::Options),
    /// List every rule: what it rewards, its range, which presets use it.
    Rules(rules::Options),
    /// Measure this machine.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Subcommand)]
enum Bench {
    /// How fast decisions are, and how that grows with the queue.
    Decide(bench::Options),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Decide(options) => decide::run(&options),
        Command::Rules(options) => rules::run(&options),
        Command::Bench(Bench::Decide(options)) => bench::run(&options),
    };
    print::exit_code(outcome)
}
