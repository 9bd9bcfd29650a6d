//! Judges policies: replays a list of traces, and prints one table.
//!
//! ```text
//! cargo run --profile quick -p sim --example judge -- traces FOLDER --policy balanced
//! ```

#![expect(clippy::print_stdout, reason = "it prints its table")]
#![expect(clippy::print_stderr, reason = "it says what it does")]

mod arguments;
mod policy;
mod markdown;
mod parallel;
mod figures;
mod traces;
mod shares;
mod families;

use std::process::ExitCode;

const USAGE: &str = "\
usage: judge <command> [options]

  traces FOLDER...      Replay the traces of a list that are in the folders
    --list FILE         The list; crates/sim/traces/judge.toml without it
    --only NAME,...     Replay only these traces
  families              Replay generated families, and compare means with FIFO
    --only NAME,...     Replay only these families
    --runs N            How many replays of each family; 20 without it
  shares                Replay tenants that are all backlogged, and compare shares with dues
    --runs N            How many replays; 200 without it

Options of all commands:
  --estimates S,...     Replay only with these sources of estimates
  --policy POLICY       A preset, a baseline, or `NAME={\"preset\": ...}`; repeat it for several
  --seed N              The first seed; 0 without it
  --threads N           How many replays run at once; 2 without it";

fn main() -> ExitCode {
    let outcome = arguments::read(std::env::args().skip(1)).and_then(|arguments| {
        match arguments.command.as_str() {
            "traces" => traces::run(&arguments),
            "families" => families::run(&arguments),
            "shares" => shares::run(&arguments),
            other => Err(format!("there is no command `{other}`\n\n{USAGE}")),
        }
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
