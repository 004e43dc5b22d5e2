//! `windlass backup`: copies a SQLite store while it is in use.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use crate::cli::terminal::progress::{self, Unit};
use crate::cli::terminal::words::rough;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use windlass::Clock;

const EXAMPLES: &str = "\
Examples:
  windlass backup jobs-backup.db --store sqlite:windlass.db
  windlass serve --store sqlite:jobs-backup.db       a backup is an ordinary store

The copy is the store as it was at one moment; servers and workers may keep using the store
meanwhile. It is checked for damage before it is called done. For Postgres use pg_dump or your provider's backups. Exit codes: 0 done, 1 failed,
2 bad input (also: the file at PATH already exists), 3 no such store, 5 unavailable.";

/// How often the copy's size is read.
const POLL_EVERY: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The file to create.
    path: String,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args) -> Result<String, Error> {
    let Place::Store(url) = args.target.place() else {
        let hint = "a running server may keep using the file meanwhile";
        return Err(Error::BadInput(format!("backup copies a SQLite file: give --store sqlite:PATH\n  hint: {hint}")));
    };
    let Some(source) = store::sqlite_path(&url) else {
        return Err(Error::BadInput("backup is for SQLite stores; for Postgres use pg_dump".into()));
    };
    if Path::new(&args.path).exists() {
        return Err(Error::BadInput(format!("the file {} already exists; name another", args.path)));
    }
    let opened = store::open(&url, Missing::Refuse).await?;
    let (clock, total) = (Clock::system(), size(source) + size(&format!("{source}-wal")));
    let bar = progress::bar(total, "copying", Unit::Bytes);
    let watch = async {
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            bar.set_position(size(&args.path).min(total));
        }
    };
    let copied = tokio::select! {
        copied = opened.transfer().backup(&args.path) => copied,
        () = watch => unreachable!("watching never ends"),
    };
    bar.finish_and_clear();
    if let Err(error) = copied {
        // A partial copy must not be mistaken for a complete one. The file may not exist at all.
        let _ = std::fs::remove_file(&args.path);
        return Err(store::reported(&args.path, &error));
    }
    let (bytes, took) = (size(&args.path), clock.monotonic());
    Ok(if args.target.json {
        pretty(&json!({ "path": args.path, "bytes": bytes, "tookMs": took.get() }))
    } else {
        format!("{} holds a copy of {url}: {} in {}\n", args.path, indicatif::HumanBytes(bytes), rough(took))
    })
}

fn size(path: &str) -> u64 {
    std::fs::metadata(path).map_or(0, |meta| meta.len())
}
