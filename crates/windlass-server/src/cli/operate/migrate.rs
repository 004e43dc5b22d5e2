//! `windlass migrate`: brings a store's schema up to date, or reports whether it is.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use clap::Subcommand;
use serde_json::json;
use windlass::Migrations;

const EXAMPLES: &str = "\
Examples:
  windlass migrate --store sqlite:windlass.db            bring the schema up to date
  windlass migrate status --store postgres://localhost/jobs

Migrations only go forward, run under a lock and may be repeated; a missing SQLite file is created.
`serve` and `work` do the same when they start. Other commands never change a schema.
Exit codes: 0 up to date, 1 not up to date or failed, 2 bad input, 3 no such store,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<MigrateAction>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum MigrateAction {
    /// Bring the schema up to date (the default).
    Up,
    /// Report whether it is, and change nothing.
    Status,
}

pub(crate) async fn run(args: &Args) -> Result<String, Error> {
    let Place::Store(url) = args.target.place() else {
        return Err(Error::BadInput(
            "migrate works directly on a store: give --store sqlite:PATH or postgres://…".into(),
        ));
    };
    let opened = match args.action {
        None | Some(MigrateAction::Up) => store::open_with(&url, Migrations::Run).await?,
        Some(MigrateAction::Status) => store::open(&url, Missing::Refuse).await?,
    };
    let shown = store::without_password(&url);
    let health = opened.health().await.map_err(|error| store::reported(&shown, &error))?;
    Ok(if args.target.json {
        pretty(&json!({ "store": shown, "engine": health.engine, "schema": health.schema, "current": true }))
    } else {
        format!("{shown} ({}): schema {} is up to date\n", health.engine, health.schema)
    })
}
