//! Queues: how full they are, their policy and retention; pause, resume and purge.

mod actions;
mod settings;
mod view;

use super::app::App;
use super::auth::{Caller, May, Read};
use super::input::query::Query;
use super::output::page::Listing;
use super::output::problem::Problem;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use hyper::http::request::Parts;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use view::QueueView;
use windlass::client::Scope;
use windlass_core::job::{QueueName, Tenant};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(settings::put))
        .routes(routes!(actions::pause))
        .routes(routes!(actions::resume))
        .routes(routes!(actions::purge))
}

/// List queues: depth, the oldest due job, rates of the last 5 minutes, and settings.
#[utoipa::path(get, path = "/api/v1/queues", operation_id = "listQueues", tag = "queues", params(("tenant" = Option<String>, Query)),
    responses((status = 200, body = Listing<QueueView>)))]
async fn list(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Listing<QueueView>>, Problem> {
    query.only(&["tenant"])?;
    let tenant = caller.narrowed(query.parsed("tenant", Tenant::new)?)?;
    let scope = tenant.map_or_else(|| caller.tenants(), Scope::Tenant);
    view::all(&app, &scope).await.map(|queues| Json(Listing::whole(queues)))
}

/// The `{name}` of a path.
#[derive(Debug)]
pub(crate) struct Name(pub(crate) QueueName);

impl FromRequestParts<App> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        let text = path.map_or_else(|_| String::new(), |axum::extract::Path(text)| text);
        QueueName::new(&text)
            .map(Name)
            .map_err(|_| Problem::not_found("queue", text.chars().take(60).collect::<String>()))
    }
}

/// The tenant whose queue an action applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Whose {
    Of(Tenant),
    /// `*` means the queues with this name of all tenants; only for callers for all tenants.
    Everyones,
}

impl Whose {
    fn scope(&self) -> Scope {
        match self {
            Self::Of(tenant) => Scope::Tenant(tenant.clone()),
            Self::Everyones => Scope::All,
        }
    }
}

fn whose(query: &Query, caller: &Caller) -> Result<Whose, Problem> {
    if query.text("tenant") == Some("*") {
        return caller.for_all_tenants().map(|()| Whose::Everyones);
    }
    caller.tenant(query.parsed("tenant", Tenant::new)?).map(Whose::Of)
}
