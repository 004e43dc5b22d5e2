//! `windlass keys`: makes keys for values at rest, shows which are in use, and seals everything with the first one.

use crate::cli::remote::store::{self, Missing};
use crate::cli::remote::target::{Place, Target};
use crate::cli::{Error, pretty};
use clap::Subcommand;
use serde_json::json;
use std::io::IsTerminal as _;
use windlass::client::Progress;
use windlass::{KeyRing, Random};

const EXAMPLES: &str = "\
Examples:
  windlass keys generate 2026-11 >> ring.keys            a new key, as a line of a key ring
  WINDLASS_KEY_RING_FILE=ring.keys windlass keys list --store sqlite:windlass.db
  WINDLASS_KEY_RING_FILE=ring.keys windlass keys rotate --store sqlite:windlass.db

The first key of a ring seals, all of them open. To replace a key: give every node a ring with the new
key second, then one with the new key first, then run `keys rotate`, then remove the old key.
Exit codes: 0 done, 1 failed, 2 bad input, 3 no such store, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: KeyAction,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum KeyAction {
    /// Print a new random key as a line of a key ring. Nothing is stored.
    Generate {
        /// The key's name, such as a date.
        name: String,
    },
    /// Show the keys of the ring, and those in use in the store.
    List,
    /// Seal everything in the store with the first key of the ring, while nodes run.
    Rotate,
}

pub(crate) async fn run(args: &Args) -> Result<String, Error> {
    if let KeyAction::Generate { name } = &args.action {
        let line = KeyRing::generate(name, &Random::system());
        KeyRing::parse(&line).map_err(|error| Error::BadInput(error.message))?;
        return Ok(format!("{line}\n"));
    }
    let Place::Store(url) = args.target.place() else {
        return Err(Error::BadInput("keys work directly on a store: give --store sqlite:PATH or postgres://…".into()));
    };
    let opened = store::open(&url, Missing::Refuse).await?;
    let shown = store::without_password(&url);
    let wrong = |error| store::reported(&shown, &error);
    if let KeyAction::Rotate = args.action {
        let is_terminal = std::io::stderr().is_terminal();
        let done = opened.settings().rotate_keys(|progress| tell(progress, is_terminal)).await.map_err(wrong)?;
        if is_terminal {
            eprintln!();
        }
        return Ok(if args.target.json {
            pretty(&json!({ "rows": done.rows, "changed": done.changed }))
        } else {
            format!(
                "looked at {} rows, sealed {} of them anew; other keys are no longer needed\n",
                done.rows, done.changed
            )
        });
    }
    let status = opened.settings().sealing().await.map_err(wrong)?;
    if args.target.json {
        return Ok(pretty(&json!({ "ring": status.ring, "inUse": status.in_use })));
    }
    let listed = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let missing: Vec<String> = status.in_use.iter().filter(|name| !status.ring.contains(name)).cloned().collect();
    let missing =
        if missing.is_empty() { String::new() } else { format!("missing from the ring: {}\n", missing.join(", ")) };
    Ok(format!("ring (the first seals): {}\nin use: {}\n{missing}", listed(&status.ring), listed(&status.in_use)))
}

fn tell(progress: Progress, is_terminal: bool) {
    if is_terminal {
        eprint!("\rlooked at {} rows, sealed {}", progress.rows, progress.changed);
    }
}
