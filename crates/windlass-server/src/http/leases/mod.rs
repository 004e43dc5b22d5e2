//! Remote workers over HTTP: reads requests, passes them to the library's `Remote`, and returns its results.

mod answer;
mod read;
mod take;

use super::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(take::take))
        .routes(routes!(answer::extend))
        .routes(routes!(answer::complete))
        .routes(routes!(answer::fail))
}
