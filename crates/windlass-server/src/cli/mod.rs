//! The command line: one variant and one file per command. Commands translate; the rules are in the library and core.

mod demo;
mod holds;
mod kinds;
mod operate;
mod policy;
mod queues;
mod remote;
mod schedules;
mod simulate;
mod stats;
mod tenants;
mod terminal;
mod transfer;
mod work;

pub(crate) use simulate::outage_plot;

use crate::serve::Api;
use clap::{Parser, Subcommand};
use std::future::Future;
use std::io::Write as _;
use std::process::ExitCode;
use terminal::screen::Screen;

/// Shown after the list of all commands.
const AFTER: &str = "\
Commands talk to a server (--server URL, else http://127.0.0.1:9463) or work directly on a store
(--store sqlite:PATH or postgres://…). All print JSON with --json.

Exit codes: 0 done, 1 failed, 2 usage or bad input, 3 not found, 4 conflict with the current
state, 5 unavailable (no server, or a store that cannot be used now).

New here? `windlass demo` shows what retries look like in ten seconds.";

/// A durable job queue with a retry engine you can read and preview.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, long_version = crate::version::LONG.as_str(), propagate_version = true)]
#[command(max_term_width = 100)]
#[command(after_help = AFTER)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write a configuration file with every setting explained, and say what to do next.
    Init(operate::init::Args),
    /// Run a node: the API, HTTP jobs, schedules and upkeep.
    Serve(operate::serve::Args),
    /// Run a node without the API.
    Work(operate::serve::Args),
    /// Store a job, or a file of jobs.
    Enqueue(Box<work::enqueue::Args>),
    /// List, show, change, cancel and replay jobs.
    Jobs(work::jobs::Args),
    /// Show a job's execution log: every attempt, its result, and what followed.
    History(work::history::Args),
    /// Say why a job is not running, or why it gave up, in two sentences.
    Why(work::why::Args),
    /// Dead letters: list, group, replay and discard jobs that gave up.
    Dead(work::dead::Args),
    /// Schedules: cron lines and intervals that enqueue jobs.
    Schedules(schedules::Args),
    /// Queues: how full they are; pause, resume, purge, settings.
    Queues(queues::Args),
    /// Hold a queue or a limit key: nothing of it starts for a while.
    Hold(holds::HoldArgs),
    /// List what is held and which circuit breakers are open; release holds.
    Holds(holds::HoldsArgs),
    /// The policy and error rules of kinds.
    Kinds(kinds::Args),
    /// A tenant's default webhook.
    Tenants(tenants::Args),
    /// List, preview and explain retry policies.
    Policy(policy::Args),
    /// Show what retry policies do to a service that is down for a while.
    Simulate(simulate::Args),
    /// Show what happened in 5 minutes, an hour, a day, or since the beginning.
    Stats(stats::Args),
    /// Follow the events of jobs live.
    Tail(work::tail::Args),
    /// Show who runs jobs, on how many slots, since when.
    Workers(operate::workers::Args),
    /// Show alerts; set, turn off and test their rules.
    Alerts(operate::alerts::Args),
    /// See retries happen, in ten seconds and without any service.
    Demo(demo::Args),
    /// Measure this build on this machine, next to the bare database.
    Bench(operate::bench::Args),
    /// Copy a SQLite store while it is in use.
    Backup(operate::backup::Args),
    /// Write everything in a store to a file: jobs, history, schedules, settings.
    Export(transfer::export::Args),
    /// Read such a file into another store, or the jobs of another job queue.
    Import(transfer::import::Args),
    /// Create, list and revoke API tokens.
    Token(operate::token::Args),
    /// Print the effective configuration and where each value came from.
    Config(operate::config::Args),
    /// Bring a store's schema up to date.
    Migrate(operate::migrate::Args),
    /// Keys for values at rest: make, list and rotate them.
    Keys(operate::keys::Args),
    /// Check a store or server, and say how to fix what is wrong.
    Doctor(operate::doctor::Args),
    /// Write a script that lets your shell complete commands and flags.
    Completions(operate::completions::Args),
    /// Write the manual pages to a directory.
    #[command(hide = true)]
    Man(operate::man::Args),
}

