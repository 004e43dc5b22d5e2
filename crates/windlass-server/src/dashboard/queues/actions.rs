//! Pause, resume, purge and change a queue.

use super::find;
use crate::dashboard::error::PageError;
use crate::dashboard::form::Action;
use crate::dashboard::frame::back;
use crate::dashboard::operations::{Started, Work};
use crate::http::App;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use serde_json::Value;
use windlass::client::{Keep, QueueSettings, Scope};
use windlass_core::RetentionLevel;

type Place = Path<(String, String)>;

pub(super) async fn pause(State(app): State<App>, place: Place, action: Action) -> Result<Response, PageError> {
    set_paused(&app, place, &action, true).await
}

pub(super) async fn resume(State(app): State<App>, place: Place, action: Action) -> Result<Response, PageError> {
    set_paused(&app, place, &action, false).await
}

async fn set_paused(app: &App, place: Place, action: &Action, paused: bool) -> Result<Response, PageError> {
    let Path((tenant, name)) = place;
    let (tenant, name) = find(&action.visitor, &tenant, &name)?;
    let queues = app.windlass().queues().within(&Scope::Tenant(tenant)).by(&action.visitor.caller.by);
    let found = if paused { queues.pause(&name).await? } else { queues.resume(&name).await? };
    if found == 0 {
        return Err(PageError::not_found("queue", &name));
    }
    let done = if paused { format!("{name} is paused.") } else { format!("{name} runs again.") };
    Ok(back(app, "/queues", &done))
}

pub(super) async fn purge(
    State(app): State<App>,
    Path((tenant, name)): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    visitor.need_admin()?;
    let (tenant, queue) = find(&visitor, &tenant, &name)?;
    if form.text("confirm") != Some(queue.as_str()) {
        return Err(PageError::bad(format!("type `{queue}` to confirm the purge")));
    }
    let expected = form.text("expected").and_then(|text| text.parse().ok());
    let started = Started::new(format!("purge the queue {queue} of {tenant}"), &visitor, expected);
    let started = started.back(format!("/queues/{tenant}/{queue}"), "To the queue");
    let mut visitor = visitor;
    visitor.caller = visitor.caller.narrowed_to(tenant);
    let id = app.operations().start(&app, &visitor, started, Work::Purge { queue, cursor: None })?;
    Ok(Redirect::to(&format!("{}/operations/{id}", app.base_path())).into_response())
}

pub(super) async fn change(
    State(app): State<App>,
    Path((tenant, name)): Place,
    Action { visitor, form }: Action,
) -> Result<Response, PageError> {
    visitor.need_admin()?;
    let (tenant, name) = find(&visitor, &tenant, &name)?;
    let keep =
        |field: &str| form.parsed(field, |text| Keep::parse(text).ok_or("must be a duration such as 7d, 0 or forever"));
    let path = format!("/queues/{tenant}/{name}");
    let queues = app.windlass().queues().within(&Scope::Tenant(tenant)).by(&visitor.caller.by);
    let settings = QueueSettings {
        policy: form.text("policy").map(policy),
        retention: RetentionLevel {
            succeeded: keep("succeeded")?,
            cancelled: keep("cancelled")?,
            failed: keep("failed")?,
        },
        flow: queues.settings(&name).await?.flow,
    };
    queues.set(&name, &settings).await?;
    Ok(back(&app, &path, "Saved. Jobs that are enqueued from now on follow it; those stored before keep their policy."))
}

/// A name or line as it is; an object of fields as JSON.
fn policy(text: &str) -> Value {
    let object = serde_json::from_str::<Value>(text).ok().filter(Value::is_object);
    object.unwrap_or_else(|| Value::String(text.to_owned()))
}
