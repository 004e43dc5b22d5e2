//! `windlass tail`: follows the events of jobs. A server streams its events; a store without a server is read twice a
//! second.

use crate::cli::Error;
use crate::cli::emit;
use crate::cli::remote::api::{Api, with_query};
use crate::cli::remote::target::Target;
use crate::cli::terminal::screen::{Hue, Screen, width};
use crate::cli::terminal::words::{plain, span};
use http_body_util::BodyExt as _;
use hyper::Method;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::time::Duration;
use windlass::Clock;
use windlass_core::Millis;

const EXAMPLES: &str = "\
Examples:
  windlass tail
  windlass tail --queue email
  windlass tail --job 42
  windlass tail --json | jq -c 'select(.event == \"gave_up\")'
  windlass tail --store sqlite:windlass.db

A server streams the events of its own process. With --store, changes are found by reading the
store twice a second: a change that begins and ends between two reads is seen once. Ctrl-C ends it.
Exit codes: 0 ended, 2 bad input, 5 unavailable.";

/// How often a store is read.
const POLL_EVERY: Duration = Duration::from_millis(500);
/// The most jobs read each time; busier stores should be followed through a server.
const LOOKED_AT: usize = 1000;
/// The width of an event's name: `succeeded`.
const NAME_WIDTH: usize = 9;
/// With less room than this after the name, columns are not aligned.
const ALIGNED: usize = 60;
/// The longest line of a stream that is assembled.
const MAX_LINE: usize = 1024 * 1024;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Only this queue.
    #[arg(long, short)]
    queue: Option<String>,
    /// Only this tenant.
    #[arg(long)]
    tenant: Option<String>,
    /// Only this job.
    #[arg(long, value_name = "ID")]
    job: Option<u64>,
    /// End after this many events.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    target: Target,
}

pub(crate) async fn run(args: &Args, screen: &Screen) -> Result<String, Error> {
    let api = args.target.api().await?;
    let mut printer = Printer { args, screen, left: args.count };
    let follow = async {
        match api.as_server() {
            Some(_) => stream(&api, &mut printer).await,
            None => poll(&api, &mut printer).await,
        }
    };
    tokio::select! {
        ended = follow => ended?,
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(String::new())
}

/// Whether to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    End,
}

struct Printer<'a> {
    args: &'a Args,
    screen: &'a Screen,
    left: Option<u64>,
}

impl Printer<'_> {
    fn print(&mut self, name: &str, mut event: Value) -> Result<Go, Error> {
        let text = if self.args.target.json {
            event["event"] = json!(name);
            format!("{event}\n")
        } else {
            line(name, &event, self.screen)
        };
        if !emit(&text)? {
            return Ok(Go::End);
        }
        self.left = self.left.map(|left| left - 1);
        Ok(if self.left == Some(0) { Go::End } else { Go::On })
    }
}

async fn stream(api: &Api, printer: &mut Printer<'_>) -> Result<(), Error> {
    let server = api.as_server().expect("streams come from servers");
    let args = printer.args;
    let query =
        [("queue", args.queue.clone()), ("tenant", args.tenant.clone()), ("job", args.job.map(|id| id.to_string()))];
    let path = with_query("/api/v1/events", &query);
    let mut answer = server.open(Method::GET, &path, None).await?;
    if !answer.response.status().is_success() {
        // The request is repeated as a plain one, so that the problem is shown like any other.
        api.get(&path).await?;
    }
    if !args.target.json {
        eprintln!("following {}; Ctrl-C ends it", server.url());
    }
    let mut lines = Lines::default();
    while let Some(frame) = answer.response.body_mut().frame().await {
        let Ok(frame) = frame else { break };
        let Ok(data) = frame.into_data() else { continue };
        for (name, event) in lines.push(&data) {
            if printer.print(&name, event)? == Go::End {
                return Ok(());
            }
        }
    }
    Err(Error::Unavailable(format!("{} ended the stream: it is stopping, or the connection broke", server.url())))
}

/// Assembles server-sent events from the pieces that arrive.
#[derive(Debug, Default)]
struct Lines {
    rest: String,
    name: String,
}

impl Lines {
    fn push(&mut self, data: &[u8]) -> Vec<(String, Value)> {
        self.rest.push_str(&String::from_utf8_lossy(data));
        let mut events = Vec::new();
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            let line = line.trim_end();
            if let Some(name) = line.strip_prefix("event:") {
                self.name = name.trim().to_owned();
            } else if let Some(data) = line.strip_prefix("data:")
                && let Ok(event) = serde_json::from_str(data.trim())
            {
                events.push((std::mem::take(&mut self.name), event));
            }
        }
        if self.rest.len() > MAX_LINE {
            self.rest.clear();
        }
        events
    }
}

