//! `windlass hold` and `windlass holds`: stop a queue or a limit key for a while, list what is stopped, release it.

use super::remote::api::with_query;
use super::remote::target::Target;
use super::terminal::grid::{Grid, cut, number, text};
use super::terminal::input;
use super::terminal::screen::Screen;
use super::terminal::words::{counted, grouped, plain};
use super::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use serde_json::{Map, Value, json};

const HOLD_EXAMPLES: &str = "\
Examples:
  windlass hold billing --for 10m --reason maintenance
  windlass hold billing --key stripe --until 2026-01-01T12:00:00Z
  windlass hold --key customer-7 --for 1h       this key of every queue that exists
  windlass holds                                what is held, and open circuit breakers
  windlass holds release billing --key stripe

While held, nothing of the queue or key starts; what runs goes on, and no job is charged an attempt.
Afterwards starts are slow at first. Exit codes: 0 done, 2 bad input, 3 not held, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub(crate) struct HoldArgs {
    #[command(flatten)]
    place: Place,
    /// For how long.
    #[arg(long = "for", value_name = "SPAN", value_parser = input::span, required_unless_present = "until")]
    span: Option<String>,
    /// Until when.
    #[arg(long, value_name = "MOMENT", conflicts_with = "span")]
    until: Option<String>,
    /// Why, for other operators.
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The queue; may be left out with --key.
    #[arg(required_unless_present = "key")]
    queue: Option<String>,
    /// Only this limit key: of the queue, or without one of every queue that exists.
    #[arg(long)]
    key: Option<String>,
    /// The queue's tenant, * for all [default: the token's, or default].
    #[arg(long)]
    tenant: Option<String>,
}

impl Place {
    fn in_words(&self) -> String {
        match (&self.key, &self.queue) {
            (Some(key), Some(queue)) => format!("key {key} of queue {queue}"),
            (Some(key), None) => format!("key {key} of every queue"),
            (None, queue) => format!("queue {}", queue.as_deref().unwrap_or_default()),
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = HOLD_EXAMPLES)]
pub(crate) struct HoldsArgs {
    #[command(subcommand)]
    action: Option<HoldsAction>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum HoldsAction {
    /// List what is held, and open circuit breakers.
    List,
    /// End a hold.
    Release {
        #[command(flatten)]
        place: Place,
    },
}

pub(crate) async fn hold(args: &HoldArgs) -> Result<String, Error> {
    let mut body = Map::new();
    for (name, value) in [
        ("queue", &args.place.queue),
        ("key", &args.place.key),
        ("tenantId", &args.place.tenant),
        ("for", &args.span),
        ("until", &args.until),
        ("reason", &args.reason),
    ] {
        body.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
    }
    let api = args.target.api().await?;
    let answer = api.send(Method::PUT, "/api/v1/holds", Some(Value::Object(body).to_string())).await?;
    if args.target.json {
        return Ok(pretty(&answer));
    }
    let (place, until) = (args.place.in_words(), plain(&answer["until"]));
    if answer["held"] == 0 {
        return Err(Error::NotFound(format!("{place}: there is no queue yet, so nothing is held")));
    }
    Ok(format!("{place} is held until {until}\n"))
}

pub(crate) async fn holds(args: &HoldsArgs, screen: &Screen) -> Result<String, Error> {
    let api = args.target.api().await?;
    match &args.action {
        None | Some(HoldsAction::List) => {
            let found = api.get("/api/v1/holds").await?;
            Ok(if args.target.json { pretty(&found) } else { listed(&found, screen) })
        }
        Some(HoldsAction::Release { place }) => {
            let query = [("queue", place.queue.clone()), ("key", place.key.clone()), ("tenant", place.tenant.clone())];
            let answer = api.ask(Method::DELETE, &with_query("/api/v1/holds", &query)).await?;
            if args.target.json {
                return Ok(pretty(&answer));
            }
            let released = answer["held"].as_u64().unwrap_or(0);
            if released == 0 {
                return Err(Error::NotFound(format!("{} is not held", place.in_words())));
            }
            Ok(format!("{} is released ({})\n", place.in_words(), counted(released, "hold")))
        }
    }
}

fn listed(found: &Value, screen: &Screen) -> String {
    let mut grid = Grid::new([
        text("queue"),
        text("tenant").optional(),
        text("key"),
        text("until"),
        text("breaker"),
        number("parked"),
        text("by").optional(),
        cut("reason").optional(),
    ]);
    for hold in found["items"].as_array().into_iter().flatten() {
        let tenant = plain(&hold["tenantId"]);
        let until = if hold["until"].is_null() { &hold["breakerUntil"] } else { &hold["until"] };
        let by = if hold["by"].is_null() { plain(&hold["origin"]) } else { plain(&hold["by"]) };
        grid.row([
            plain(&hold["queue"]).into(),
            if tenant == "default" { String::new() } else { tenant }.into(),
            plain(&hold["key"]).into(),
            plain(until).into(),
            plain(&hold["breaker"]).into(),
            grouped(hold["parked"].as_u64().unwrap_or(0)).into(),
            by.into(),
            plain(&hold["reason"]).into(),
        ]);
    }
    grid.or("nothing is held, and no circuit breaker is open", screen)
}
