//! The HTTP API: translates requests into calls of the library and results into JSON. It contains no rules.

mod app;
mod auth;
mod cached;
pub(crate) mod connection;
mod dead;
mod deliveries;
mod events;
mod fleet;
mod health;
mod input;
mod jobs;
mod leases;
mod output;
mod pages;
mod policies;
mod queues;
mod schedules;
mod stats;
#[cfg(test)]
mod tests;

pub(crate) use app::{Access, App};
pub(crate) use auth::{Caller, Scope};

use axum::Router;
use axum::routing::get;
use pages::Reference;
use utoipa::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The head of the OpenAPI document; the rest comes from the routes.
#[derive(OpenApi)]
#[openapi(info(
    title = "Windlass",
    description = "Durable jobs, schedules and webhooks with a retry engine you can read and preview. Errors are RFC 9457 \
                   problem details. Tokens are sent as `Authorization: Bearer wl_…`."
))]
struct Document;

/// All routes with their layers.
pub(crate) fn router(app: App) -> Router {
    let (router, mut document) = routes().split_for_parts();
    secure(&mut document);
    let text = document.to_json().expect("the document contains only strings");
    let reference = Reference::new(text);
    let page = reference.clone();
    let router = router
        .route("/openapi.json", get(async move || reference.json()))
        .route("/docs", get(async move || page.page()))
        .route("/", get(pages::status));
    connection::layers::around(router, app)
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Document::openapi())
        .merge(jobs::router())
        .merge(schedules::router())
        .merge(queues::router())
        .merge(dead::router())
        .merge(leases::router())
        .merge(policies::router())
        .routes(routes!(stats::stats))
        .routes(routes!(fleet::workers))
        .routes(routes!(fleet::alerts))
        .routes(routes!(fleet::audit))
        .routes(routes!(events::events))
        .routes(routes!(health::healthz))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
}

fn secure(document: &mut utoipa::openapi::OpenApi) {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("wl_<id>_<secret>").build();
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(bearer).into());
    document.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
}
