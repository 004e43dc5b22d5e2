//! `windlass serve` and `windlass work`: run a node.

use crate::cli::Error;
use crate::cli::operate::node::NodeArgs;
use crate::serve::{self, Api};

const EXAMPLES: &str = "\
Examples:
  windlass serve
  windlass serve --store postgres://windlass@db/jobs --listen 0.0.0.0:9463
  windlass serve --allow-private-targets       (HTTP jobs may call this machine)

On SIGTERM or Ctrl-C it starts no new jobs, and running jobs may finish within --grace. A second
signal stops at once. `windlass work` takes the same flags and runs without the API.
Exit codes: 0 stopped, 1 failed, 2 bad input, 130 stopped at once.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,
}

pub(crate) fn run(args: &Args, api: Api) -> Result<String, Error> {
    let config = args.node.load()?;
    crate::cli::runtime()?.block_on(serve::run(&config, api))?;
    Ok(String::new())
}
