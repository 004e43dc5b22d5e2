//! The `windlass` binary. Everything it does is a command under `cli`.

mod announce;
mod arguments;
mod bench;
mod cli;
mod config;
mod dashboard;
mod dial;
mod faktory;
mod http;
mod logs;
mod notify;
mod serve;
mod telemetry;
mod token;
mod version;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run(&cli::Cli::parse_from(arguments::read()))
}
