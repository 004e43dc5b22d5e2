//! `windlass schedules`: cron lines and intervals that enqueue jobs.

use super::remote::api::Api;
use super::remote::target::Target;
use super::terminal::ask::Consent;
use super::terminal::grid::{Grid, Shown, cut, number, text};
use super::terminal::input;
use super::terminal::screen::{Hue, Screen};
use super::terminal::words::{Now, plain};
use super::work::job_flags::{JobBody, JobFlags};
use super::{Error, pretty};
use clap::Subcommand;
use hyper::Method;
use serde::Serialize;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "\
Examples:
  windlass schedules
  windlass schedules add report '{\"of\":\"sales\"}' --cron '0 6 * * mon-fri' --timezone Europe/Berlin
  windlass schedules add --url https://example.com/ping --every 30s
  windlass schedules preview --cron '*/10 * * * * *' --count 5
  windlass schedules preview 7
  windlass schedules pause 7; windlass schedules resume 7; windlass schedules trigger 7
  windlass schedules remove 7                    its runs stay in history; asks first

Cron has 5 fields (minute hour day month weekday), or 6 with seconds first.
Exit codes: 0 done, 2 bad input, 3 no such schedule, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<ScheduleAction>,
    #[command(flatten)]
    target: Target,
}

#[derive(Debug, Subcommand)]
enum ScheduleAction {
    /// List schedules.
    List {
        /// How many to show.
        #[arg(long, short = 'n', default_value_t = DEFAULT_SHOWN, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
    },
    /// Create a schedule.
    Add(Box<Add>),
    /// Show one schedule and its next firings.
    Show { id: u64 },
    /// Pause: it does not fire until it is resumed.
    Pause { id: u64 },
    /// Resume: it fires again; firings missed during the pause are skipped.
    Resume { id: u64 },
    /// Fire now, independent of its cadence.
    Trigger { id: u64 },
    /// Remove schedules; their runs stay in history.
    Remove {
        #[arg(required = true, value_name = "ID")]
        ids: Vec<u64>,
        #[command(flatten)]
        consent: Consent,
    },
    /// Show the next firings of a schedule, or of a cadence given by flags.
    Preview {
        #[arg(required_unless_present_any = ["cron", "every"], conflicts_with_all = ["cron", "every"])]
        id: Option<u64>,
        #[command(flatten)]
        cadence: Cadence,
        /// How many firings.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
        count: u32,
    },
}

const DEFAULT_SHOWN: u32 = 50;

#[derive(Debug, clap::Args)]
struct Cadence {
    /// A cron line of 5 fields, or 6 with seconds first.
    #[arg(long, conflicts_with = "every")]
    cron: Option<String>,
    /// An interval, such as 30s.
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    every: Option<String>,
    /// The time zone of the cron line [default: UTC].
    #[arg(long, value_name = "ZONE", requires = "cron")]
    timezone: Option<String>,
}

#[derive(Debug, clap::Args)]
struct Add {
    #[command(flatten)]
    job: JobFlags,
    #[command(flatten)]
    cadence: Cadence,
    /// Fire once, then remove the schedule.
    #[arg(long)]
    once: bool,
    /// If the last run is still live: skip (default) or allow another.
    #[arg(long, value_name = "RULE")]
    overlap: Option<String>,
    /// Firings missed while no node was running: one (default) or skip.
    #[arg(long, value_name = "RULE")]
    missed: Option<String>,
    /// Failed runs that stay dead letters: latest (default) or all.
    #[arg(long, value_name = "RULE")]
    dead_letters: Option<String>,
}

#[derive(Serialize)]
struct Body {
    #[serde(flatten)]
    fields: Map<String, Value>,
    job: JobBody,
}

