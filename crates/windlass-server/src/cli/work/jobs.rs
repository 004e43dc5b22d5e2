//! `windlass jobs`: list, show, change, cancel and replay jobs.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::target::Target;
use crate::cli::terminal::grid::{Grid, cut, number, text};
use crate::cli::terminal::input;
use crate::cli::terminal::screen::{Screen, wrap};
use crate::cli::terminal::words::{Now, counted, plain, span, state};
use crate::cli::work::history;
use clap::Subcommand;
use hyper::Method;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass jobs                                 the latest jobs
  windlass jobs --state failed --queue email --since 1h
  windlass jobs show 42
  windlass jobs cancel 42 43
  windlass jobs replay 42                       same id, all retries available again
  windlass jobs change 42 --priority high --delay 10m
  windlass jobs --json --limit 5000 | jq '.items[].id'

States: queued, running, retrying, succeeded, failed, cancelled; several separated by commas.
Exit codes: 0 done, 1 failed, 2 bad input, 3 no such job, 4 not possible in its current state,
5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<JobAction>,
    #[command(flatten)]
    list: List,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum JobAction {
    /// List jobs, newest first.
    List(List),
    /// Show one job with all its fields and its execution log.
    Show {
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        id: u64,
    },
    /// Cancel jobs: waiting jobs end at once, running jobs are asked to stop.
    Cancel(Ids),
    /// Send jobs again: same id, all retries available again; waiting jobs become due now.
    Replay(Ids),
    /// Change the priority or time of a waiting job.
    Change {
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        id: u64,
        /// The new priority: lowest, low, normal, high or highest.
        #[arg(long)]
        priority: Option<String>,
        /// When to run it.
        #[arg(long, value_name = "MOMENT", conflicts_with = "delay")]
        run_at: Option<String>,
        /// How long to wait from now.
        #[arg(long, value_name = "SPAN", value_parser = input::span)]
        delay: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Ids {
    /// Ids of jobs.
    #[arg(required = true, value_name = "ID", value_parser = clap::value_parser!(u64).range(1..))]
    ids: Vec<u64>,
}

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
struct List {
    /// Only jobs in these states.
    #[arg(long, short)]
    state: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Only runs of this schedule.
    #[arg(long, value_name = "ID")]
    schedule: Option<u64>,
    /// Only deliveries of this job.
    #[arg(long, value_name = "ID")]
    parent: Option<u64>,
    /// Oldest first.
    #[arg(long)]
    oldest: bool,
    /// How many to show.
    #[arg(long, short = 'n', default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

/// The filters of both jobs and dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default, clap::Args)]
pub(crate) struct Filter {
    /// Only this queue.
    #[arg(long, short)]
    pub(crate) queue: Option<String>,
    /// Only this kind.
    #[arg(long, short)]
    pub(crate) kind: Option<String>,
    /// Only this tenant.
    #[arg(long)]
    pub(crate) tenant: Option<String>,
    /// Only jobs whose last failure has this class.
    #[arg(long)]
    pub(crate) class: Option<String>,
    /// Only jobs created (live) or finished since then: a moment, or how long ago (1h).
    #[arg(long, value_name = "MOMENT|SPAN", value_parser = input::since)]
    pub(crate) since: Option<String>,
}

impl Filter {
    pub(crate) fn pairs(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("queue", self.queue.clone()),
            ("kind", self.kind.clone()),
            ("tenant", self.tenant.clone()),
            ("class", self.class.clone()),
            ("since", self.since.clone()),
        ]
    }
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let json = args.target.json;
    let api = args.target.api().await?;
    match &args.action {
        None => list(&api, &args.list, json, screen).await,
        Some(JobAction::List(narrowed)) => list(&api, narrowed, json, screen).await,
        Some(JobAction::Show { id }) => {
            let job = job(&api, *id).await?;
            if json {
                return Ok(pretty(&job));
            }
            Ok(format!("{}\n{}", fields(&job, screen), history::of(&api, &job, screen).await?))
        }
        Some(JobAction::Cancel(ids)) => each(&api, ids, json, Method::DELETE, "").await,
        Some(JobAction::Replay(ids)) => each(&api, ids, json, Method::POST, "/retry").await,
        Some(JobAction::Change { id, priority, run_at, delay }) => {
            let mut change = Map::new();
            for (name, value) in [("priority", priority), ("runAt", run_at), ("delay", delay)] {
                change.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
            }
            if change.is_empty() {
                return Err(Error::BadInput("give --priority, --run-at or --delay".into()));
            }
            let path = format!("/api/v1/jobs/{id}");
            job(&api, *id).await?;
            let job = api.send(Method::PATCH, &path, Some(Value::Object(change).to_string())).await?;
            Ok(if json { pretty(&job) } else { line(&job) })
        }
    }
}

async fn list(api: &crate::cli::remote::api::Api, list: &List, json: bool, screen: &Screen) -> Result<String, Error> {
    let mut query = list.filter.pairs();
    query.push(("state", list.state.clone()));
    query.push(("schedule", list.schedule.map(|id| id.to_string())));
    query.push(("parent", list.parent.map(|id| id.to_string())));
    query.push(("order", list.oldest.then(|| "oldest".to_owned())));
    let (jobs, next) = api.list("/api/v1/jobs", &query, list.limit as usize).await?;
    if json {
        return Ok(pretty(&json!({ "items": jobs, "next": next })));
    }
    let table = table(&jobs).or("no jobs match", screen);
    let more =
        if next.is_null() { String::new() } else { format!("\nmore match; --limit {} shows them\n", list.limit * 5) };
    Ok(table + &more)
}

/// Jobs as a table, for all lists.
pub(crate) fn table(jobs: &[Value]) -> Grid {
    let now = Now::read();
    let mut grid = Grid::new([
        number("id"),
        text("state"),
        text("kind"),
        text("queue").optional(),
        text("tenant").optional(),
        text("attempts"),
        text("when"),
        cut("why"),
    ]);
    for job in jobs {
        let tenant = plain(&job["tenantId"]);
        grid.row([
            plain(&job["id"]).into(),
            state(&job["state"]),
            plain(&job["kind"]).into(),
            plain(&job["queue"]).into(),
            if tenant == "default" { String::new() } else { tenant }.into(),
            attempts(job).into(),
            when(job, now).into(),
            reason(job).into(),
        ]);
    }
    grid
}

/// When it runs next, ended or started.
fn when(job: &Value, now: Now) -> String {
    let moments = [&job["nextRunAt"], &job["finishedAt"], &job["runAt"]];
    moments.into_iter().find(|moment| moment.is_string()).map_or_else(String::new, |moment| now.distance(moment))
}

/// `2/4`; after a replay, what was counted since: all retries are available again.
fn attempts(job: &Value) -> String {
    match job["replays"].as_u64() {
        Some(0) | None => format!("{}/{}", job["attempt"], job["maxAttempts"]),
        Some(_) => format!("{}/{} (replayed)", counted_attempts(job), job["maxAttempts"]),
    }
}

/// The attempts of the current run that count against the policy.
fn counted_attempts(job: &Value) -> u64 {
    let is_counted = job["state"] == "running" || job["state"] == "succeeded";
    job["failures"].as_u64().unwrap_or(0) + u64::from(is_counted)
}

/// Why it failed or is retried. Failures of a job that succeeded are only in its history.
fn reason(job: &Value) -> String {
    if job["state"] == "succeeded" {
        return String::new();
    }
    let words = [plain(&job["reason"]), plain(&job["errorClass"])];
    let head: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let error = plain(&job["error"]);
    let error = error.lines().next().unwrap_or_default();
    if head.is_empty() || error.is_empty() { head.join(", ") } else { format!("{}: {error}", head.join(", ")) }
}

fn line(job: &Value) -> String {
    let due = Now::read().distance(&job["nextRunAt"]);
    let due = if due.is_empty() { due } else { format!(", due {due}") };
    format!("job {} {}: {}{due}\n", plain(&job["id"]), plain(&job["kind"]), plain(&job["state"]))
}

/// Does the same to each job. Continues after an error, and returns the first error at the end.
/// A job. The id of a schedule is refused.
async fn job(api: &crate::cli::remote::api::Api, id: u64) -> Result<Value, Error> {
    let job = api.get(&format!("/api/v1/jobs/{id}")).await?;
    if job["state"].is_string() {
        return Ok(job);
    }
    Err(Error::NotFound(format!("{id} is a schedule, not a job\n  hint: `windlass schedules show {id}`")))
}

async fn each(
    api: &crate::cli::remote::api::Api,
    ids: &Ids,
    json: bool,
    method: Method,
    action: &str,
) -> Result<String, Error> {
    let (mut done, mut first_error) = (Vec::new(), None);
    for id in &ids.ids {
        let sent = async {
            // The API would remove the schedule of that id.
            job(api, *id).await?;
            api.send(method.clone(), &format!("/api/v1/jobs/{id}{action}"), None).await
        };
        match sent.await {
            Ok(job) => done.push(job),
            Err(error) => {
                if let Some(earlier) = first_error.replace(error) {
                    eprintln!("error: {earlier}");
                }
            }
        }
    }
    let text = if json { pretty(&json!({ "items": done })) } else { done.iter().map(asked).collect() };
    match first_error {
        None => Ok(text),
        Some(error) => {
            print!("{text}");
            Err(error)
        }
    }
}

fn asked(job: &Value) -> String {
    if job["cancelRequested"] == true && job["state"] == "running" {
        return format!("job {} is running and was asked to stop\n", job["id"]);
    }
    line(job)
}

/// All fields of a job that are set, one per line.
fn fields(job: &Value, screen: &Screen) -> String {
    let now = Now::read();
    let moment = |name: &str| match job[name].as_str() {
        Some(at) => format!("{at} ({})", now.distance(&job[name])),
        None => String::new(),
    };
    let flag = |name: &str, word: &str| if job[name] == true { word.to_owned() } else { String::new() };
    let json = |value: &Value| if value.is_null() { String::new() } else { value.to_string() };
    let rows = [
        ("tenant", plain(&job["tenantId"])),
        ("priority", plain(&job["priority"])),
        ("delivery", plain(&job["delivery"])),
        ("created", moment("createdAt")),
        ("waits for", waits(job)),
        ("next run", moment("nextRunAt")),
        ("runs on", plain(&job["worker"])),
        ("started", moment("startedAt")),
        ("lease ends", moment("leaseUntil")),
        ("start by", moment("startBy")),
        ("finished", moment("finishedAt")),
        ("attempts", attempts_in_words(job)),
        ("timeout", span(&job["timeoutMs"])),
        ("key", plain(&job["idempotencyKey"])),
        ("limit key", plain(&job["limitKey"])),
        ("cancel", flag("cancelRequested", "requested")),
        ("schedule", plain(&job["scheduleId"])),
        ("parent", plain(&job["parentId"])),
        ("discarded", moment("discardedAt")),
        (
            "calls",
            job["http"]["url"]
                .as_str()
                .map_or_else(String::new, |url| format!("{} {url}", plain(&job["http"]["method"]))),
        ),
        ("webhook", plain(&job["webhook"]["url"])),
        ("retry", policy(&job["retry"])),
        ("payload", json(&job["payload"])),
        ("result", json(&job["result"])),
    ];
    let mut text = String::new();
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        let lines = wrap(&value, screen.width.saturating_sub(11)).replace('\n', "\n           ");
        text.push_str(&format!("{} {lines}\n", screen.ink.dim(&format!("{name:<10}"))));
    }
    text
}

/// What a waiting job waits for; `windlass why` says more.
fn waits(job: &Value) -> String {
    match (job["waitingFor"].as_str(), job["until"].as_str()) {
        (Some(what), Some(until)) => format!("{what} until {until}"),
        (Some(what), None) => what.to_owned(),
        (None, _) => String::new(),
    }
}

/// The attempts of the current run that count, and all there were, if those are more.
fn attempts_in_words(job: &Value) -> String {
    let number = |name: &str| job[name].as_u64().unwrap_or(0);
    let (now, all, replays) = (counted_attempts(job), number("attempt"), number("replays"));
    let text = format!("{now} of {}, {}", job["maxAttempts"], counted(number("failures"), "failure"));
    match (replays, all == now) {
        (0, true) => text,
        (0, false) => format!("{text}; {all} in all"),
        (n, _) => format!("{text} since replay {n}; {all} in all"),
    }
}

/// A policy of the API in words.
fn policy(value: &Value) -> String {
    let partial = windlass_core::policy::Partial::from_json(value, &windlass_core::policy::no_names);
    let policy = partial.and_then(|own| windlass_core::policy::Partial::resolve(&[own], &[]));
    policy.map_or_else(|_| value.to_string(), |policy| windlass_core::explain(&policy))
}
