//! Tenants: the webhook of a tenant's jobs that name none, and replacing webhook secrets.

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
use windlass::client::{PolicyFault, RotateFault, SecretOf};
use windlass_core::job::Tenant;
use windlass_core::quota::Quotas;
use windlass_core::signature::Secret;
use windlass_core::signature::rotation::MAX_OVERLAP;
use windlass_core::{JobId, Millis};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get)).routes(routes!(put)).routes(routes!(rotate)).routes(routes!(put_quotas))
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
    /// Until then, calls also carry a signature of each webhook secret that was replaced.
    overlap_until: Option<String>,
    /// The quotas in force: the tenant's own, and the nodes' default where it has none.
    quotas: QuotasView,
}

/// What a tenant may use; an omitted quota has no limit, or the nodes' default.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Quotas)]
pub(crate) struct QuotasView {
    /// The most jobs that wait: due, for later, and for their next attempt. Exact within a second's worth of jobs.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    pub(crate) waiting: Option<u64>,
    /// How many jobs are stored per time on each node, such as `100/s`.
    pub(crate) enqueue_rate: Option<String>,
    /// The most event streams at once on each node.
    #[schema(minimum = 1, maximum = 100_000)]
    pub(crate) streams: Option<u32>,
    /// The most long polls at once on each node.
    #[schema(minimum = 1, maximum = 100_000)]
    pub(crate) long_polls: Option<u32>,
    /// The most calls to URLs at once on each node, within the tenant's share of its HTTP slots. Jobs beyond it wait.
    #[schema(minimum = 1, maximum = 100_000)]
    pub(crate) http_concurrency: Option<u32>,
}

impl From<Quotas> for QuotasView {
    fn from(quotas: Quotas) -> Self {
        let Quotas { waiting, enqueue_rate, streams, long_polls, http_concurrency } = quotas;
        let enqueue_rate = enqueue_rate.map(|rate| rate.to_string());
        Self { waiting, enqueue_rate, streams, long_polls, http_concurrency }
    }
}

/// Which webhook secret is replaced, and by what. At most one of `jobId`, `scheduleId` and `from`; without them, the
/// secret of the tenant's own webhook is replaced.
#[derive(Debug, ToSchema)]
#[schema(as = SecretRotation)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "documents what `rotate` accepts")]
pub(crate) struct RotationBody {
    /// The secret of this job's webhook, or of its own signed call.
    job_id: Option<i64>,
    /// The secret of this schedule's jobs.
    schedule_id: Option<i64>,
    /// This secret, `whsec_…`.
    from: Option<String>,
    /// The new secret, `whsec_` and 24 to 64 bytes in base64. One is drawn if you give none.
    secret: Option<String>,
    /// How long the old secret signs too, such as `24h` (the default); at most 90 days.
    #[schema(value_type = Option<String>)]
    overlap: Option<String>,
}

/// The result of replacing a webhook secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SecretRotated)]
pub(crate) struct RotatedView {
    tenant_id: String,
    /// The new secret. It is shown this once.
    secret: String,
    /// Until then, calls also carry a signature of the old secret.
    overlap_until: String,
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
    let tenants = app.windlass().tenants();
    let (webhook, until) = (tenants.webhook(tenant).await?, tenants.overlap_until(tenant).await?);
    let overlap_until = until.map(|until| until.to_string());
    let webhook = webhook.as_ref().map(WebhookView::from);
    let quotas = tenants.quotas(tenant).await?.into();
    Ok(Json(TenantView { tenant_id: tenant.to_string(), webhook, overlap_until, quotas }))
}

/// Set a tenant's own quotas.
///
/// The body replaces all of them; `{}` returns to the nodes' default. Needs a token for all tenants.
#[utoipa::path(put, path = "/api/v1/tenants/{tenant}/quotas", operation_id = "setTenantQuotas", tag = "tenants",
    params(("tenant" = String, Path)), request_body = QuotasView,
    responses((status = 200, body = TenantView), (status = 404, body = ProblemBody), (status = 422, body = ProblemBody)))]
async fn put_quotas(
    State(app): State<App>,
    caller: May<Admin>,
    path: Owner,
    body: Body,
) -> Result<Json<TenantView>, Problem> {
    caller.for_all_tenants()?;
    let tenant = path.visible_to(&caller)?;
    let value: serde_json::Value = serde_json::from_str(body.json()?.get()).unwrap_or_default();
    let quotas = Quotas::from_value(&value).map_err(|error| Problem::field(error.pointer, error.message))?;
    let own = (quotas != Quotas::default()).then_some(quotas);
    app.windlass().tenants().by(&caller.by).set_quotas(&tenant, own).await?;
    show(&app, &tenant).await
}

/// Replace a webhook secret.
///
/// Until the overlap ends, calls carry two signatures: of the new secret and of the old one. Everything of the tenant
/// that was stored with the old secret follows: waiting jobs, deliveries and schedules.
#[utoipa::path(post, path = "/api/v1/tenants/{tenant}/webhook/rotate", operation_id = "rotateWebhookSecret", tag = "tenants",
    params(("tenant" = String, Path)), request_body = RotationBody,
    responses((status = 200, body = RotatedView), (status = 404, body = ProblemBody), (status = 409, body = ProblemBody),
        (status = 422, body = ProblemBody)))]
async fn rotate(
    State(app): State<App>,
    caller: May<Admin>,
    path: Owner,
    body: Body,
) -> Result<Json<RotatedView>, Problem> {
    let tenant = path.visible_to(&caller)?;
    let Wanted { of, secret, overlap } = wanted(&body)?;
    let tenants = app.windlass().tenants().by(&caller.by);
    match tenants.rotate_secret(&tenant, of, secret.as_deref(), overlap).await {
        Ok(rotated) => Ok(Json(RotatedView {
            tenant_id: tenant.to_string(),
            secret: rotated.secret,
            overlap_until: rotated.until.to_string(),
        })),
        Err(RotateFault::NoJob(id)) => Err(Problem::not_found("job", id)),
        Err(RotateFault::NoSchedule(id)) => Err(Problem::not_found("schedule", id)),
        Err(RotateFault::Secret(error)) => Err(Problem::field("/secret", error.to_string())),
        Err(RotateFault::Store(error)) => Err(error.into()),
        Err(error) => Err(Problem::conflict(error.to_string())),
    }
}

/// What a body asks to replace.
struct Wanted {
    of: SecretOf,
    secret: Option<String>,
    overlap: Option<Millis>,
}

fn wanted(body: &Body) -> Result<Wanted, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["jobId", "scheduleId", "from", "secret", "overlap"]);
    let id = |name: &str| fields.whole(name, 1..=i64::MAX.unsigned_abs()).map(|id| JobId(id.cast_signed()));
    let from = fields.text("from");
    if let Some(Err(error)) = from.as_deref().map(Secret::parse) {
        fields.fault("from", error.to_string());
    }
    let named = [id("jobId").map(SecretOf::Job), id("scheduleId").map(SecretOf::Schedule), from.map(SecretOf::Text)];
    if named.iter().flatten().count() > 1 {
        faults.add("", "give one of jobId, scheduleId and from");
    }
    let (secret, overlap) = (fields.text("secret"), fields.duration("overlap"));
    if overlap.is_some_and(|overlap| overlap > MAX_OVERLAP) {
        fields.fault("overlap", "may be at most 90 days");
    }
    faults.finish()?;
    let of = named.into_iter().flatten().next().unwrap_or(SecretOf::Tenant);
    Ok(Wanted { of, secret, overlap })
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
