//! `maitre completions`: what a shell needs to complete our commands.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::print::{self, Failure};

/// Options of `maitre completions`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  maitre completions bash > /etc/bash_completion.d/maitre
  maitre completions zsh > ~/.zfunc/_maitre
  maitre completions fish > ~/.config/fish/completions/maitre.fish")]
pub(crate) struct Options {
    /// For this shell.
    shell: Shell,
}

/// Writes the script.
pub(crate) fn run<C: CommandFactory>(options: &Options) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut C::command(), "maitre", &mut script);
    print::data(&String::from_utf8_lossy(&script))
}
