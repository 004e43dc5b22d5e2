//! The schedules: next and last firings, how their runs ended; pause, trigger, change with a preview, remove.

mod actions;
mod view;

use super::error::PageError;
use super::frame::{Frame, render};
use super::session::Visitor;
use super::show;
use crate::http::{App, Query};
use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use futures_util::future::try_join_all;
use view::{Firings, RunRow, ScheduleRow};
use windlass::client::{Page as Keyset, Schedule};
use windlass_core::Cadence;

/// Schedules on one page.
const PER_PAGE: u32 = 50;
/// Runs that are shown as dots.
const DOTS: u32 = 20;
/// Runs on the page of a schedule.
const RUNS: u32 = 50;
/// Firings in a preview.
const FIRINGS: usize = 8;

#[derive(Template)]
#[template(path = "schedules/page.html")]
struct Page {
    frame: Frame,
    schedules: Vec<ScheduleRow>,
    older: Option<i64>,
    shows_tenant: bool,
}

#[derive(Template)]
#[template(path = "schedules/schedule.html")]
struct SchedulePage {
    frame: Frame,
    schedule: ScheduleRow,
    runs: Vec<RunRow>,
    /// The next firings, of the schedule or of the change in the form.
    firings: Result<Firings, String>,
    is_change: bool,
    cron: String,
    zone: String,
}

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/schedules", get(page))
        .route("/schedules/{id}", get(schedule))
        .route("/schedules/{id}/pause", post(actions::pause))
        .route("/schedules/{id}/resume", post(actions::resume))
        .route("/schedules/{id}/trigger", post(actions::trigger))
        .route("/schedules/{id}/change", post(actions::change))
        .route("/schedules/{id}/remove", post(actions::remove))
}

async fn page(State(app): State<App>, visitor: Visitor, query: Query) -> Result<Response, PageError> {
    let schedules = app.windlass().schedules().within(&visitor.tenants());
    let page = Keyset { after: query.cursor()?, ..Keyset::newest(PER_PAGE) };
    let found = schedules.list(page).await?;
    let histories = try_join_all(found.iter().map(|schedule| schedules.history(schedule.id, DOTS))).await?;
    let now = app.now();
    let rows = found.iter().zip(&histories).map(|(schedule, runs)| ScheduleRow::new(schedule, runs, now));
    let last = found.last().filter(|_| found.len() as u32 == PER_PAGE).map(|schedule| schedule.id.0);
    let live = if page.after.is_none() { "/schedules" } else { "" };
    render(&Page {
        frame: Frame::new(&app, &visitor, "schedules", "Schedules").live(live).done(query.text("done")),
        schedules: rows.collect(),
        older: last,
        shows_tenant: visitor.sees_all(),
    })
}

async fn schedule(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, PageError> {
    let schedules = app.windlass().schedules().within(&visitor.tenants());
    let id = show::id(&id).ok_or_else(|| PageError::not_found("schedule", &id))?;
    let found = schedules.get(id).await?.ok_or_else(|| PageError::not_found("schedule", id))?;
    let history = schedules.history(id, RUNS).await?;
    let now = app.now();
    let (cron, zone) = asked(&found, &query);
    let cadence = Cadence::read(&cron, &zone, found.created_at);
    let firings = cadence.map(|cadence| Firings::new(&cadence.next_n(now, FIRINGS), &zone, now));
    let is_change = query.text("cron").is_some();
    let live = if is_change { String::new() } else { format!("/schedules/{id}") };
    render(&SchedulePage {
        frame: Frame::new(&app, &visitor, "schedules", format!("Schedule {id}")).live(live).done(query.text("done")),
        schedule: ScheduleRow::new(&found, &history, now),
        runs: history.iter().rev().map(|(job, attempt)| RunRow::new(*job, attempt, now)).collect(),
        firings: firings.map_err(|error| error.to_string()),
        is_change,
        cron,
        zone,
    })
}

/// The cadence in the form, or the schedule's own.
fn asked(schedule: &Schedule, query: &Query) -> (String, String) {
    let cron = query.text("cron").unwrap_or(&schedule.spec.cadence).trim().to_owned();
    let zone = query.text("zone").unwrap_or(&schedule.spec.zone).trim().to_owned();
    (cron, zone)
}
