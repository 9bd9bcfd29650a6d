//! Stands between a worker and its commands, for programs that do not do so themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    worker::child::main(std::env::args_os().skip(1))
}
