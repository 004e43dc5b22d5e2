//! `windlass dead`: the dead letters: failed jobs that wait for a person.

use super::api::Api;
use super::ask::Consent;
use super::grid::{Grid, cut, number, text};
use super::jobs::{self, Filter};
use super::progress::{self, Unit};
use super::screen::Screen;
use super::target::Target;
use super::words::{Now, counted, grouped, plain};
use super::{Error, history, pretty};
use clap::Subcommand;
use serde_json::{Map, Value, json};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  windlass dead                                  the latest dead letters
  windlass dead groups                           what failed alike, the largest group first
  windlass dead show 42                          one, with its execution log
  windlass dead replay 42 43                     send these again
  windlass dead replay --queue email --class Timeout --rate 50
  windlass dead replay --fingerprint 1f9c… --yes
  windlass dead discard 42 --reason 'customer left'
  windlass dead discard --all --reason 'test data' --yes

Replay and discard take ids, or filters, or --all. What goes by filter, and every discard, asks
first; --yes answers. Exit codes: 0 done, 1 some ids could not be done, 2 bad input, 3 not found,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List dead letters, newest first.
    List(List),
    /// Group dead letters that failed alike.
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
    /// Send dead letters again: same id, fresh allowance of retries.
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
        /// Why; kept with each of them.
        #[arg(long)]
        reason: Option<String>,
        #[command(flatten)]
        consent: Consent,
    },
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// Only of this group (see `windlass dead groups`).
    #[arg(long)]
    fingerprint: Option<String>,
    /// How many to show.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// Which dead letters a verb is about.
#[derive(Debug, clap::Args)]
struct Choice {
    /// Ids of dead letters.
    #[arg(value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    ids: Vec<u64>,
    #[command(flatten)]
    filter: Filter,
    /// Only of this group (see `windlass dead groups`).
    #[arg(long)]
    fingerprint: Option<String>,
    /// All dead letters.
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let json = args.target.json;
    let api = args.target.api().await?;
    match &args.verb {
        None => list(&api, &args.list, json, screen).await,
        Some(Verb::List(narrowed)) => list(&api, narrowed, json, screen).await,
        Some(Verb::Groups { filter, limit }) => groups(&api, filter, *limit, json, screen).await,
        Some(Verb::Show { id }) => {
            let letter = api.get(&format!("/api/v1/dead-letters/{id}")).await?;
            if json {
                return Ok(pretty(&letter));
            }
            let payload = format!("payload {}\n", letter["payload"]);
            let log = history::log(&letter["history"], screen);
            Ok(format!(
                "{}{payload}\n{log}\nwindlass dead replay {id} sends it again\n",
                history::summary(&letter, screen)
            ))
        }
        Some(Verb::Replay { choice, rate, consent }) => {
            let extra = rate.map(|rate| ("rate", json!(rate)));
            bulk(&api, Bulk { verb: "replay", done: "sent again", choice, extra, rate: *rate }, *consent, json).await
        }
        Some(Verb::Discard { choice, reason, consent }) => {
            let extra = reason.as_ref().map(|reason| ("reason", json!(reason)));
            bulk(&api, Bulk { verb: "discard", done: "discarded", choice, extra, rate: None }, *consent, json).await
        }
    }
}

