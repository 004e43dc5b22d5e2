//! The HTTP API: translates requests into calls of the library and results into JSON. It contains no rules.

mod alerts;
mod app;
mod auth;
mod cached;
pub(crate) mod connection;
mod dead;
mod deliveries;
mod docs;
mod events;
mod fleet;
mod health;
pub(crate) use health::waiting;
mod holds;
mod input;
mod jobs;
mod kinds;
mod leases;
mod openapi;
mod output;
mod policies;
mod queues;
mod schedules;
mod shares;
mod stats;
mod tenants;
#[cfg(test)]
mod tests;

pub(crate) use app::{Access, App, Place};
pub(crate) use auth::{Caller, Scope};
pub(crate) use input::query::Query;
pub(crate) use output::problem::{Kind as ProblemKind, Problem};

use axum::Router;
use axum::routing::get;
use docs::Reference;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes with their layers.
pub(crate) fn router(app: App) -> Router {
    let (router, document) = routes().split_for_parts();
    let reference = Reference::new(openapi::document(document));
    let page = reference.clone();
    let router = router
        .route("/openapi.json", get(async move || reference.json()))
        .route("/docs", get(async move |query| page.page(&query)))
        .merge(crate::dashboard::router(&app));
    connection::layers::around(router, app)
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::head())
        .merge(jobs::router())
        .merge(schedules::router())
        .merge(queues::router())
        .merge(holds::router())
        .merge(dead::router())
        .merge(leases::router())
        .merge(policies::router())
        .merge(kinds::router())
        .merge(tenants::router())
        .merge(alerts::router())
        .routes(routes!(stats::stats))
        .routes(routes!(fleet::workers))
        .routes(routes!(fleet::faktory_workers))
        .routes(routes!(fleet::quiet))
        .routes(routes!(fleet::terminate))
        .routes(routes!(fleet::alerts))
        .routes(routes!(fleet::audit))
        .routes(routes!(events::events))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}
