//! `windlass queues`: how full they are; pause, resume, purge, and settings.

mod limits;

use super::remote::api::{Api, with_query};
use super::remote::target::Target;
use super::terminal::ask::Consent;
use super::terminal::grid::{Grid, Shown, cut, number, text};
use super::terminal::input;
use super::terminal::progress::{self, Unit};
use super::terminal::screen::{Hue, Screen};
use super::terminal::words::{counted, grouped, plain, span};
use super::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use limits::FlowFlags;
use serde_json::{Map, Value, json};
use windlass::client::Retention;

const EXAMPLES: &str = "\
Examples:
  windlass queues
  windlass queues pause email                    start none of its jobs until it is resumed
  windlass queues resume email
  windlass queues purge email                    cancel all waiting jobs; asks first
  windlass queues set email --policy queue-worker --keep-failed forever
  windlass queues set email --concurrency 10 --key-rate 5/s --breaker on
  windlass queues set email --rate none          remove a limit
  windlass queues limits

Exit codes: 0 done, 2 bad input, 3 no such queue, 5 unavailable.";

/// Jobs purged in one request.
const STRETCH: u32 = 5000;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<QueueAction>,
    /// Only this tenant's queues; with pause, resume, purge and set: the queue's tenant, * for all tenants.
    #[arg(long, global = true)]
    tenant: Option<String>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum QueueAction {
    /// List queues.
    List,
    /// Start none of a queue's jobs until it is resumed.
    Pause { name: String },
    /// Start a paused queue's jobs again.
    Resume { name: String },
    /// Cancel all waiting jobs of a queue; running jobs continue.
    Purge {
        name: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Set a queue's policy, retention and limits; omitted settings stay. Jobs already stored keep theirs.
    Set {
        name: String,
        /// A policy's name or line.
        #[arg(long)]
        policy: Option<String>,
        /// How long succeeded jobs are kept: a span, 0 to drop them on finish, or forever.
        #[arg(long, value_name = "SPAN", value_parser = input::retention)]
        keep_succeeded: Option<String>,
        #[arg(long, value_name = "SPAN", value_parser = input::retention)]
        keep_cancelled: Option<String>,
        #[arg(long, value_name = "SPAN", value_parser = input::retention)]
        keep_failed: Option<String>,
        #[command(flatten)]
        flow: Box<FlowFlags>,
        /// Back to the defaults.
        #[arg(long, conflicts_with_all = ["policy", "keep_succeeded", "keep_cancelled", "keep_failed", "FlowFlags"])]
        reset: bool,
    },
    /// Show the limits, breaker and retry budget of queues.
    Limits { name: Option<String> },
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let json = args.target.json;
    let api = args.target.api().await?;
    let tenant = args.tenant.as_deref();
    let place = |name: &str, action: &str| place(name, action, tenant, &[]);
    match &args.action {
        None | Some(QueueAction::List) => list(&api, args, screen).await,
        Some(QueueAction::Pause { name }) => {
            let answer = api.ask(Method::POST, &place(name, "/pause")).await?;
            Ok(if json { pretty(&answer) } else { format!("queue {name} is paused\n") })
        }
        Some(QueueAction::Resume { name }) => {
            let answer = api.ask(Method::POST, &place(name, "/resume")).await?;
            Ok(if json { pretty(&answer) } else { format!("queue {name} is resumed\n") })
        }
        Some(QueueAction::Purge { name, consent }) => {
            let waiting = waiting(&api, args, name).await?;
            consent.get(&format!("Cancel {} of queue {name}?", counted(waiting, "waiting job")))?;
            let done = purge(&api, tenant, name, waiting).await?;
            let answer = json!({ "name": name, "cancelled": done });
            Ok(if json { pretty(&answer) } else { format!("{} cancelled\n", counted(done, "job")) })
        }
        Some(QueueAction::Limits { name }) => limits::show(&api, args, name.as_deref(), screen).await,
        Some(QueueAction::Set { name, policy, keep_succeeded, keep_cancelled, keep_failed, flow, reset }) => {
            let keeps = [("succeeded", keep_succeeded), ("cancelled", keep_cancelled), ("failed", keep_failed)];
            let given = Given { policy: policy.as_deref(), keeps, flow };
            let settings = if *reset { json!({}) } else { settings(&api, args, name, &given).await? };
            let answer = api.send(Method::PUT, &place(name, ""), Some(settings.to_string())).await?;
            Ok(if json { pretty(&answer) } else { format!("queue {name}: {}\n", answer["settings"]) })
        }
    }
}

async fn all(api: &Api, tenant: Option<&str>) -> Result<Value, Error> {
    let tenant = tenant.filter(|tenant| *tenant != "*").map(str::to_owned);
    api.get_with("/api/v1/queues", &[("tenant", tenant)]).await
}

async fn list(api: &Api, args: &Args, screen: &Screen) -> Result<String, Error> {
    let found = all(api, args.tenant.as_deref()).await?;
    if args.target.json {
        return Ok(pretty(&found));
    }
    let mut grid = Grid::new([
        text("queue"),
        text("tenant").optional(),
        text("state"),
        number("due"),
        number("later"),
        number("running"),
        number("dead"),
        number("oldest"),
        number("done/s").optional(),
        number("failed/s").optional(),
        cut("policy").optional(),
    ]);
    for queue in found["items"].as_array().into_iter().flatten() {
        let tenant = plain(&queue["tenantId"]);
        let count = |name: &str| grouped(queue[name].as_u64().unwrap_or(0));
        let rate = |name: &str| format!("{:.1}", queue["rates"][name].as_f64().unwrap_or(0.0));
        let dead = queue["dead"].as_u64().unwrap_or(0);
        let state = if queue["paused"] == true { Shown::hued("paused", Hue::Warn) } else { "open".into() };
        grid.row([
            plain(&queue["name"]).into(),
            if tenant == "default" { String::new() } else { tenant }.into(),
            state,
            count("due").into(),
            count("later").into(),
            count("running").into(),
            if dead > 0 { Shown::hued(grouped(dead), Hue::Bad) } else { "0".into() },
            span(&queue["oldestDueMs"]).into(),
            rate("succeeded").into(),
            rate("failed").into(),
            plain(&queue["policy"]).into(),
        ]);
    }
    Ok(grid.or("no queues yet: the first job of a queue creates it", screen))
}

async fn waiting(api: &Api, args: &Args, name: &str) -> Result<u64, Error> {
    let found = all(api, args.tenant.as_deref()).await?;
    let whose = args.tenant.as_deref().unwrap_or("default");
    let is_meant = |queue: &&Value| queue["name"] == name && (whose == "*" || queue["tenantId"] == whose);
    let counts = found["items"].as_array().into_iter().flatten().filter(is_meant);
    Ok(counts.map(|queue| queue["due"].as_u64().unwrap_or(0) + queue["later"].as_u64().unwrap_or(0)).sum())
}

/// Purges in portions, so that progress can be shown and no request takes too long.
async fn purge(api: &Api, tenant: Option<&str>, name: &str, total: u64) -> Result<u64, Error> {
    let bar = progress::bar(total, "cancelling", Unit::Jobs);
    let (mut done, mut cursor) = (0, None);
    loop {
        let query = [("limit", Some(STRETCH.to_string())), ("cursor", cursor)];
        let answer = api.ask(Method::POST, &place(name, "/purge", tenant, &query)).await?;
        done += answer["cancelled"].as_u64().unwrap_or(0);
        bar.set_position(done);
        cursor = answer["next"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(done)
}

fn place(name: &str, action: &str, tenant: Option<&str>, more: &[(&str, Option<String>)]) -> String {
    let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    let tenant = [("tenant", tenant.map(str::to_owned))];
    with_query(&format!("/api/v1/queues/{name}{action}"), &[&tenant, more].concat())
}

/// How long finished jobs are kept by default.
fn defaults() -> Map<String, Value> {
    let Retention { succeeded, cancelled, failed } = Retention::default();
    let kept = [("succeeded", succeeded), ("cancelled", cancelled), ("failed", failed)];
    kept.map(|(name, keep)| (name.to_owned(), json!(keep.to_string()))).into_iter().collect()
}

/// What `queues set` changes.
struct Given<'a> {
    policy: Option<&'a str>,
    keeps: [(&'a str, &'a Option<String>); 3],
    flow: &'a FlowFlags,
}

/// The settings to write: the current ones, overridden by the given ones.
async fn settings(api: &Api, args: &Args, name: &str, given: &Given<'_>) -> Result<Value, Error> {
    let Given { policy, keeps, flow } = given;
    if policy.is_none() && keeps.iter().all(|(_, keep)| keep.is_none()) && flow.is_empty() {
        return Err(Error::BadInput(
            "give a setting such as --policy, --keep-failed, --concurrency or --breaker, or --reset".into(),
        ));
    }
    let found = all(api, args.tenant.as_deref()).await?;
    let whose = args.tenant.as_deref().unwrap_or("default");
    let is_meant = |queue: &&Value| queue["name"] == name && (whose == "*" || queue["tenantId"] == whose);
    let old = found["items"].as_array().into_iter().flatten().find(is_meant).cloned().unwrap_or_default();
    let mut settings = Map::new();
    let policy = policy.map_or_else(|| old["policy"].clone(), |line| json!(line));
    if !policy.is_null() {
        settings.insert("policy".into(), policy);
    }
    let mut retention = old["retention"].as_object().cloned().unwrap_or_default();
    for (name, keep) in keeps {
        retention.extend(keep.iter().map(|keep| ((*name).to_owned(), json!(keep))));
    }
    let is_given = keeps.iter().any(|(_, keep)| keep.is_some());
    if is_given || retention != defaults() {
        settings.insert("retention".into(), Value::Object(retention));
    }
    flow.change(&old, &mut settings);
    Ok(Value::Object(settings))
}
