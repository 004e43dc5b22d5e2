//! What the demo shows before and after: its jobs, how they ended, the execution logs, the numbers, and what to try
//! next.

use super::cast::Actor;
use crate::cli::remote::api::Api;
use crate::cli::terminal::grid::{Grid, number, text, wrapped};
use crate::cli::terminal::screen::{Screen, width};
use crate::cli::{Error, stats, work::history, work::jobs};
use serde_json::{Value, json};
use std::fmt::Write as _;
use windlass::JobId;

/// Jobs of the demo, including runs of its schedule.
const LIMIT: usize = 100;

pub(super) fn overview(actors: &[Actor], cron: &'static str, screen: &Screen) -> String {
    let mut grid = Grid::new([number("job"), text("kind"), text("policy"), wrapped("what it does")]);
    for actor in actors {
        grid.row([actor.id.to_string().into(), actor.kind.into(), actor.policy.as_str().into(), actor.will.into()]);
    }
    grid.row(["".into(), "heartbeat".into(), cron.into(), "a schedule: runs every two seconds".into()]);
    grid.render(screen)
}

async fn all(api: &Api) -> Result<Vec<Value>, Error> {
    api.list("/api/v1/jobs", &[("order", Some("oldest".to_owned()))], LIMIT).await.map(|(jobs, _)| jobs)
}

pub(super) async fn closing(
    api: &Api,
    actors: &[Actor],
    delivery: JobId,
    kept: Option<&str>,
    screen: &Screen,
) -> Result<String, Error> {
    let title = |words: &str| format!("\n{}\n\n", screen.ink.bold(words));
    let mut reported = title("How it ended");
    reported.push_str(&jobs::table(&all(api).await?).render(screen));
    reported.push_str(&title("Execution logs"));
    let is_worth_it = |actor: &&Actor| matches!(actor.kind, "resize-image" | "sync-crm" | "parse-report");
    let shown = actors.iter().filter(is_worth_it).map(|actor| actor.id).chain([delivery]);
    for (index, id) in shown.enumerate() {
        let job = api.get(&format!("/api/v1/jobs/{id}")).await?;
        let gap = if index > 0 { "\n" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(reported, "{gap}{}", history::of(api, &job, screen).await?);
    }
    reported.push_str(&title("In numbers"));
    let found = api.get("/api/v1/stats").await?;
    reported.push_str(&stats::table(&found["windows"]["5m"], "kind", "kinds", screen));
    reported.push_str(&title("What to try next"));
    reported.push_str(&next(kept, screen));
    Ok(reported)
}

fn next(kept: Option<&str>, screen: &Screen) -> String {
    let mut hints = match kept {
        Some(path) => vec![
            (format!("windlass dead groups --store sqlite:{path}"), "the dead letters, and why they failed"),
            (format!("windlass history 2 --store sqlite:{path}"), "one job's log"),
        ],
        None => vec![("windlass demo --keep demo.db".to_owned(), "the same, with a store to explore afterwards")],
    };
    for (command, what) in [
        ("windlass policy preview exponential --count 10", "what a policy will do"),
        ("windlass serve", "a server with API and docs on http://127.0.0.1:9463"),
        ("windlass enqueue --url https://example.com '{}'", "a job that calls a URL"),
        ("windlass --help", "everything else"),
    ] {
        hints.push((command.to_owned(), what));
    }
    let widest = hints.iter().map(|(command, _)| width(command)).max().unwrap_or(0);
    let is_roomy = hints.iter().all(|(_, what)| widest + width(what) + 4 <= screen.width);
    let line = |(command, what): &(String, &str)| match is_roomy {
        true => format!("  {command:<widest$}  {what}\n"),
        false => format!("  {command}\n      {}\n", screen.ink.dim(what)),
    };
    hints.iter().map(line).collect()
}

/// All jobs with their histories, and the stats.
pub(super) async fn document(api: &Api) -> Result<Value, Error> {
    let mut jobs = all(api).await?;
    for job in &mut jobs {
        let mut history = api.get(&format!("/api/v1/jobs/{}/history?limit=100", job["id"])).await?;
        job["history"] = history["items"].take();
    }
    Ok(json!({ "timeScale": super::scale::FACTOR, "jobs": jobs, "stats": api.get("/api/v1/stats").await? }))
}