/// Reads the store repeatedly and prints what has changed.
async fn poll(api: &Api, printer: &mut Printer<'_>) -> Result<(), Error> {
    let args = printer.args;
    if !args.target.json {
        eprintln!("reading the store twice a second; Ctrl-C ends it");
    }
    let clock = Clock::system();
    let mut seen: HashMap<u64, (String, u64)> = HashMap::new();
    let mut is_first = true;
    let mut since = clock.now();
    loop {
        let looked_at = clock.now();
        let mut jobs = changed(api, args, "queued,running,retrying", None).await?;
        let live: Vec<u64> = jobs.iter().filter_map(|job| job["id"].as_u64()).collect();
        // A small overlap: a job may be archived with a time just before the last read.
        jobs.extend(
            changed(api, args, "succeeded,failed,cancelled", Some((since - Millis::from_secs(2)).to_string())).await?,
        );
        jobs.sort_by_key(|job| job["id"].as_u64());
        for job in jobs {
            let Some(id) = job["id"].as_u64() else { continue };
            let now = (plain(&job["state"]), job["attempt"].as_u64().unwrap_or(0));
            if seen.get(&id) == Some(&now) {
                continue;
            }
            seen.insert(id, now);
            let is_old = is_first || args.job.is_some_and(|wanted| wanted != id);
            if !is_old && printer.print(event_name(&job), event_of(&job))? == Go::End {
                return Ok(());
            }
        }
        // Finished jobs are remembered as long as they can appear again.
        if seen.len() > 4 * LOOKED_AT {
            seen.retain(|id, _| live.contains(id));
        }
        (is_first, since) = (false, looked_at);
        tokio::time::sleep(POLL_EVERY).await;
    }
}

async fn changed(api: &Api, args: &Args, states: &str, since: Option<String>) -> Result<Vec<Value>, Error> {
    let query = [
        ("state", Some(states.to_owned())),
        ("queue", args.queue.clone()),
        ("tenant", args.tenant.clone()),
        ("since", since),
    ];
    api.list("/api/v1/jobs", &query, LOOKED_AT).await.map(|(jobs, _)| jobs)
}

fn event_name(job: &Value) -> &'static str {
    match job["state"].as_str() {
        Some("running") => "started",
        Some("retrying") => "retried",
        Some("succeeded") => "succeeded",
        Some("failed") => "gave_up",
        Some("cancelled") => "cancelled",
        _ => "queued",
    }
}

fn event_of(job: &Value) -> Value {
    let at = [&job["finishedAt"], &job["runAt"]].into_iter().find(|at| at.is_string()).cloned().unwrap_or_default();
    json!({
        "at": if job["state"] == "queued" { job["createdAt"].clone() } else { at },
        "id": job["id"], "tenantId": job["tenantId"], "queue": job["queue"], "kind": job["kind"],
        "state": job["state"], "attempt": job["attempt"], "retryCount": job["failures"], "maxAttempts": job["maxAttempts"],
        "scheduleId": job["scheduleId"], "errorClass": job["errorClass"], "reason": job["reason"],
        "nextRunAt": job["nextRunAt"],
    })
}

/// `12:00:01.234  job 42  email  retried     attempt 2/4  Timeout, again in 1.2s`
fn line(name: &str, event: &Value, screen: &Screen) -> String {
    if name == "lagged" {
        return screen.ink.hued(Hue::Warn, &format!("missed {} events: too many to follow\n", plain(&event["missed"])));
    }
    let hue = match name {
        "succeeded" => Hue::Good,
        "retried" => Hue::Warn,
        "gave_up" => Hue::Bad,
        "started" => Hue::Live,
        _ => Hue::Faint,
    };
    let at: String = plain(&event["at"]).chars().skip(11).take(12).collect();
    let at = at.trim_end_matches('Z');
    let mut notes = Vec::new();
    let class = plain(&event["errorClass"]);
    notes.extend((!class.is_empty()).then_some(class));
    notes.extend(event["reason"].as_str().map(str::to_owned));
    notes.extend(event["delayMs"].is_u64().then(|| format!("again in {}", span(&event["delayMs"]))));
    if name != "retried" {
        notes.extend(event["durationMs"].is_u64().then(|| format!("took {}", span(&event["durationMs"]))));
    }
    let attempt = match event["attempt"].as_u64() {
        Some(0) | None => String::new(),
        Some(n) => format!("attempt {n}/{}", plain(&event["maxAttempts"])),
    };
    let name = screen.ink.hued(hue, &format!("{:<NAME_WIDTH$}", name.replace('_', " ")));
    let job = format!("job {}", plain(&event["id"]));
    let queue_and_kind = format!("{}/{}", plain(&event["queue"]), plain(&event["kind"]));
    // The colours of the name take no room on the screen.
    let before = format!("{at:<12}  {job:<10}  ");
    let room = screen.width.saturating_sub(width(&before) + NAME_WIDTH);
    let after = if room < ALIGNED {
        format!("  {queue_and_kind}  {attempt}  {}", notes.join(", "))
    } else {
        format!("  {queue_and_kind:<24}  {attempt:<12}  {}", notes.join(", "))
    };
    format!("{before}{name}{}\n", fit(after.trim_end(), room))
}

/// The text, cut if it is wider than `room`. A pipe is not cut: another program reads it.
fn fit(text: &str, room: usize) -> String {
    if width(text) <= room || !std::io::stdout().is_terminal() && std::env::var_os("COLUMNS").is_none() {
        return text.to_owned();
    }
    let mut kept = String::new();
    for letter in text.chars() {
        if width(&kept) + width(letter.encode_utf8(&mut [0; 4])) >= room {
            break;
        }
        kept.push(letter);
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_put_together_from_pieces() {
        let mut lines = Lines::default();
        assert!(lines.push(b": keep-alive\n\nevent: ret").is_empty());
        assert!(lines.push(b"ried\ndata: {\"id\"").is_empty());
        assert_eq!(lines.push(b":7}\n\n"), [("retried".to_owned(), json!({ "id": 7 }))]);
    }
}
