//! `windlass serve` and `windlass work`: run a node.

use crate::cli::Error;
use crate::cli::operate::check;
use crate::cli::operate::node::NodeArgs;
use crate::cli::terminal::input;
use crate::config::WriteError;
use crate::serve::{self, Api, Wait};
use windlass::client::SettingsFault;
use windlass_core::Millis;

const EXAMPLES: &str = "\
Examples:
  windlass serve
  windlass serve --store postgres://windlass@db/jobs --listen 0.0.0.0:9463
  windlass serve --allow-private-targets       (HTTP jobs may call this machine)
  windlass serve --check --within 10s          (asks the running node; starts nothing)

On SIGTERM or Ctrl-C it starts no new jobs, and running jobs may finish within --grace. A second
signal stops at once. A node waits for a Postgres that cannot be reached when it starts: /healthz
answers, /readyz says 503; a wrong password or an unknown database ends it.
`windlass work` takes the same flags and runs without the API.
Exit codes: 0 stopped (--check: ready), 1 failed, 2 bad input, 5 (--check) not ready, 130 stopped at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Start nothing: ask the node that runs with these settings whether it is ready.
    #[arg(long)]
    check: bool,
    /// With --check: how long to keep asking [default: ask once].
    #[arg(long, value_name = "DURATION", requires = "check", value_parser = input::span)]
    within: Option<String>,
    /// Exit if the database cannot be reached, instead of waiting for it.
    #[arg(long)]
    no_wait: bool,
}

pub(crate) fn run(args: &Args, api: Api) -> Result<String, Error> {
    let config = args.node.load()?;
    if args.check {
        let within = args.within.as_deref().and_then(|text| Millis::parse(text).ok()).unwrap_or_default();
        return match api {
            Api::On => crate::cli::runtime()?.block_on(check::run(&config, within)),
            Api::Off => {
                Err(Error::BadInput("`windlass work` has no API to ask: check a node of `windlass serve`".into()))
            }
        };
    }
    let wait = if args.no_wait { Wait::No } else { Wait::Yes };
    crate::cli::runtime()?.block_on(serve::run(&config, api, wait)).map_err(failure)?;
    Ok(String::new())
}

/// Settings under which jobs could not be stored are the caller's mistake, like a file that cannot be read.
fn failure(error: anyhow::Error) -> Error {
    match error.downcast_ref::<WriteError>() {
        Some(WriteError::Config(_) | WriteError::Settings(SettingsFault::Unusable(_))) => {
            Error::BadInput(format!("{error:#}"))
        }
        _ => Error::Failed(error),
    }
}
