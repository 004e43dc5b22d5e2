//! Workers, alerts and the audit log. Only for callers for all tenants.

use super::app::App;
use super::auth::{Admin, Caller, May, Read};
use super::input::query::{MAX_LIMIT, Query};
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use super::output::view::moment;
use crate::faktory::Signal;
use axum::Json;
use axum::extract::{Path, State};
use hyper::StatusCode;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass_core::Millis;

/// The default number of audit entries shown.
const DEFAULT_AUDIT: u32 = 50;
/// Only workers that reported within this time are shown.
const SEEN_WITHIN: Millis = Millis::from_secs(60);

/// A worker as it last reported itself.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Worker)]
pub(crate) struct WorkerView {
    worker: String,
    host: String,
    version: String,
    /// Queues and how many jobs of each it runs at once.
    queues: BTreeMap<String, u32>,
    running: u32,
    started_at: String,
    seen_at: String,
}

/// The state of an alert rule for one subject.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Alert)]
pub(crate) struct AlertView {
    /// The rule's own name.
    rule: String,
    /// What the rule measures.
    measure: String,
    /// The tenant that was affected most.
    tenant_id: Option<String>,
    /// The queue that was affected most.
    queue: Option<String>,
    subject: String,
    /// pending, firing or resolved
    status: &'static str,
    incident: i64,
    since: String,
    fired_at: Option<String>,
    resolved_at: Option<String>,
    detail: String,
}

/// An action of an operator: replayed, discarded, paused, ….
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Audit)]
pub(crate) struct AuditView {
    at: String,
    /// The token's name and id, or the way the action was done without a token.
    by: String,
    action: String,
    /// How many jobs or queues the action changed.
    count: u64,
    detail: String,
}

/// Actions of operators, newest first.
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "listAudit", tag = "fleet", params(("limit" = Option<u32>, Query)),
    responses((status = 200, body = Listing<AuditView>)))]
pub(crate) async fn audit(
    State(app): State<App>,
    caller: May<Read>,
    query: Query,
) -> Result<Json<Listing<AuditView>>, Problem> {
    caller.for_all_tenants()?;
    query.only(&["limit"])?;
    let lines = app.windlass().audit().latest(query.limit(DEFAULT_AUDIT, MAX_LIMIT)?).await?;
    let view = |line: windlass::client::Audit| AuditView {
        at: line.at.to_string(),
        by: line.by,
        action: line.action,
        count: line.count,
        detail: line.detail,
    };
    Ok(Json(Listing::whole(lines.into_iter().map(view).collect())))
}

/// Workers that reported within the last minute.
#[utoipa::path(get, path = "/api/v1/workers", operation_id = "listWorkers", tag = "fleet", responses((status = 200, body = Listing<WorkerView>)))]
pub(crate) async fn workers(State(app): State<App>, caller: May<Read>) -> Result<Json<Listing<WorkerView>>, Problem> {
    caller.for_all_tenants()?;
    let seen = app.windlass().workers().seen_within(SEEN_WITHIN).await?;
    let view = |report: windlass::client::WorkerReport| WorkerView {
        worker: report.worker.to_string(),
        host: report.host,
        version: report.version,
        queues: report.queues.into_iter().collect(),
        running: report.running,
        started_at: report.started_at.to_string(),
        seen_at: report.seen_at.to_string(),
    };
    Ok(Json(Listing::whole(seen.into_iter().map(view).collect())))
}

/// A worker connected to this node by the Faktory protocol.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FaktoryWorker)]
pub(crate) struct FaktoryWorkerView {
    /// The name that the worker gave itself.
    wid: String,
    /// The machine that the worker says it runs on.
    hostname: String,
    /// What the worker says about itself.
    labels: Vec<String>,
    seen_at: String,
    /// `quiet` or `terminate` if that was asked of it; null otherwise.
    signal: Option<&'static str>,
}

/// Workers connected to this node by the Faktory protocol.
#[utoipa::path(get, path = "/api/v1/faktory/workers", operation_id = "listFaktoryWorkers", tag = "fleet",
    responses((status = 200, body = Listing<FaktoryWorkerView>)))]
pub(crate) async fn faktory_workers(
    State(app): State<App>,
    caller: May<Read>,
) -> Result<Json<Listing<FaktoryWorkerView>>, Problem> {
    caller.for_all_tenants()?;
    let view = |worker: crate::faktory::Connected| FaktoryWorkerView {
        wid: worker.wid,
        hostname: worker.hostname,
        labels: worker.labels,
        seen_at: worker.seen_at.to_string(),
        signal: worker.signal.map(Signal::as_str),
    };
    Ok(Json(Listing::whole(app.faktory().list(app.now()).into_iter().map(view).collect())))
}

/// Ask a Faktory worker to fetch no more jobs. It learns it with its next heartbeat.
#[utoipa::path(post, path = "/api/v1/faktory/workers/{wid}/quiet", operation_id = "quietFaktoryWorker", tag = "fleet",
    params(("wid" = String, Path)), responses((status = 202), (status = 404, body = ProblemBody)))]
pub(crate) async fn quiet(
    State(app): State<App>,
    caller: May<Admin>,
    path: Path<String>,
) -> Result<StatusCode, Problem> {
    signal(&app, &caller, &path.0, Signal::Quiet)
}

/// Ask a Faktory worker to stop. It learns it with its next heartbeat.
#[utoipa::path(post, path = "/api/v1/faktory/workers/{wid}/terminate", operation_id = "terminateFaktoryWorker",
    tag = "fleet", params(("wid" = String, Path)), responses((status = 202), (status = 404, body = ProblemBody)))]
pub(crate) async fn terminate(
    State(app): State<App>,
    caller: May<Admin>,
    path: Path<String>,
) -> Result<StatusCode, Problem> {
    signal(&app, &caller, &path.0, Signal::Terminate)
}

fn signal(app: &App, caller: &Caller, wid: &str, signal: Signal) -> Result<StatusCode, Problem> {
    caller.for_all_tenants()?;
    if app.faktory().signal(wid, signal, app.now()) {
        Ok(StatusCode::ACCEPTED)
    } else {
        Err(Problem::not_found("connected worker", wid.chars().take(60).collect::<String>()))
    }
}

/// Alerts: pending, firing and resolved.
#[utoipa::path(get, path = "/api/v1/alerts", operation_id = "listAlerts", tag = "fleet", responses((status = 200, body = Listing<AlertView>)))]
pub(crate) async fn alerts(State(app): State<App>, caller: May<Read>) -> Result<Json<Listing<AlertView>>, Problem> {
    caller.for_all_tenants()?;
    let alerts = app.windlass().alerts().list().await?;
    let view = |alert: windlass::client::Alert| AlertView {
        rule: alert.rule,
        measure: alert.measure,
        tenant_id: Some(alert.tenant).filter(|name| !name.is_empty()),
        queue: Some(alert.queue).filter(|name| !name.is_empty()),
        subject: alert.subject,
        status: alert.status.as_str(),
        incident: alert.incident,
        since: alert.since.to_string(),
        fired_at: moment(alert.fired_at),
        resolved_at: moment(alert.resolved_at),
        detail: alert.detail,
    };
    Ok(Json(Listing::whole(alerts.into_iter().map(view).collect())))
}
