//! `windlass completions`: scripts that let shells complete commands and flags.

use clap::CommandFactory as _;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  windlass completions bash > ~/.local/share/bash-completion/completions/windlass
  windlass completions zsh > \"${fpath[1]}/_windlass\"
  windlass completions fish > ~/.config/fish/completions/windlass.fish";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell to write for.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> String {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli::Cli::command(), "windlass", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
