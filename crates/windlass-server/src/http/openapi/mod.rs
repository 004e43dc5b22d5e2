//! The OpenAPI document. The routes give paths and bodies; this folder adds what all of them share: the descriptions
//! of common fields and parameters, the errors that every operation may answer, and schemas with several forms.

mod complete;
mod describe;
pub(crate) mod types;

use serde_json::Value;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};

/// The head of the document; the rest comes from the routes.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Windlass",
        description = "Durable jobs, schedules and webhooks with a retry engine you can read and preview. Errors are \
                       RFC 9457 problem details. Tokens are sent as `Authorization: Bearer wl_…`.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    servers((url = "/", description = "This server")),
    tags(
        (name = "jobs", description = "Enqueue, show, change, cancel and replay jobs."),
        (name = "schedules", description = "Jobs that are enqueued by a cron line or an interval."),
        (name = "queues", description = "Depth, rates and settings of queues."),
        (name = "dead letters", description = "Failed jobs that await manual action."),
        (name = "remote workers", description = "Workers in other processes take jobs under leases and report results."),
        (name = "policies", description = "Retry policies and their previews."),
        (name = "stats", description = "Counts over time."),
        (name = "tenants", description = "Settings of tenants."),
        (name = "fleet", description = "Workers, alerts and the audit log."),
        (name = "events", description = "State changes as they happen."),
        (name = "health", description = "For load balancers and Prometheus."),
    ),
)]
struct Head;

/// The head, to which routers add their routes.
pub(crate) fn head() -> OpenApi {
    Head::openapi()
}

/// The complete document.
pub(crate) fn document(mut routes: OpenApi) -> Value {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("wl_<id>_<secret>").build();
    let components = routes.components.get_or_insert_default();
    components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(bearer).into());
    routes.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
    let mut document = serde_json::to_value(&routes).expect("the document contains only strings");
    complete::complete(&mut document);
    describe::describe(&mut document);
    document
}
