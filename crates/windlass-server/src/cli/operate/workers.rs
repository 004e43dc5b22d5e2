//! `windlass workers`: who runs jobs, on how many slots, since when.

use crate::cli::remote::target::Target;
use crate::cli::terminal::grid::{Grid, cut, number, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::{Now, plain};
use crate::cli::{Error, pretty};
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  windlass workers
  windlass workers --json

Workers that reported within the last minute: in-process, remote, and the nodes that call URLs. The
slots of a queue are how many of its jobs a worker runs at once. Exit codes: 0 done, 2 bad input,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let found = args.target.api().await?.get("/api/v1/workers").await?;
    if args.target.json {
        return Ok(pretty(&found));
    }
    let now = Now::read();
    let mut grid = Grid::new([
        cut("worker"),
        text("host").optional(),
        text("version").optional(),
        number("running"),
        text("started"),
        text("seen"),
        wrapped("queues and slots"),
    ]);
    for worker in found["items"].as_array().into_iter().flatten() {
        grid.row([
            plain(&worker["worker"]).into(),
            plain(&worker["host"]).into(),
            plain(&worker["version"]).into(),
            plain(&worker["running"]).into(),
            now.distance(&worker["startedAt"]).into(),
            now.distance(&worker["seenAt"]).into(),
            queues(&worker["queues"]).into(),
        ]);
    }
    Ok(grid.or("no worker has reported within the last minute", screen))
}

/// `email 20, reports 5`
fn queues(queues: &Value) -> String {
    let each = queues.as_object().into_iter().flatten().map(|(name, slots)| format!("{name} {}", plain(slots)));
    let shown = each.collect::<Vec<_>>().join(", ");
    if shown.is_empty() { "any".into() } else { shown }
}
