//! Health checks: whether the server is alive, and whether it is ready.

use super::app::App;
use super::auth::{May, Read};
use super::output::problem::{Kind, Problem, ProblemBody};
use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::CONTENT_TYPE;
use serde::Serialize;
use utoipa::ToSchema;

/// The server's state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    status: &'static str,
    version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The process is alive.
#[utoipa::path(get, path = "/healthz", operation_id = "getHealth", tag = "health", responses((status = 200, body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION"), store: None, warnings: Vec::new() })
}

/// What a server answers that waits for its database: it is alive, and refuses everything else.
pub(crate) fn waiting() -> Router {
    Router::new().fallback(async |request: Request| {
        let path = request.uri().path();
        if path.ends_with("/healthz") {
            return healthz().await.into_response();
        }
        let detail = "the server waits for its database; nothing was changed; try again later";
        Problem::new(Kind::Unavailable, detail).render(path, "")
    })
}

/// The store can be written to, its schema is current, and the server is not stopping.
#[utoipa::path(get, path = "/readyz", operation_id = "getReadiness", tag = "health",
    responses((status = 200, body = Health), (status = 503, body = ProblemBody)))]
pub(crate) async fn readyz(State(app): State<App>) -> Result<Json<Health>, Problem> {
    if app.draining().is_cancelled() {
        return Err(Problem::new(Kind::Draining, "the server accepts no new work"));
    }
    let health = app.health().await.map_err(Problem::not_ready)?;
    Ok(Json(Health {
        status: "ready",
        version: env!("CARGO_PKG_VERSION"),
        store: Some(health.engine.clone()),
        warnings: health.warnings.clone(),
    }))
}

/// Metrics for Prometheus.
#[utoipa::path(get, path = "/metrics", operation_id = "getMetrics", tag = "health",
    responses((status = 200, content_type = "application/openmetrics-text", body = String)))]
pub(crate) async fn metrics(State(app): State<App>, caller: May<Read>) -> Result<Response, Problem> {
    caller.for_all_tenants()?;
    let text = app.metrics().encode().await;
    let kind = windlass::Metrics::CONTENT_TYPE;
    Ok(([(CONTENT_TYPE, kind)], text).into_response())
}
