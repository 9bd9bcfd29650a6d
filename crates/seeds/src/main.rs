//! `cargo xtask seeds`: simulates seeds, and repeats one of them with a trace.

#![expect(clippy::print_stdout, reason = "it is a report for people")]

use std::process::ExitCode;

use clap::Parser;
use seeds::{Broken, Counts, Played, Reader, play};

/// Simulate seeds: real schedulers on a store in memory, in an order that a seed draws.
#[derive(Parser)]
struct Arguments {
    /// Number of seeds
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,
    /// First seed
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Simulate only this seed, and print its trace
    #[arg(long, conflicts_with_all = ["seeds", "from"])]
    seed: Option<u64>,
    /// Inject a bug that must be found: guard, token, expiry, key, recovery, overstay, limit
    #[arg(long = "break", value_name = "WHAT", value_parser = broken)]
    broken: Option<Broken>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => replay(seed, arguments.broken),
        None => run(&arguments),
    }
}

fn broken(name: &str) -> Result<Broken, String> {
    let names: Vec<&str> = Broken::ALL.into_iter().map(Broken::name).collect();
    Broken::named(name).ok_or_else(|| format!("is none of {}", names.join(", ")))
}

fn replay(seed: u64, broken: Option<Broken>) -> ExitCode {
    let played = play(seed, broken, Reader::Somebody);
    for line in &played.trace {
        println!("{line}");
    }
    println!("{:?}", played.counts);
    verdict(&played)
}

/// Stops at the first seed with a violation.
fn run(arguments: &Arguments) -> ExitCode {
    let mut counts = Counts::default();
    for seed in arguments.from..arguments.from.saturating_add(arguments.seeds) {
        let played = play(seed, arguments.broken, Reader::Nobody);
        counts = counts.and(played.counts);
        if !played.violations.is_empty() {
            return verdict(&played);
        }
    }
    println!("{} seeds from {} on, nothing wrong: {counts:?}", arguments.seeds, arguments.from);
    ExitCode::SUCCESS
}

fn verdict(played: &Played) -> ExitCode {
    let seed = played.seed;
    if played.violations.is_empty() {
        println!("seed {seed}: nothing wrong");
        return ExitCode::SUCCESS;
    }
    for violation in &played.violations {
        println!("seed {seed}: {violation}");
    }
    println!(
        "seed {seed}: {} wrong; `cargo xtask seeds --seed {seed}` tells what happened",
        played.violations.len()
    );
    ExitCode::FAILURE
}