async fn list(api: &Api, list: &List, json: bool, screen: &Screen) -> Result<String, Error> {
    let mut query = list.filter.pairs();
    query.push(("fingerprint", list.fingerprint.clone()));
    let (letters, next) = api.list("/api/v1/dead-letters", &query, list.limit as usize).await?;
    if json {
        return Ok(pretty(&json!({ "items": letters, "next": next })));
    }
    let more =
        if next.is_null() { String::new() } else { "\nmore wait; `windlass dead groups` shows them by cause\n".into() };
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
        text("kind"),
        text("class"),
        text("queue").optional(),
        text("last").optional(),
        number("example").optional(),
        text("fingerprint"),
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

async fn grouped_by_cause(api: &Api, filter: &Filter, fingerprint: Option<String>, limit: u32) -> Result<Value, Error> {
    let mut query = filter.pairs();
    query.extend([
        ("group", Some("true".to_owned())),
        ("limit", Some(limit.to_string())),
        ("fingerprint", fingerprint),
    ]);
    api.get_with("/api/v1/dead-letters", &query).await
}

/// A verb on many dead letters.
struct Bulk<'a> {
    verb: &'static str,
    done: &'static str,
    choice: &'a Choice,
    extra: Option<(&'static str, Value)>,
    rate: Option<u64>,
}

async fn bulk(api: &Api, bulk: Bulk<'_>, consent: Consent, json: bool) -> Result<String, Error> {
    let choice = bulk.choice;
    let is_filtered = choice.filter != Filter::default() || choice.fingerprint.is_some();
    match (choice.ids.is_empty(), is_filtered || choice.all) {
        (true, false) => {
            Err(Error::BadInput("which dead letters? give ids, a filter such as --queue or --class, or --all".into()))
        }
        (false, true) => Err(Error::BadInput("give ids, or filters and --all, not both".into())),
        (false, false) => by_ids(api, &bulk, consent, json).await,
        (true, true) => by_filter(api, &bulk, consent, json).await,
    }
}

async fn by_ids(api: &Api, bulk: &Bulk<'_>, consent: Consent, json: bool) -> Result<String, Error> {
    let ids = &bulk.choice.ids;
    if bulk.verb == "discard" {
        consent.get(&format!("Discard {}?", counted(ids.len() as u64, "dead letter")))?;
    }
    let answer = api.post(&path(bulk), &body(bulk, "ids", json!(ids))).await?;
    if json {
        return Ok(pretty(&answer));
    }
    let mut text = String::new();
    let results = answer["results"].as_array().cloned().unwrap_or_default();
    let is_done = |result: &Value| matches!(result["result"].as_str(), Some("queued" | "discarded"));
    for result in &results {
        let word = if is_done(result) { bulk.done.to_owned() } else { plain(&result["result"]).replace('_', " ") };
        text.push_str(&format!("job {}: {word}\n", result["id"]));
    }
    if results.iter().all(is_done) { Ok(text) } else { Err(Error::Told(text)) }
}

async fn by_filter(api: &Api, bulk: &Bulk<'_>, consent: Consent, json: bool) -> Result<String, Error> {
    let choice = bulk.choice;
    let found = grouped_by_cause(api, &choice.filter, choice.fingerprint.clone(), 1000).await?;
    let counts = found["items"].as_array().into_iter().flatten().filter_map(|group| group["count"].as_u64());
    let total: u64 = counts.sum();
    if total == 0 {
        return Ok(if json { pretty(&json!({ "done": 0, "more": false })) } else { "no dead letters match\n".into() });
    }
    let mut verb = bulk.verb.to_owned();
    verb[..1].make_ascii_uppercase();
    consent.get(&format!("{verb} {}?", counted(total, "dead letter")))?;
    let mut filter = Map::new();
    for (name, value) in choice.filter.pairs().into_iter().chain([("fingerprint", choice.fingerprint.clone())]) {
        filter.extend(value.map(|value| (name.to_owned(), json!(value))));
    }
    let body = body(bulk, "filter", Value::Object(filter));
    let bar = progress::bar(total, bulk.verb, Unit::Jobs);
    let mut done = 0;
    loop {
        let answer = api.post(&path(bulk), &body).await?;
        let now = answer["done"].as_u64().unwrap_or(0);
        done += now;
        bar.set_position(done);
        if answer["more"] != true || now == 0 {
            break;
        }
        if let Some(rate) = bulk.rate {
            // The next request spaces its jobs from its own moment on: wait for this one's to be due.
            tokio::time::sleep(Duration::from_millis(now * 1000 / rate)).await;
        }
    }
    bar.finish_and_clear();
    Ok(if json {
        pretty(&json!({ "done": done, "more": false }))
    } else {
        format!("{} {}\n", counted(done, "dead letter"), bulk.done)
    })
}

fn path(bulk: &Bulk<'_>) -> String {
    format!("/api/v1/dead-letters/{}", bulk.verb)
}

fn body(bulk: &Bulk<'_>, name: &str, which: Value) -> Value {
    let mut body = Map::from_iter([(name.to_owned(), which)]);
    body.extend(bulk.extra.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    Value::Object(body)
}
