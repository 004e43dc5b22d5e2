//! `windlass history`: the execution log of a job, or of all runs of a schedule.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::api::Api;
use crate::cli::remote::target::Target;
use crate::cli::terminal::grid::{Grid, Shown, number, text, wrapped};
use crate::cli::terminal::screen::{Hue, Screen};
use crate::cli::terminal::words::{plain, span};
use crate::cli::work::deliveries;
use serde_json::Value;

const EXAMPLES: &str = "\
Examples:
  windlass history 42                      every attempt of job 42
  windlass history 7 --limit 100           the latest 100 attempts of schedule 7's runs
  windlass history 42 --trace              with the stack traces of errors
  windlass history 42 --json

Columns: attempt (Initial, Retry #1, …), status, when it started (UTC), how long it took, its note
or error, and what followed. Exit codes: 0 done, 2 bad input, 3 no such job, 5 unavailable.";

/// Screens narrower than this have no room for every column.
const NARROW: usize = 80;
/// Screens from this width show moments with their year.
const WIDE: usize = 100;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The id of a job or a schedule.
    #[arg(value_name = "JOB", value_parser = clap::value_parser!(u64).range(1..))]
    id: u64,
    /// How many of the latest attempts to show, 1 to 1000.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Show the stack traces that failed attempts left.
    #[arg(long)]
    trace: bool,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let api = args.target.api().await?;
    let path = format!("/api/v1/jobs/{}/history?limit={}&trace={}", args.id, args.limit, args.trace);
    let attempts = api.get(&path).await?;
    if args.target.json {
        return Ok(pretty(&attempts));
    }
    let (title, related) = match api.get(&format!("/api/v1/jobs/{}", args.id)).await {
        Ok(job) if job["state"].is_string() => (summary(&job, screen), deliveries::of(&job, screen)),
        // The id of a schedule, which may be gone by now.
        Ok(_) | Err(Error::NotFound(_)) => (format!("schedule {}\n", args.id), String::new()),
        Err(error) => return Err(error),
    };
    Ok(format!("{title}\n{}{}{related}", log(&attempts["items"], screen), traces(&attempts["items"], screen)))
}

/// The stack traces of the attempts that left one.
fn traces(attempts: &Value, screen: &Screen) -> String {
    let mut text = String::new();
    for attempt in attempts.as_array().into_iter().flatten() {
        let Some(trace) = attempt["trace"].as_str() else { continue };
        let title = format!("{} ({})", plain(&attempt["label"]), plain(&attempt["errorClass"]));
        // Control characters could drive the terminal.
        let clean: String = trace.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
        text.push_str(&format!("\n{}\n{}\n", screen.ink.bold(&title), clean.trim_end()));
    }
    text
}

/// A job in one line, its log, and its deliveries.
pub(crate) async fn of(api: &Api, job: &Value, screen: &Screen) -> Result<String, Error> {
    let attempts = api.get(&format!("/api/v1/jobs/{}/history?limit=100", job["id"])).await?;
    let related = deliveries::of(job, screen);
    Ok(format!("{}\n{}{related}", summary(job, screen), log(&attempts["items"], screen)))
}

/// `job 42 email (queue email): failed (exhausted) after 4 attempts`
pub(crate) fn summary(job: &Value, screen: &Screen) -> String {
    let word = job["state"].as_str().unwrap_or_default();
    let hue = match word {
        "succeeded" => Hue::Good,
        "failed" => Hue::Bad,
        "retrying" => Hue::Warn,
        _ => Hue::Live,
    };
    let reason = job["reason"].as_str().map_or_else(String::new, |reason| format!(" ({reason})"));
    let tries = match job["attempt"].as_u64() {
        Some(0) | None => String::new(),
        Some(1) => ", 1 attempt".into(),
        Some(n) => format!(", {n} attempts"),
    };
    let replays = job["replays"].as_u64().filter(|n| *n > 0).map_or_else(String::new, |n| format!(", replayed {n}×"));
    let (id, kind, queue) = (plain(&job["id"]), plain(&job["kind"]), plain(&job["queue"]));
    let title = screen.ink.bold(&format!("job {id} {kind}"));
    format!("{title} (queue {queue}): {}{tries}{replays}\n", screen.ink.hued(hue, &format!("{word}{reason}")))
}

/// The execution log as a table.
pub(crate) fn log(attempts: &Value, screen: &Screen) -> String {
    let attempts = attempts.as_array().map(Vec::as_slice).unwrap_or_default();
    let has_replays = attempts.iter().any(|attempt| attempt["replay"].as_u64().is_some_and(|n| n > 0));
    let mut grid = Grid::new([
        number("job").optional(),
        text("attempt"),
        text("status"),
        // A replay can be days later, so its time then matters more than the width of the texts.
        if has_replays && screen.width >= NARROW { text("started") } else { text("started").optional() },
        number("duration"),
        wrapped("notes"),
        wrapped("next"),
    ]);
    for attempt in attempts {
        grid.row([
            plain(&attempt["jobId"]).into(),
            plain(&attempt["label"]).into(),
            status(&attempt["status"]),
            started(&attempt["executionTime"], screen).into(),
            span(&attempt["durationMs"]).into(),
            notes(attempt).into(),
            next(attempt).into(),
        ]);
    }
    grid.or("no attempt yet", screen)
}

fn status(value: &Value) -> Shown {
    let word = plain(value);
    let hue = match word.as_str() {
        "SUCCESS" => Hue::Good,
        "FAILED" => Hue::Bad,
        _ => Hue::Faint,
    };
    Shown::hued(word, hue)
}

/// When an attempt started; without the year where there is little room.
fn started(value: &Value, screen: &Screen) -> String {
    let clock = clock(value);
    if screen.width < WIDE { clock.chars().skip(5).collect() } else { clock }
}

/// `2026-01-01T12:00:01.234Z` → `2026-01-01 12:00:01`
pub(crate) fn clock(value: &Value) -> String {
    let text = plain(value);
    let seconds: String = text.chars().take(19).collect();
    seconds.replacen('T', " ", 1)
}

fn notes(attempt: &Value) -> String {
    let (note, class, error) = (plain(&attempt["note"]), plain(&attempt["errorClass"]), plain(&attempt["error"]));
    // A backtrace or a page of HTML is shown only with `--json`.
    let error = error.lines().next().unwrap_or_default();
    // The note of a call is its status, which its error also contains.
    let note = if error.starts_with(&note) { "" } else { note.as_str() };
    let failure = [class.as_str(), error].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(": ");
    [note, &failure].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("; ")
}

/// What followed: the chosen delay and its reason, or why there was none.
fn next(attempt: &Value) -> String {
    let why = plain(&attempt["why"]);
    match attempt["delayMs"].as_u64() {
        Some(_) => format!("in {} ({why})", span(&attempt["delayMs"])),
        None if why == "succeeded" => String::new(),
        None => why,
    }
}
