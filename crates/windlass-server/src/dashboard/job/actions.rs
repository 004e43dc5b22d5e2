//! What can be done to one job.

use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::back;
use crate::dashboard::jobs::filter::span;
use crate::dashboard::show;
use crate::http::App;
use axum::extract::{Path, State};
use axum::response::Response;
use windlass::client::{Amend, Amended, Cancelled, Discarded, Replayed};
use windlass_core::{JobId, Priority};

/// The longest reason for a discard, in bytes.
pub(crate) const MAX_REASON: usize = 1000;

fn read(id: &str) -> Result<JobId, PageError> {
    show::id(id).ok_or_else(|| PageError::not_found("job", id))
}

pub(super) async fn replay(
    State(app): State<App>,
    Path(id): Path<String>,
    Action { visitor, .. }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    let done = match app.windlass().jobs().within(&visitor.tenants()).by(&visitor.caller.by).replay(id).await? {
        Replayed::Queued => "It is back in its queue.",
        Replayed::AlreadyLive => "It was waiting and is due now.",
        Replayed::Running => "It runs already; nothing was changed.",
        Replayed::NotDead => "It is no dead letter; nothing was changed.",
        Replayed::NotFound => return Err(PageError::not_found("job", id)),
    };
    Ok(back(&app, &format!("/jobs/{id}"), done))
}

pub(super) async fn cancel(
    State(app): State<App>,
    Path(id): Path<String>,
    Action { visitor, .. }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    let jobs = app.windlass().jobs().within(&visitor.tenants()).by(&visitor.caller.by);
    let done = match jobs.cancel(id).await? {
        Cancelled::Now => "It is cancelled.",
        Cancelled::Requested => "It runs and was asked to stop.",
        Cancelled::Finished(_) => "It had already finished; nothing was changed.",
        Cancelled::NotFound => return Err(PageError::not_found("job", id)),
    };
    app.windlass().audit().by(&visitor.caller.by).record("cancel", 1, &format!("job {id}")).await?;
    Ok(back(&app, &format!("/jobs/{id}"), done))
}

pub(super) async fn discard(
    State(app): State<App>,
    Path(id): Path<String>,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    let reason = form.text("reason").unwrap_or("discarded on its page");
    if reason.len() > MAX_REASON {
        return Err(PageError::bad(format!("reason: must be at most {MAX_REASON} bytes")));
    }
    let dead = app.windlass().dead_letters().within(&visitor.tenants()).by(&visitor.caller.by);
    let done = match dead.discard_ids(vec![id], reason).await?.pop() {
        Some(Discarded::Done) => "It is discarded. A replay brings it back.",
        Some(Discarded::NotDead) => "It is no dead letter; nothing was changed.",
        Some(Discarded::NotFound) | None => return Err(PageError::not_found("job", id)),
    };
    Ok(back(&app, &format!("/jobs/{id}"), done))
}

pub(super) async fn reschedule(
    State(app): State<App>,
    Path(id): Path<String>,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    let delay = form.parsed("delay", span)?;
    let priority = form.parsed("priority", |word| Priority::parse(word).ok_or("is not a priority"))?;
    let change = Amend { priority, run_at: delay.map(|delay| app.now() + delay) };
    if change == Amend::default() {
        return Err(PageError::bad("give a time, a priority, or both"));
    }
    let done = match app.windlass().jobs().within(&visitor.tenants()).amend(id, change).await? {
        Amended::Done => "It is changed.",
        Amended::NotWaiting(_) => "It no longer waits; nothing was changed.",
        Amended::NotFound => return Err(PageError::not_found("job", id)),
    };
    app.windlass().audit().by(&visitor.caller.by).record("amend", 1, &format!("job {id}")).await?;
    Ok(back(&app, &format!("/jobs/{id}"), done))
}
