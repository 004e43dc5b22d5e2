//! `windlass enqueue`: store one job, or a file of them.

use crate::cli::Error;
use crate::cli::pretty;
use crate::cli::remote::api::Api;
use crate::cli::remote::target::Target;
use crate::cli::terminal::input;
use crate::cli::terminal::progress::{self, Unit};
use crate::cli::terminal::screen::Screen;
use crate::cli::terminal::words::{Now, counted, plain};
use crate::cli::work::history;
use crate::cli::work::job_flags::JobFlags;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::time::Duration;

/// Lines of a file sent in one request.
const BATCH: usize = 1000;
/// The most refused lines that are listed.
const MAX_LISTED: usize = 10;
/// How often a job that is waited for is read.
const POLL_EVERY: Duration = Duration::from_millis(200);
/// After so many checks of a due job that no worker has claimed, a message says what the command waits for.
const CHECKS_BEFORE_HINT: u32 = 15;

const EXAMPLES: &str = "\
Examples:
  windlass enqueue email '{\"to\":\"ann@example.com\"}' --queue email --retry full-jitter
  windlass enqueue report @report.json --delay 30s --priority high --key report-2026-01
  windlass enqueue --url https://example.com/hook '{\"paid\":true}' --header 'X-Shop: 7'
  windlass enqueue --file jobs.ndjson          one job per line, in the API's form
  windlass enqueue email '{}' --store sqlite:windlass.db

Once this returns, the job survives a crash. Repeating a --key stores nothing and returns the
first job. Exit codes: 0 stored, 1 failed (with --wait: the job failed), 2 bad input,
4 the key belongs to another job, 5 unavailable.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    job: JobFlags,
    /// When to run it: a moment such as 2026-01-01T12:00:00Z.
    #[arg(long, value_name = "MOMENT", conflicts_with = "delay")]
    run_at: Option<String>,
    /// How long to wait before it may run.
    #[arg(long, value_name = "SPAN", value_parser = input::span)]
    delay: Option<String>,
    /// Fail it (expired) if it has not started by then.
    #[arg(long, value_name = "MOMENT")]
    start_by: Option<String>,
    /// Idempotency key: a second job with it is not stored.
    #[arg(long)]
    key: Option<String>,
    /// How long the key is kept: a span, or live [default: 24h].
    #[arg(long, value_name = "SPAN", requires = "key", value_parser = input::key_window)]
    key_window: Option<String>,
    /// Store the jobs in this file, one JSON object per line; - for standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kind", "payload", "url", "key", "delay", "run_at", "start_by"])]
    file: Option<String>,
    /// Wait until the job has finished, and show its execution log.
    #[arg(long, conflicts_with = "file")]
    wait: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Serialize)]
struct Batch<'a> {
    jobs: Vec<&'a RawValue>,
    atomic: bool,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    if let Some(path) = &args.file {
        return many(args, path).await;
    }
    let mut body = args.job.body()?;
    for (name, value) in [
        ("runAt", &args.run_at),
        ("delay", &args.delay),
        ("startBy", &args.start_by),
        ("idempotencyKey", &args.key),
        ("idempotencyWindow", &args.key_window),
    ] {
        body.fields.extend(value.iter().map(|value| (name.to_owned(), json!(value))));
    }
    let api = args.target.api_or_new().await?;
    let job = api.post("/api/v1/jobs", &body).await?;
    if args.wait {
        return wait(&api, &job, args.target.json, screen).await;
    }
    Ok(if args.target.json { pretty(&job) } else { stored(&job) })
}

fn stored(job: &Value) -> String {
    let due = match (job["state"].as_str(), Now::read().distance(&job["nextRunAt"])) {
        (Some("queued"), due) if due.starts_with("in ") => format!("due {due}"),
        (Some("queued"), _) => "due now".into(),
        (Some(state), _) => state.to_owned(),
        (None, _) => "already stored".into(),
    };
    let attempts =
        job["maxAttempts"].as_u64().map_or_else(String::new, |most| format!(", up to {}", counted(most, "attempt")));
    let queue = job["queue"].as_str().map_or_else(String::new, |queue| format!(" in queue {queue}"));
    format!("job {} {}{queue}: {due}{attempts}\n", plain(&job["id"]), plain(&job["kind"]))
}

