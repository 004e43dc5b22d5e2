//! The command line: one variant and one file per verb. Verbs translate; the rules are in the library and core.

mod bench;
mod config;
mod node;
mod plot;
mod policy;
mod screen;
mod serve;
mod simulate;
mod token;

use crate::serve::Api;
use clap::{Parser, Subcommand};
use screen::Screen;
use std::io::Write as _;
use std::process::ExitCode;

/// A durable job queue with a retry engine you can read and preview.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 = done, 1 = failed, 2 = usage or bad input.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List, preview and explain retry policies.
    Policy(policy::Args),
    /// Show what retry policies do to a service that is down for a while.
    Simulate(simulate::Args),
    /// Measure what this build does on this machine, next to the bare database.
    Bench(bench::Args),
    /// Run a node: the API, HTTP jobs, schedules and upkeep.
    Serve(serve::Args),
    /// Run a node without the API.
    Work(serve::Args),
    /// Print the effective configuration and where each value came from.
    Config(config::Args),
    /// Create, list and revoke API tokens.
    Token(token::Args),
}

/// Why a verb did not do what it was asked to.
#[derive(Debug)]
pub(crate) enum Error {
    /// The caller's mistake, already told in full: exit code 2.
    BadInput(String),
    /// Anything else: exit code 1.
    Failed(anyhow::Error),
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs a verb: what it returns goes to standard output, errors to standard error.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    let screen = Screen::of_this_process();
    let done = match &cli.verb {
        Verb::Policy(args) => policy::run(args, &screen),
        Verb::Simulate(args) => simulate::run(args, &screen),
        Verb::Bench(args) => bench::run(args),
        Verb::Serve(args) => serve::run(args, Api::On),
        Verb::Work(args) => serve::run(args, Api::Off),
        Verb::Config(args) => config::run(args),
        Verb::Token(args) => token::run(args),
    };
    match done {
        Ok(text) => print(&text),
        Err(Error::BadInput(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
        Err(Error::Failed(error)) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The runtime of verbs that talk to a store or a server.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Error::Failed(error.into()))
}

/// A reader that has seen enough (`| head`) is no failure.
fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: cannot write: {error}");
            ExitCode::FAILURE
        }
    }
}