/// Why a command did not succeed. Each has its exit code.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Exit code 1; the text is the command's output.
    #[error("{0}")]
    Reported(String),
    /// Exit code 1.
    #[error("{0:#}")]
    Failed(anyhow::Error),
    /// The caller's mistake, with a complete message: exit code 2.
    #[error("{0}")]
    BadInput(String),
    /// Exit code 3.
    #[error("{0}")]
    NotFound(String),
    /// Exit code 4.
    #[error("{0}")]
    Conflict(String),
    /// Exit code 5.
    #[error("{0}")]
    Unavailable(String),
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Failed(error)
    }
}

impl Error {
    fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Reported(_) | Self::Failed(_) => 1,
            Self::BadInput(_) => 2,
            Self::NotFound(_) => 3,
            Self::Conflict(_) => 4,
            Self::Unavailable(_) => 5,
        })
    }
}

/// Runs a command: its result goes to standard output, errors to standard error.
pub(crate) fn run(cli: &Cli) -> ExitCode {
    let screen = Screen::of_this_process();
    let done = match &cli.command {
        Command::Enqueue(args) => wait(work::enqueue::run(args, &screen)),
        Command::Jobs(args) => wait(work::jobs::run(args, &screen)),
        Command::History(args) => wait(work::history::run(args, &screen)),
        Command::Dead(args) => wait(work::dead::run(args, &screen)),
        Command::Schedules(args) => wait(schedules::run(args, &screen)),
        Command::Queues(args) => wait(queues::run(args, &screen)),
        Command::Hold(args) => wait(holds::hold(args)),
        Command::Holds(args) => wait(holds::holds(args, &screen)),
        Command::Why(args) => wait(work::why::run(args, &screen)),
        Command::Kinds(args) => wait(kinds::run(args, &screen)),
        Command::Tenants(args) => wait(tenants::run(args)),
        Command::Policy(args) => policy::run(args, &screen),
        Command::Stats(args) => wait(stats::run(args, &screen)),
        Command::Tail(args) => wait(work::tail::run(args, &screen)),
        Command::Workers(args) => wait(operate::workers::run(args, &screen)),
        Command::Alerts(args) => wait(operate::alerts::run(args, &screen)),
        Command::Demo(args) => wait(demo::run(args, &screen)),
        Command::Backup(args) => wait(operate::backup::run(args)),
        Command::Export(args) => wait(transfer::export::run(args)),
        Command::Import(args) => wait(transfer::import::run(args, &screen)),
        Command::Migrate(args) => wait(operate::migrate::run(args)),
        Command::Keys(args) => wait(operate::keys::run(args)),
        Command::Doctor(args) => wait(operate::doctor::run(args, &screen)),
        Command::Init(args) => operate::init::run(args),
        Command::Man(args) => operate::man::run(args),
        Command::Completions(args) => Ok(operate::completions::run(args)),
        Command::Serve(args) => operate::serve::run(args, Api::On),
        Command::Work(args) => operate::serve::run(args, Api::Off),
        Command::Config(args) => wait(operate::config::run(args, &screen)),
        Command::Token(args) => operate::token::run(args, &screen),
        Command::Simulate(args) => simulate::run(args, &screen),
        Command::Bench(args) => operate::bench::run(args),
    };
    let (text, error) = match done {
        Ok(text) => (text, None),
        Err(Error::Reported(text)) => (text.clone(), Some(Error::Reported(text))),
        Err(error) => (String::new(), Some(error)),
    };
    if let Err(error) = emit(&text) {
        eprintln!("error: {error}");
        return error.code();
    }
    match error {
        None => ExitCode::SUCCESS,
        Some(Error::Reported(text)) => Error::Reported(text).code(),
        Some(error) => {
            eprintln!("{}", complaint(&error, &screen));
            error.code()
        }
    }
}

/// An error as it is shown. Indented lines keep their layout: the input with a caret, or a hint.
fn complaint(error: &Error, screen: &Screen) -> String {
    let text = format!("error: {error}");
    let fit =
        |line: &str| if line.starts_with(' ') { line.to_owned() } else { terminal::screen::wrap(line, screen.width) };
    text.split('\n').map(fit).collect::<Vec<_>>().join("\n")
}

/// The runtime of commands that talk to a store or a server.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Error::Failed(error.into()))
}

/// Runs an async command.
fn wait(command: impl Future<Output = Result<String, Error>>) -> Result<String, Error> {
    runtime()?.block_on(command)
}

/// Writes to standard output at once. Returns whether the reader is still there: a closed pipe (`| head`) is not a
/// failure.
fn emit(text: &str) -> Result<bool, Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Error::Failed(anyhow::anyhow!("cannot write: {error}"))),
    }
}

/// JSON with indentation.
fn pretty(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}
