//! What can be done to a schedule. Every change is recorded in the audit.

use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::back;
use crate::dashboard::session::Visitor;
use crate::dashboard::show;
use crate::http::App;
use axum::extract::{Path, State};
use axum::response::Response;
use windlass_core::{Cadence, JobId};

type Place = Path<String>;

fn read(id: &str) -> Result<JobId, PageError> {
    show::id(id).ok_or_else(|| PageError::not_found("schedule", id))
}

async fn record(app: &App, visitor: &Visitor, action: &str, id: JobId, more: &str) -> Result<(), PageError> {
    let detail = format!("schedule {id}{more}");
    Ok(app.windlass().audit().by(&visitor.caller.by).record(action, 1, detail).await?)
}

pub(super) async fn pause(State(app): State<App>, place: Place, action: Action) -> Result<Response, PageError> {
    set_paused(&app, place, &action.visitor, true).await
}

pub(super) async fn resume(State(app): State<App>, place: Place, action: Action) -> Result<Response, PageError> {
    set_paused(&app, place, &action.visitor, false).await
}

async fn set_paused(app: &App, Path(id): Place, visitor: &Visitor, paused: bool) -> Result<Response, PageError> {
    let id = read(&id)?;
    let schedules = app.windlass().schedules().within(&visitor.tenants());
    let changed = if paused { schedules.pause(id).await? } else { schedules.resume(id).await? };
    changed.ok_or_else(|| PageError::not_found("schedule", id))?;
    record(app, visitor, if paused { "pause schedule" } else { "resume schedule" }, id, "").await?;
    let done = if paused { "It is paused and does not fire." } else { "It fires again, from its next time on." };
    Ok(back(app, &format!("/schedules/{id}"), done))
}

pub(super) async fn trigger(State(app): State<App>, Path(id): Place, action: Action) -> Result<Response, PageError> {
    let id = read(&id)?;
    let schedules = app.windlass().schedules().within(&action.visitor.tenants());
    let run = schedules.trigger(id).await?.ok_or_else(|| PageError::not_found("schedule", id))?;
    record(&app, &action.visitor, "trigger schedule", id, &format!(": job {}", run.id)).await?;
    Ok(back(&app, &format!("/jobs/{}", run.id), "The schedule fired; this is its run."))
}

pub(super) async fn change(
    State(app): State<App>,
    Path(id): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    let cron = form.text("cron").ok_or_else(|| PageError::bad("cron: is needed"))?;
    let schedules = app.windlass().schedules().within(&visitor.tenants());
    let mut change = schedules.change(id).cron(cron);
    if let Some(zone) = form.text("zone").filter(|_| Cadence::interval_in(cron).is_none()) {
        change = change.time_zone(zone);
    }
    let changed = change.await?;
    let more = format!(": {} {}", changed.spec.cadence, changed.spec.zone);
    record(&app, &visitor, "change schedule", id, &more).await?;
    Ok(back(&app, &format!("/schedules/{id}"), "Saved."))
}

pub(super) async fn remove(
    State(app): State<App>,
    Path(id): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    let id = read(&id)?;
    if form.text("confirm") != Some("remove") {
        return Err(PageError::bad("type `remove` to confirm"));
    }
    if !app.windlass().schedules().within(&visitor.tenants()).remove(id).await? {
        return Err(PageError::not_found("schedule", id));
    }
    record(&app, &visitor, "remove schedule", id, "").await?;
    Ok(back(&app, "/schedules", &format!("Schedule {id} is removed; its runs stay.")))
}