async fn wait(api: &Api, job: &Value, json: bool, screen: &Screen) -> Result<String, Error> {
    let path = format!("/api/v1/jobs/{}", job["id"]);
    let mut checks = 0;
    let job = loop {
        let job = api.get(&path).await?;
        if job["finishedAt"].is_string() {
            break job;
        }
        checks += 1;
        let is_due = job["state"] == "queued" && Now::read().distance(&job["nextRunAt"]).ends_with("ago");
        if checks == CHECKS_BEFORE_HINT && is_due && std::io::stderr().is_terminal() {
            let (id, queue) = (&job["id"], plain(&job["queue"]));
            eprintln!("job {id} is stored; no worker of queue {queue} has claimed it yet (Ctrl-C stops waiting)");
        }
        tokio::time::sleep(POLL_EVERY).await;
    };
    let text = if json { pretty(&job) } else { history::of(api, &job, screen).await? };
    if job["state"] == "succeeded" { Ok(text) } else { Err(Error::Reported(text)) }
}

async fn many(args: &Args, path: &str) -> Result<String, Error> {
    let lines = read_lines(path)?;
    let api = args.target.api_or_new().await?;
    let bar = progress::bar(lines.len() as u64, "storing", Unit::Jobs);
    let (mut created, mut existing, mut refused) = (0_u64, 0_u64, Vec::new());
    let mut results = Vec::with_capacity(lines.len());
    for batch in lines.chunks(BATCH) {
        let jobs = batch.iter().map(|(_, job)| &**job).collect();
        let mut answer = api.post("/api/v1/jobs/batch", &Batch { jobs, atomic: false }).await?;
        let answers = answer["results"].as_array_mut().map(std::mem::take).unwrap_or_default();
        for ((line, _), result) in batch.iter().zip(answers) {
            match result["result"].as_str() {
                Some("created") => created += 1,
                Some("existing") => existing += 1,
                _ => refused.push(format!("line {line}: {}", complaint(&result))),
            }
            results.push(result);
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    let text = if args.target.json {
        pretty(&json!({ "created": created, "existing": existing, "refused": refused.len(), "results": results }))
    } else {
        let known = if existing > 0 { format!(", {existing} already stored") } else { String::new() };
        format!("{} stored{known}\n", counted(created, "job"))
    };
    if refused.is_empty() {
        return Ok(text);
    }
    print!("{text}");
    let left = refused.len().saturating_sub(MAX_LISTED);
    let more = if left > 0 { format!("\n  and {left} more") } else { String::new() };
    refused.truncate(MAX_LISTED);
    Err(Error::BadInput(format!("some lines were refused\n  {}{more}", refused.join("\n  "))))
}

/// The message without the JSON pointer into the batch: the line number is more useful.
fn complaint(result: &Value) -> String {
    let detail = plain(&result["detail"]);
    let field = detail.strip_prefix("/jobs/").and_then(|rest| rest.split_once('/'));
    field.map_or_else(|| detail.clone(), |(_, field)| field.to_owned())
}

/// The jobs of a file with their line numbers. All must be JSON before any is sent.
fn read_lines(path: &str) -> Result<Vec<(usize, Box<RawValue>)>, Error> {
    let reader: Box<dyn std::io::Read> = if path == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(|error| Error::BadInput(format!("cannot read {path}: {error}")))?)
    };
    let mut jobs = Vec::new();
    for (index, line) in BufReader::new(reader).lines().enumerate() {
        let line = line.map_err(|error| Error::BadInput(format!("cannot read {path}: {error}")))?;
        if line.trim().is_empty() {
            continue;
        }
        let number = index + 1;
        let job = serde_json::from_str(&line).map_err(|error| {
            Error::BadInput(format!("{path}: line {number} is not JSON: {error}; nothing was stored"))
        })?;
        jobs.push((number, job));
    }
    if jobs.is_empty() {
        return Err(Error::BadInput(format!("{path} contains no jobs: one JSON object per line is expected")));
    }
    Ok(jobs)
}
