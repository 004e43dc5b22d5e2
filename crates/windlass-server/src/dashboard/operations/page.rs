//! The progress of a long action. For a replay at a rate: also how many of its jobs are due by now.

use super::{Operation, Started, Status, Undo, Work};
use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::{Frame, render};
use crate::dashboard::session::Visitor;
use crate::dashboard::show::{self, Moment};
use crate::http::App;
use askama::Template;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use windlass_core::Timestamp;

#[derive(Template)]
#[template(path = "operations/page.html")]
struct Page {
    frame: Frame,
    operation: Operation,
    is_running: bool,
    fault: Option<String>,
    done: String,
    skipped: u64,
    /// Out of how many, if known.
    of: Option<u64>,
    release: Option<Release>,
    /// How many jobs an undo sends again.
    undone: Option<String>,
    is_too_large: bool,
}

/// Jobs that become due over time.
struct Release {
    due: u64,
    shown: String,
    until: Moment,
    is_over: bool,
}

pub(crate) async fn page(
    State(app): State<App>,
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, PageError> {
    let found = app.operations().get(&id, &visitor.tenants());
    let operation = found.ok_or_else(|| {
        let detail = "this node does not know the operation: it ran on another node, or before a restart. The audit has what it did";
        PageError::new(crate::http::ProblemKind::NotFound, detail)
    })?;
    let release = release(&operation, app.now());
    let is_running = operation.status == Status::Running;
    let is_moving = is_running || release.as_ref().is_some_and(|release| !release.is_over);
    let live = if is_moving { format!("/operations/{id}") } else { String::new() };
    let here = if operation.what.contains("dead letter") { "dead-letters" } else { "jobs" };
    let frame = Frame::new(&app, &visitor, here, "Operation").live(live);
    let fault = match &operation.status {
        Status::Failed(fault) => Some(fault.clone()),
        Status::Running | Status::Done => None,
    };
    let of = operation.expected.filter(|expected| *expected >= operation.done && is_running);
    let (done, skipped) = (show::number(operation.done), operation.skipped);
    let (undone, is_too_large) = match &operation.undo {
        Undo::Jobs(ids) if !is_running && !ids.is_empty() => (Some(show::number(ids.len() as u64)), false),
        Undo::TooMany => (None, true),
        Undo::Jobs(_) | Undo::No => (None, false),
    };
    render(&Page { frame, is_running, fault, done, skipped, of, release, undone, is_too_large, operation })
}

/// Sends the jobs again that the operation ended.
pub(crate) async fn undo(
    State(app): State<App>,
    Path(id): Path<String>,
    Action { visitor, .. }: Action,
) -> Result<Response, PageError> {
    let (what, ids) = app.operations().take_undo(&id, &visitor.tenants())?;
    let words = format!("undo of: {what}");
    let started = Started::new(words.clone(), &visitor, Some(ids.len() as u64)).back("/jobs", "To the jobs");
    let id = app.operations().start(&app, &visitor, started, Work::Undo { ids, words })?;
    Ok(Redirect::to(&format!("{}/operations/{id}", app.base_path())).into_response())
}

fn release(operation: &Operation, now: Timestamp) -> Option<Release> {
    let until = operation.last_due.filter(|_| operation.status != Status::Running)?;
    let whole = until.since(operation.started_at).get();
    if whole < 1000 {
        return None;
    }
    let passed = now.since(operation.started_at).get().min(whole);
    let due = operation.done * passed / whole;
    Some(Release { due, shown: show::number(due), until: Moment::new(until, now), is_over: now >= until })
}
