//! The `windlass` binary. Everything it does is a command under `cli`.

mod arguments;
mod bench;
mod cli;
mod config;
mod dashboard;
mod faktory;
mod http;
mod logs;
mod serve;
mod token;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(&cli::Cli::parse_from(arguments::read()))
}
