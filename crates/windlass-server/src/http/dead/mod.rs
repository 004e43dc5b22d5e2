//! Dead letters: failed jobs that await manual action. List, group, show, replay and discard them.

mod bulk;

use super::app::App;
use super::auth::{May, Read};
use super::deliveries::{self, JobWithDeliveries};
use super::input::query::{MAX_LIMIT, Query};
use super::jobs::{Id, filter};
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use super::output::view::{AttemptView, JobView};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::{DeadGroup, JobFilter};

/// The default number of groups shown.
const DEFAULT_GROUPS: u32 = 50;
/// Attempts shown with a dead letter.
const SHOWN_ATTEMPTS: u32 = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(bulk::replay))
        .routes(routes!(bulk::discard))
}

/// Dead letters with similar failures.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroup)]
pub(crate) struct GroupView {
    fingerprint: String,
    tenant_id: String,
    queue: String,
    kind: String,
    error_class: String,
    /// The message without the parts that differ between them.
    message: String,
    count: u64,
    first_seen: String,
    last_seen: String,
    /// The latest of them.
    example_id: i64,
}

/// A page of dead letters; with `group`, the groups.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = DeadLetterList)]
#[expect(dead_code, reason = "documents what `list` answers")]
pub(crate) enum JobsOrGroups {
    /// Single jobs.
    Jobs(Listing<JobView>),
    /// Groups of similar failures.
    Groups(Listing<GroupView>),
}

/// A dead letter with its history and its webhook deliveries.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeadLetter {
    #[serde(flatten)]
    job: JobWithDeliveries,
    history: Vec<AttemptView>,
}

/// List dead letters, newest first, or their groups.
#[utoipa::path(get, path = "/api/v1/dead-letters", operation_id = "listDeadLetters", tag = "dead letters",
    params(
        ("group" = Option<bool>, Query, description = "Groups of similar failures, the largest first"),
        ("queue" = Option<String>, Query), ("tenant" = Option<String>, Query), ("kind" = Option<String>, Query),
        ("class" = Option<String>, Query), ("since" = Option<String>, Query),
        ("fingerprint" = Option<String>, Query, description = "The fingerprint of a group"),
        ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query), ("order" = Option<String>, Query)),
    responses((status = 200, body = JobsOrGroups)))]
async fn list(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Response, Problem> {
    query.only(&["group", "queue", "tenant", "kind", "class", "since", "fingerprint", "limit", "cursor", "order"])?;
    let fingerprint = query.text("fingerprint").map(str::to_owned);
    let filter = JobFilter { fingerprint, ..filter(&query, &caller)? };
    let dead = app.windlass().dead_letters().within(&caller.tenants());
    if query.flag("group")? {
        let limit = query.limit(DEFAULT_GROUPS, MAX_LIMIT)?;
        let groups = dead.groups(&filter, limit).await?;
        return Ok(Json(Listing::whole(groups.iter().map(GroupView::from).collect())).into_response());
    }
    let page = query.page()?;
    let jobs = dead.list(&filter, Listing::<JobView>::one_more(page)).await?;
    Ok(Json(Listing::new(&jobs, page, |job| job.id, |job| JobView::from(job))).into_response())
}

/// Show a dead letter with its history.
#[utoipa::path(get, path = "/api/v1/dead-letters/{id}", operation_id = "getDeadLetter", tag = "dead letters", params(("id" = i64, Path)),
    responses((status = 200, body = DeadLetter), (status = 404, body = ProblemBody)))]
async fn get(State(app): State<App>, caller: May<Read>, id: Id) -> Result<Json<DeadLetter>, Problem> {
    let scope = caller.tenants();
    let job = app.windlass().dead_letters().within(&scope).get(id.0).await?;
    let job = job.ok_or_else(|| Problem::not_found("dead letter", id.0))?;
    let attempts = app.windlass().jobs().within(&scope).latest_attempts(id.0, SHOWN_ATTEMPTS).await?;
    let history = attempts.iter().map(|attempt| AttemptView::new(attempt, None)).collect();
    let deliveries = deliveries::of(&app, &scope, &job).await?;
    Ok(Json(DeadLetter { job: JobWithDeliveries { job: JobView::from(&job), deliveries }, history }))
}

impl From<&DeadGroup> for GroupView {
    fn from(group: &DeadGroup) -> Self {
        Self {
            fingerprint: group.fingerprint.clone(),
            tenant_id: group.tenant.to_string(),
            queue: group.queue.to_string(),
            kind: group.kind.to_string(),
            error_class: group.error_class.clone(),
            message: group.message.clone(),
            count: group.count,
            first_seen: group.first_seen.to_string(),
            last_seen: group.last_seen.to_string(),
            example_id: group.example.0,
        }
    }
}
