//! The process between a worker and its commands, for programs without a mode for it.

use std::process::ExitCode;

fn main() -> ExitCode {
    worker::child::main(std::env::args_os().skip(1))
}
