//! Pause, resume and purge a queue.

use super::{Name, Whose, whose};
use crate::http::app::App;
use crate::http::auth::{Admin, Manage, May};
use crate::http::input::query::Query;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use windlass::client::PurgeCursor;
use windlass_core::job::QueueName;

/// The largest limit of a purge.
const MAX_PURGED: u32 = 100_000;

/// The result of a pause or resume.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Paused {
    name: String,
    paused: bool,
    /// How many queues have this name.
    queues: u64,
}

/// The result of a purge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Purged {
    name: String,
    /// Waiting jobs that were cancelled. Running jobs continue.
    cancelled: u64,
    /// Where to continue; null when nothing is left. Only a purge with a `limit` can leave jobs.
    next: Option<String>,
}

/// Pause a queue: none of its jobs start until it is resumed.
#[utoipa::path(post, path = "/api/v1/queues/{name}/pause", operation_id = "pauseQueue", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)),
    responses((status = 200, body = Paused), (status = 404, body = ProblemBody)))]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: May<Manage>,
    name: Name,
    query: Query,
) -> Result<Json<Paused>, Problem> {
    query.only(&["tenant"])?;
    set_paused(&app, &caller.by, &name.0, &whose(&query, &caller)?, true).await
}

/// Resume a paused queue.
#[utoipa::path(post, path = "/api/v1/queues/{name}/resume", operation_id = "resumeQueue", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)),
    responses((status = 200, body = Paused), (status = 404, body = ProblemBody)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: May<Manage>,
    name: Name,
    query: Query,
) -> Result<Json<Paused>, Problem> {
    query.only(&["tenant"])?;
    set_paused(&app, &caller.by, &name.0, &whose(&query, &caller)?, false).await
}

/// Cancel all waiting jobs of a queue, or up to `limit` of them; continue with `cursor`.
#[utoipa::path(post, path = "/api/v1/queues/{name}/purge", operation_id = "purgeQueue", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query), ("limit" = Option<u32>, Query),
        ("cursor" = Option<String>, Query)),
    responses((status = 200, body = Purged), (status = 404, body = ProblemBody)))]
pub(crate) async fn purge(
    State(app): State<App>,
    caller: May<Admin>,
    name: Name,
    query: Query,
) -> Result<Json<Purged>, Problem> {
    query.only(&["tenant", "limit", "cursor"])?;
    let whose = whose(&query, &caller)?;
    let begun = query.parsed("cursor", str::parse::<PurgeCursor>)?;
    let most = query.limit(u32::MAX, MAX_PURGED)?;
    let queues = app.windlass().queues().within(&whose.scope()).by(&caller.by);
    if !queues.exists(&name.0).await? {
        return Err(Problem::not_found("queue", &name.0));
    }
    let purged = queues.purge_some(&name.0, most, begun).await?;
    let next = purged.next.map(|cursor| cursor.to_string());
    Ok(Json(Purged { name: name.0.to_string(), cancelled: purged.cancelled, next }))
}

async fn set_paused(
    app: &App,
    by: &str,
    name: &QueueName,
    whose: &Whose,
    paused: bool,
) -> Result<Json<Paused>, Problem> {
    let handle = app.windlass().queues().within(&whose.scope()).by(by);
    let queues = if paused { handle.pause(name).await? } else { handle.resume(name).await? };
    if queues == 0 {
        return Err(Problem::not_found("queue", name));
    }
    Ok(Json(Paused { name: name.to_string(), paused, queues }))
}
