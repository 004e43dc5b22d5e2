//! Pause, resume and purge a queue.

use super::{Name, Whose, whose};
use crate::http::app::App;
use crate::http::auth::{Admin, May};
use crate::http::input::query::Query;
use crate::http::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeSet;
use utoipa::ToSchema;
use windlass::store::{Audit, Cancelled, JobFilter, Order, Page, Scope};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{JobId, State as JobState};

/// Jobs cancelled in one commit of a purge.
const PURGE_BATCH: u32 = 1000;

/// The most jobs of a purge with a limit.
const MAX_PURGED: u32 = 100_000;

/// What a pause or resume came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Paused {
    name: String,
    paused: bool,
    /// How many queues of that name there are.
    queues: u64,
}

/// What a purge came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Purged {
    name: String,
    /// Waiting jobs that were cancelled. Running ones are left alone.
    cancelled: u64,
    /// Where to go on; null when nothing is left. Only a purge with a `limit` stops before that.
    next: Option<String>,
}

/// Pause a queue: none of its jobs is started until it is resumed.
#[utoipa::path(post, path = "/api/v1/queues/{name}/pause", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)),
    responses((status = 200, body = Paused), (status = 404, body = ProblemBody)))]
pub(crate) async fn pause(
    State(app): State<App>,
    caller: May<Admin>,
    name: Name,
    query: Query,
) -> Result<Json<Paused>, Problem> {
    query.only(&["tenant"])?;
    set_paused(&app, &caller.by, &name.0, &whose(&query, &caller)?, true).await
}

/// Resume a paused queue.
#[utoipa::path(post, path = "/api/v1/queues/{name}/resume", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)),
    responses((status = 200, body = Paused), (status = 404, body = ProblemBody)))]
pub(crate) async fn resume(
    State(app): State<App>,
    caller: May<Admin>,
    name: Name,
    query: Query,
) -> Result<Json<Paused>, Problem> {
    query.only(&["tenant"])?;
    set_paused(&app, &caller.by, &name.0, &whose(&query, &caller)?, false).await
}

/// Cancel every job of a queue that waits now; or up to `limit` of them, and again from `cursor` on.
#[utoipa::path(post, path = "/api/v1/queues/{name}/purge", tag = "queues",
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
    let begun = query.parsed("cursor", Stretch::read)?;
    let most = query.limit(u32::MAX, MAX_PURGED)?;
    tenants(&app, &name.0, &whose).await?;
    let scope = match whose {
        Whose::Of(tenant) => Scope::Tenant(tenant),
        Whose::Everyones => Scope::All,
    };
    let (cancelled, next) = cancel_waiting(&app, &scope, &name.0, begun, most).await?;
    note(&app, &caller.by, "purge queue", cancelled, &name.0).await?;
    Ok(Json(Purged { name: name.0.to_string(), cancelled, next: next.and_then(Stretch::written) }))
}

/// What a purge is about: waiting jobs after one job, up to another. Producers may be faster than a purge, so it ends with what
/// waited when it began.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    after: Option<JobId>,
    until: JobId,
}

impl Stretch {
    /// Where an earlier purge stopped: `AFTER-UNTIL`.
    fn read(text: &str) -> Result<Self, &'static str> {
        let ids = text.split_once('-').and_then(|(after, until)| Some((after.parse().ok()?, until.parse().ok()?)));
        let (after, until) = ids.ok_or("must be the `next` of an earlier purge")?;
        Ok(Self { after: Some(JobId(after)), until: JobId(until) })
    }

    fn written(self) -> Option<String> {
        self.after.map(|after| format!("{after}-{}", self.until))
    }
}

/// Cancels up to `most` waiting jobs: how many there were, and where to go on if it stopped short.
async fn cancel_waiting(
    app: &App,
    scope: &Scope,
    name: &QueueName,
    begun: Option<Stretch>,
    most: u32,
) -> Result<(u64, Option<Stretch>), Problem> {
    let states = vec![JobState::Queued, JobState::Retrying];
    let filter = JobFilter { states, queue: Some(name.clone()), ..JobFilter::default() };
    let newest = Page { after: None, limit: 1, order: Order::NewestFirst };
    let mut stretch = match begun {
        Some(stretch) => stretch,
        None => match app.store().jobs(scope, &filter, newest).await?.first() {
            Some(job) => Stretch { after: None, until: job.id },
            None => return Ok((0, None)),
        },
    };
    let (mut cancelled, mut left) = (0, most);
    while left > 0 {
        let page = Page { after: stretch.after, limit: PURGE_BATCH.min(left), order: Order::OldestFirst };
        let mut ids: Vec<JobId> = app.store().jobs(scope, &filter, page).await?.iter().map(|job| job.id).collect();
        ids.retain(|id| *id <= stretch.until);
        let Some(last) = ids.last().copied() else { return Ok((cancelled, None)) };
        left = left.saturating_sub(u32::try_from(ids.len()).unwrap_or(u32::MAX));
        let results = app.windlass().cancel_in(scope, ids).await?;
        cancelled += results.iter().filter(|result| **result == Cancelled::Now).count() as u64;
        stretch.after = Some(last);
    }
    Ok((cancelled, Some(stretch)))
}

async fn set_paused(
    app: &App,
    by: &str,
    name: &QueueName,
    whose: &Whose,
    paused: bool,
) -> Result<Json<Paused>, Problem> {
    let mut queues = 0;
    for tenant in tenants(app, name, whose).await? {
        queues += app.store().pause_queue(&tenant, name, paused).await?;
    }
    note(app, by, if paused { "pause queue" } else { "resume queue" }, queues, name).await?;
    Ok(Json(Paused { name: name.to_string(), paused, queues }))
}

/// The tenants that have such a queue.
async fn tenants(app: &App, name: &QueueName, whose: &Whose) -> Result<BTreeSet<Tenant>, Problem> {
    let queues = app.store().queues().await?;
    let is_meant = |tenant: &Tenant| match whose {
        Whose::Of(own) => own == tenant,
        Whose::Everyones => true,
    };
    let tenants: BTreeSet<Tenant> =
        queues.into_iter().filter(|q| q.name == *name && is_meant(&q.tenant)).map(|q| q.tenant).collect();
    if tenants.is_empty() { Err(Problem::not_found("queue", name)) } else { Ok(tenants) }
}

async fn note(app: &App, by: &str, action: &str, count: u64, name: &QueueName) -> Result<(), Problem> {
    let audit = Audit { at: app.now(), by: by.into(), action: action.into(), count, detail: format!("queue {name}") };
    Ok(app.store().audit(&audit).await?)
}
