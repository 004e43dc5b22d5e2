//! `windlass dead`: the dead letters: failed jobs that await manual action.

mod bulk;

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::api::Api;
use crate::cli::remote::target::Target;
use crate::cli::terminal::ask::Consent;
use crate::cli::terminal::grid::{Grid, cut, number, text, wrapped};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::{Now, grouped, plain};
use crate::cli::work::deliveries;
use crate::cli::work::history;
use crate::cli::work::jobs::{self, Filter};
use bulk::{Bulk, Choice};
use clap::Subcommand;
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass dead                                  the latest dead letters
  windlass dead groups                           similar failures, the largest group first
  windlass dead show 42                          one, with its execution log
  windlass dead replay 42 43                     send these again
  windlass dead replay --queue email --class Timeout --rate 50
  windlass dead replay --fingerprint 1f9c… --yes
  windlass dead discard 42 --reason 'customer left'
  windlass dead discard --all --reason 'test data' --yes
  windlass dead audit                            who replayed and discarded what

Replay and discard take ids, or filters, or --all. Replay by filter and every discard ask first;
--yes answers. Repeating a replay sends nothing twice; with --rate it continues where it was
interrupted. Exit codes: 0 done, 1 some ids are not dead letters, 2 bad input, 3 not found,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<DeadLetterAction>,
    #[command(flatten)]
    list: List,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum DeadLetterAction {
    /// List dead letters, newest first.
    List(List),
    /// Group dead letters with similar failures.
    Groups {
        #[command(flatten)]
        filter: Filter,
        /// How many groups to show.
        #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
    /// Show a dead letter with its execution log.
    Show {
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        id: u64,
    },
    /// Send dead letters again: same id, with all retries available again.
    Replay {
        #[command(flatten)]
        choice: Choice,
        /// Spread them: jobs per second, 1 to 1000 [default: all at once].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
        rate: Option<u64>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Declare dead letters dealt with; they stay in the archive.
    Discard {
        #[command(flatten)]
        choice: Choice,
        /// The reason; stored with each of them.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Show the actions of operators, newest first: replays, discards, paused and purged queues.
    Audit {
        /// How many lines to show.
        #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// Only this group (see `windlass dead groups`).
    #[arg(long)]
    fingerprint: Option<String>,
    /// How many to show.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let json = args.target.json;
    let api = args.target.api().await?;
    match &args.action {
        None => list(&api, &args.list, json, screen).await,
        Some(DeadLetterAction::List(narrowed)) => list(&api, narrowed, json, screen).await,
        Some(DeadLetterAction::Groups { filter, limit }) => groups(&api, filter, *limit, json, screen).await,
        Some(DeadLetterAction::Show { id }) => {
            let letter = api.get(&format!("/api/v1/dead-letters/{id}")).await?;
            if json {
                return Ok(pretty(&letter));
            }
            Ok(show(&letter, screen))
        }
        Some(DeadLetterAction::Audit { limit }) => audit(&api, *limit, json, screen).await,
        Some(DeadLetterAction::Replay { choice, rate, consent }) => {
            let extra = rate.map(|rate| ("rate", json!(rate)));
            Bulk { action: "replay", done: "sent again", choice, extra }.run(&api, *consent, json).await
        }
        Some(DeadLetterAction::Discard { choice, reason, consent }) => {
            let extra = reason.as_ref().map(|reason| ("reason", json!(reason)));
            Bulk { action: "discard", done: "discarded", choice, extra }.run(&api, *consent, json).await
        }
    }
}

/// A dead letter, its log, its deliveries, and what can be done about it.
fn show(letter: &Value, screen: &Screen) -> String {
    let (id, payload) = (plain(&letter["id"]), &letter["payload"]);
    let (title, log) = (history::summary(letter, screen), history::log(&letter["history"], screen));
    let related = deliveries::of(letter, screen);
    let hint = match letter["discardedAt"].as_str() {
        None => format!("windlass dead replay {id} sends it again"),
        Some(at) => {
            let reason = plain(&letter["discardReason"]);
            let why = if reason.is_empty() { reason } else { format!(" ({reason})") };
            format!("discarded at {at}{why}; windlass jobs replay {id} can still send it again")
        }
    };
    format!("{title}payload {payload}\n\n{log}{related}\n{hint}\n")
}

async fn list(api: &Api, list: &List, json: bool, screen: &Screen) -> Result<String, Error> {
    let mut query = list.filter.pairs();
    query.push(("fingerprint", list.fingerprint.clone()));
    let (letters, next) = api.list("/api/v1/dead-letters", &query, list.limit as usize).await?;
    if json {
        return Ok(pretty(&json!({ "items": letters, "next": next })));
    }
    let more = if next.is_null() {
        String::new()
    } else {
        "\nthere are more; `windlass dead groups` shows them by cause\n".into()
    };
    Ok(jobs::table(&letters).or("no dead letters", screen) + &more)
}

async fn groups(api: &Api, filter: &Filter, limit: u32, json: bool, screen: &Screen) -> Result<String, Error> {
    let found = grouped_by_cause(api, filter, None, limit).await?;
    if json {
        return Ok(pretty(&found));
    }
    let now = Now::read();
    let mut grid = Grid::new([
        number("count"),
        cut("kind"),
        cut("class"),
        text("queue").optional(),
        text("last"),
        number("example"),
        text("fingerprint").optional(),
        cut("message"),
    ]);
    for group in found["items"].as_array().into_iter().flatten() {
        grid.row([
            grouped(group["count"].as_u64().unwrap_or(0)).into(),
            plain(&group["kind"]).into(),
            plain(&group["errorClass"]).into(),
            plain(&group["queue"]).into(),
            now.distance(&group["lastSeen"]).into(),
            plain(&group["exampleId"]).into(),
            plain(&group["fingerprint"]).into(),
            plain(&group["message"]).into(),
        ]);
    }
    Ok(grid.or("no dead letters", screen))
}

async fn audit(api: &Api, limit: u32, json: bool, screen: &Screen) -> Result<String, Error> {
    let found = api.get(&format!("/api/v1/audit?limit={limit}")).await?;
    if json {
        return Ok(pretty(&found));
    }
    let mut grid = Grid::new([text("when"), text("who"), text("did"), number("count"), wrapped("what")]);
    for line in found["items"].as_array().into_iter().flatten() {
        grid.row([
            history::clock(&line["at"]).into(),
            plain(&line["by"]).into(),
            plain(&line["action"]).into(),
            grouped(line["count"].as_u64().unwrap_or(0)).into(),
            plain(&line["detail"]).into(),
        ]);
    }
    Ok(grid.or("no actions yet", screen))
}

async fn grouped_by_cause(api: &Api, filter: &Filter, fingerprint: Option<String>, limit: u32) -> Result<Value, Error> {
    let mut query = filter.pairs();
    query.extend([
        ("group", Some("true".to_owned())),
        ("limit", Some(limit.to_string())),
        ("fingerprint", fingerprint),
    ]);
    api.get_with("/api/v1/dead-letters", &query).await
}
