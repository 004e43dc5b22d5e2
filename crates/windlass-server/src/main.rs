//! The `windlass` binary. Everything it does is a verb under `cli`.

mod cli;
mod http;
mod token;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(&cli::Cli::parse())
}
