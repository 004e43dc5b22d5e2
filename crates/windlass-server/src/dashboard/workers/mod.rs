//! The workers: who runs what, since when.

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show::{self, Moment};
use crate::http::App;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use windlass_core::Millis;

/// Workers that were seen within this time are shown; silent ones among them are marked.
const SEEN_WITHIN: Millis = Millis::from_secs(600);
const SILENT_AFTER: Millis = Millis::from_secs(60);

#[derive(Template)]
#[template(path = "workers/page.html")]
struct Page {
    frame: Frame,
    workers: Vec<WorkerRow>,
}

struct WorkerRow {
    name: String,
    host: String,
    version: String,
    queues: String,
    running: String,
    started: Moment,
    seen: Moment,
    is_silent: bool,
}

pub(super) async fn page(State(app): State<App>, visitor: Visitor) -> Result<Response, PageError> {
    visitor.for_all_tenants()?;
    let now = app.now();
    let mut workers = app.windlass().workers().seen_within(SEEN_WITHIN).await?;
    workers.sort_by(|a, b| a.worker.cmp(&b.worker));
    let row = |report: &windlass::client::WorkerReport| WorkerRow {
        name: report.worker.to_string(),
        host: report.host.clone(),
        version: report.version.clone(),
        queues: report.queues.iter().map(|(name, slots)| format!("{name} ×{slots}")).collect::<Vec<_>>().join(", "),
        running: show::number(report.running.into()),
        started: Moment::new(report.started_at, now),
        seen: Moment::new(report.seen_at, now),
        is_silent: now.since(report.seen_at) > SILENT_AFTER,
    };
    let frame = Frame::new(&app, &visitor, "workers", "Workers").live("/workers");
    render(&Page { frame, workers: workers.iter().map(row).collect() })
}