impl Cadence {
    fn fields(&self) -> Map<String, Value> {
        let given = [("cron", &self.cron), ("every", &self.every), ("timezone", &self.timezone)];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?)))).collect()
    }
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let json = args.target.json;
    let path = |id: &u64, action: &str| format!("/api/v1/schedules/{id}{action}");
    if let Some(ScheduleAction::Add(add)) = &args.action {
        let made = create(&args.target.api_or_new().await?, add).await?;
        return Ok(if json { pretty(&made) } else { line(&made) });
    }
    let api = args.target.api().await?;
    match &args.action {
        None => list(&api, DEFAULT_SHOWN, json, screen).await,
        Some(ScheduleAction::List { limit }) => list(&api, *limit, json, screen).await,
        Some(ScheduleAction::Add(_)) => unreachable!("adding is handled above"),
        Some(ScheduleAction::Show { id }) => {
            let schedule = api.get(&path(id, "")).await?;
            if json {
                return Ok(pretty(&schedule));
            }
            let next = api.get(&path(id, "/preview?count=5")).await?;
            let last = schedule["lastJobId"].as_i64().map_or_else(String::new, |job| format!("last run: job {job}\n"));
            Ok(format!("{}{last}{}", line(&schedule), firings(&next, screen)))
        }
        Some(ScheduleAction::Pause { id }) => action(&api, &path(id, "/pause"), json).await,
        Some(ScheduleAction::Resume { id }) => action(&api, &path(id, "/resume"), json).await,
        Some(ScheduleAction::Trigger { id }) => {
            let run = api.ask(Method::POST, &path(id, "/trigger")).await?;
            Ok(if json { pretty(&run) } else { format!("schedule {id} fired: job {}\n", run["id"]) })
        }
        Some(ScheduleAction::Remove { ids, consent }) => {
            let shown: Vec<String> = ids.iter().map(u64::to_string).collect();
            consent.get(&format!("Remove schedule {}?", shown.join(", ")))?;
            for id in ids {
                api.ask(Method::DELETE, &path(id, "")).await?;
            }
            Ok(if json { pretty(&json!({ "removed": ids })) } else { format!("removed {}\n", shown.join(", ")) })
        }
        Some(ScheduleAction::Preview { id, cadence, count }) => {
            let found = match id {
                Some(id) => api.get(&path(id, &format!("/preview?count={count}"))).await?,
                None => {
                    let mut body = cadence.fields();
                    body.insert("count".into(), json!(count));
                    api.post("/api/v1/schedules/preview", &body).await?
                }
            };
            Ok(if json { pretty(&found) } else { firings(&found, screen) })
        }
    }
}

async fn create(api: &Api, add: &Add) -> Result<Value, Error> {
    let mut fields = add.cadence.fields();
    if add.once {
        fields.insert("recurring".into(), json!(false));
    }
    for (name, value) in [("overlap", &add.overlap), ("missed", &add.missed), ("deadLetters", &add.dead_letters)] {
        fields.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
    }
    api.post("/api/v1/schedules", &Body { fields, job: add.job.body()? }).await
}

async fn action(api: &Api, path: &str, json: bool) -> Result<String, Error> {
    let schedule = api.ask(Method::POST, path).await?;
    Ok(if json { pretty(&schedule) } else { line(&schedule) })
}

fn cadence(schedule: &Value) -> String {
    match (schedule["cron"].as_str(), schedule["every"].as_str()) {
        (Some(cron), _) if schedule["timezone"] == "UTC" => cron.to_owned(),
        (Some(cron), _) => format!("{cron} ({})", plain(&schedule["timezone"])),
        (None, Some(every)) => format!("every {every}"),
        (None, None) => String::new(),
    }
}

fn line(schedule: &Value) -> String {
    let next = match (schedule["paused"] == true, Now::read().distance(&schedule["nextRunAt"])) {
        (true, _) => "paused".to_owned(),
        (false, next) if next.is_empty() => "does not fire again".into(),
        (false, next) => format!("next run {next}"),
    };
    format!("schedule {} {}: {}, {next}\n", schedule["id"], plain(&schedule["job"]["kind"]), cadence(schedule))
}

async fn list(api: &Api, limit: u32, json: bool, screen: &Screen) -> Result<String, Error> {
    let (schedules, next) = api.list("/api/v1/schedules", &[], limit as usize).await?;
    if json {
        return Ok(pretty(&json!({ "items": schedules, "next": next })));
    }
    let now = Now::read();
    let mut grid = Grid::new([
        number("id"),
        text("kind"),
        text("cadence"),
        text("state"),
        text("next run"),
        text("last").optional(),
        number("last job").optional(),
        text("queue").optional(),
        cut("calls").optional(),
    ]);
    for schedule in &schedules {
        let state = if schedule["paused"] == true { Shown::hued("paused", Hue::Warn) } else { "open".into() };
        grid.row([
            plain(&schedule["id"]).into(),
            plain(&schedule["job"]["kind"]).into(),
            cadence(schedule).into(),
            state,
            now.distance(&schedule["nextRunAt"]).into(),
            now.distance(&schedule["lastFiringAt"]).into(),
            plain(&schedule["lastJobId"]).into(),
            plain(&schedule["job"]["queue"]).into(),
            plain(&schedule["job"]["http"]["url"]).into(),
        ]);
    }
    Ok(grid.or("no schedules", screen))
}

fn firings(found: &Value, screen: &Screen) -> String {
    let now = Now::read();
    let mut grid = Grid::new([number("firing"), text("at"), text("")]);
    for (index, at) in found["firings"].as_array().into_iter().flatten().enumerate() {
        grid.row([(index + 1).to_string().into(), plain(at).into(), now.distance(at).into()]);
    }
    grid.or("it never fires", screen)
}
