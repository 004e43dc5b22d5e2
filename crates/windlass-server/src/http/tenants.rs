//! Tenants: the webhook of a tenant's jobs that name none.

use super::app::App;
use super::auth::{Admin, Caller, May, Read};
use super::input::body::Body;
use super::input::fields::{Faults, Fields};
use super::output::problem::{Problem, ProblemBody};
use super::output::view::WebhookView;
use axum::Json;
use axum::extract::{FromRequestParts, State};
use hyper::http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::PolicyFault;
use windlass_core::job::Tenant;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(put))
}

/// A tenant's settings. An omitted setting returns to what the nodes' files say.
#[derive(Debug, ToSchema)]
#[schema(as = TenantSettings)]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct TenantBody {
    /// The webhook of jobs that name none: `{"url","events","secret","policy"}`, or null.
    #[schema(value_type = Option<Object>)]
    webhook: Option<serde_json::Value>,
}

/// A tenant's settings; the webhook's secret is never shown.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Tenant)]
pub(crate) struct TenantView {
    tenant_id: String,
    webhook: Option<WebhookView>,
}

/// Show a tenant's settings.
#[utoipa::path(get, path = "/api/v1/tenants/{tenant}", operation_id = "getTenant", tag = "tenants", params(("tenant" = String, Path)),
    responses((status = 200, body = TenantView), (status = 404, body = ProblemBody)))]
async fn get(State(app): State<App>, caller: May<Read>, path: Owner) -> Result<Json<TenantView>, Problem> {
    show(&app, &path.visible_to(&caller)?).await
}

/// Set a tenant's webhook, for its jobs that name none.
///
/// Jobs that are already stored keep theirs.
#[utoipa::path(put, path = "/api/v1/tenants/{tenant}", operation_id = "setTenant", tag = "tenants", params(("tenant" = String, Path)),
    request_body = TenantBody, responses((status = 200, body = TenantView), (status = 404, body = ProblemBody),
        (status = 422, body = ProblemBody)))]
async fn put(State(app): State<App>, caller: May<Admin>, path: Owner, body: Body) -> Result<Json<TenantView>, Problem> {
    let tenant = path.visible_to(&caller)?;
    let webhook = {
        let faults = Faults::default();
        let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
        fields.refuse_unknown(&["webhook"]);
        let webhook = fields.value("webhook").filter(|webhook| !webhook.is_null());
        faults.finish()?;
        webhook
    };
    match app.windlass().tenants().by(&caller.by).set_webhook(&tenant, webhook.as_ref()).await {
        Ok(()) => show(&app, &tenant).await,
        Err(PolicyFault::Policy(error)) => {
            let faults = Faults::default();
            let field = if error.field.is_empty() { String::new() } else { format!("/{}", error.field) };
            faults.add(format!("/webhook{field}"), error.message);
            Err(faults.problem())
        }
        Err(error @ (PolicyFault::Preset(_) | PolicyFault::Store(_))) => Err(error.into()),
    }
}

async fn show(app: &App, tenant: &Tenant) -> Result<Json<TenantView>, Problem> {
    let webhook = app.windlass().tenants().webhook(tenant).await?;
    Ok(Json(TenantView { tenant_id: tenant.to_string(), webhook: webhook.as_ref().map(WebhookView::from) }))
}

/// The `{tenant}` of a path.
#[derive(Debug)]
struct Owner(String);

impl Owner {
    /// Another tenant does not exist for a caller of one tenant.
    fn visible_to(&self, caller: &Caller) -> Result<Tenant, Problem> {
        let unknown = || Problem::not_found("tenant", self.0.chars().take(60).collect::<String>());
        let tenant = Tenant::new(&self.0).map_err(|_| unknown())?;
        if caller.tenants().covers(&tenant) { Ok(tenant) } else { Err(unknown()) }
    }
}

impl FromRequestParts<App> for Owner {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let path = axum::extract::Path::<String>::from_request_parts(parts, app).await;
        Ok(Self(path.map_or_else(|_| String::new(), |axum::extract::Path(text)| text)))
    }
}
