//! Remote workers over HTTP: requests are read, handed to the library's `Remote`, and its answers shown.

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
