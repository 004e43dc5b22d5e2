//! Remote workers: take jobs under leases, extend them, tell how attempts ended. Any language can work.

mod answer;
mod claim;
mod held;
mod read;
mod take;

use super::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use held::Leased;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(take::take))
        .routes(routes!(answer::extend))
        .routes(routes!(answer::complete))
        .routes(routes!(answer::fail))
}
