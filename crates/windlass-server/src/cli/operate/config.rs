//! `windlass config`: the effective configuration and where each value came from.

use crate::cli::Error;
use crate::cli::operate::node::NodeArgs;
use crate::cli::terminal::grid::{Grid, text, wrapped};
use crate::cli::terminal::screen::Screen;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass config                              every value, and where it came from
  windlass config --config prod.toml --json
  WINDLASS_LISTEN=127.0.0.1:8080 windlass config

A flag overrides a WINDLASS_… variable, which overrides windlass.toml, which overrides the default.
Secrets are not shown. Exit codes: 0 done, 2 bad input (the file, a variable or a flag is wrong).";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    node: NodeArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let shown = args.node.load()?.shown();
    if args.json {
        let entry =
            |line: &crate::config::Shown| (line.key.clone(), json!({ "value": line.value, "source": line.source }));
        let object: Value = Value::Object(shown.iter().map(entry).collect());
        return Ok(format!("{object:#}\n"));
    }
    let mut grid = Grid::new([text("key"), wrapped("value"), wrapped("from"), wrapped("what it is")]);
    for line in shown {
        let value = line.value.as_str().map_or_else(|| line.value.to_string(), str::to_owned);
        grid.row([line.key.into(), value.into(), line.source.into(), line.help.into()]);
    }
    Ok(grid.render(screen))
}
