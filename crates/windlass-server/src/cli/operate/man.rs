//! `windlass man`: writes manual pages, made from the definition of the command line.

use crate::cli::Error;
use clap::CommandFactory as _;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to write to.
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<String, Error> {
    let failed = |error: std::io::Error| {
        Error::Failed(anyhow::anyhow!("{} cannot be written to: {error}", args.directory.display()))
    };
    std::fs::create_dir_all(&args.directory).map_err(failed)?;
    clap_mangen::generate_to(crate::cli::Cli::command(), &args.directory).map_err(failed)?;
    Ok(String::new())
}
