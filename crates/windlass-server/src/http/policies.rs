//! Policies: the presets and the operator's own, and what any policy would do.

use super::app::App;
use super::auth::{May, Read};
use super::input::body::Body;
use super::input::fields::{Faults, Fields};
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::catalogue::Catalogue;
use windlass_core::policy::{PRESETS, Partial, Role};
use windlass_core::preview::MAX_PREVIEW;
use windlass_core::{Policy, explain, preview};

/// The most retries shown of a policy that allows more, unless more are asked for.
const SHOWN: u32 = 20;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(preview_one))
}

/// A named policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NamedPolicy)]
pub(crate) struct PolicyView {
    name: String,
    /// What it is for; of presets.
    purpose: Option<&'static str>,
    preset: bool,
    /// The whole policy in one line.
    line: String,
    /// In words.
    explained: String,
    #[schema(value_type = Object)]
    policy: Value,
}

/// A policy to preview: a name, line or object; and how many retries to show.
#[derive(Debug, ToSchema)]
#[schema(as = PolicyPreviewRequest, example = json!({"policy": "full-jitter", "count": 5}))]
#[expect(dead_code, reason = "documents what `preview_one` accepts")]
pub(crate) struct PreviewBody {
    #[schema(value_type = Object)]
    policy: Value,
    /// 0 to 1000; the policy's own number of retries if absent.
    count: Option<u32>,
}

/// The retries of a policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyPreview)]
pub(crate) struct PreviewView {
    #[schema(value_type = Object)]
    policy: Value,
    /// `{retry, delayMs (before jitter), minMs, maxMs, totalMs}`
    #[schema(value_type = Vec<Object>)]
    delays: Value,
    explained: String,
}

/// List policies: presets, and the operator's own.
#[utoipa::path(get, path = "/api/v1/policies", tag = "policies", responses((status = 200, body = Listing<PolicyView>)))]
async fn list(State(app): State<App>, _caller: May<Read>) -> Result<Json<Listing<PolicyView>>, Problem> {
    let catalogue = app.catalogue().await?;
    let presets = PRESETS.iter().map(|preset| preset.name.to_owned());
    let mut own: Vec<String> = catalogue.own_policies().map(|(name, _)| name.to_owned()).collect();
    own.sort();
    own.retain(|name| !PRESETS.iter().any(|preset| preset.name == name));
    Ok(Json(Listing::whole(presets.chain(own).filter_map(|name| view(&catalogue, &name)).collect())))
}

/// Look at one policy.
#[utoipa::path(get, path = "/api/v1/policies/{name}", tag = "policies", params(("name" = String, Path)),
    responses((status = 200, body = PolicyView), (status = 404, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    _caller: May<Read>,
    Path(name): Path<String>,
) -> Result<Json<PolicyView>, Problem> {
    let catalogue = app.catalogue().await?;
    let shown: String = name.chars().take(60).collect();
    view(&catalogue, &name).map(Json).ok_or_else(|| Problem::not_found("policy", shown))
}

/// What a policy would do: the delays, their jitter windows and totals.
#[utoipa::path(post, path = "/api/v1/policies/preview", tag = "policies", request_body = PreviewBody,
    responses((status = 200, body = PreviewView), (status = 422, body = ProblemBody)))]
async fn preview_one(State(app): State<App>, _caller: May<Read>, body: Body) -> Result<Json<PreviewView>, Problem> {
    let catalogue = app.catalogue().await?;
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["policy", "count"]);
    let count = fields.whole("count", 0..=u64::from(MAX_PREVIEW));
    let value = fields.needed("policy", fields.value("policy"), "a policy's name, line or object");
    let policy = value.as_ref().and_then(|value| {
        let whole = catalogue.read(value).and_then(|own| complete(&own));
        whole.map_err(|error| fault(&fields, value, &error)).ok()
    });
    faults.finish()?;
    let policy = policy.ok_or_else(|| faults.problem())?;
    let count = count.map_or_else(|| policy.max_retries.min(SHOWN), |n| n as u32);
    let shown = preview(&policy, count).to_json(&policy);
    let delays = shown.get("delays").cloned().unwrap_or_default();
    Ok(Json(PreviewView { policy: policy.to_json(), delays, explained: explain(&policy) }))
}

fn fault(fields: &Fields<'_>, value: &Value, error: &windlass_core::PolicyError) {
    let at = fields.pointer("policy");
    let pointer = if error.field.is_empty() || value.is_string() { at } else { format!("{at}/{}", error.field) };
    fields.faults().add(pointer, error.to_string());
}

fn complete(own: &Partial) -> Result<Policy, windlass_core::PolicyError> {
    let levels = [own.clone(), Role::Handler.default_policy()];
    Partial::resolve(&levels, &Role::Handler.default_give_up_on())
}

fn view(catalogue: &Catalogue, name: &str) -> Option<PolicyView> {
    let policy = complete(&catalogue.named(name)?).ok()?;
    let preset = PRESETS.iter().find(|preset| preset.name == name);
    Some(PolicyView {
        name: name.to_owned(),
        purpose: preset.map(|preset| preset.purpose),
        preset: preset.is_some(),
        line: policy.to_string(),
        explained: explain(&policy),
        policy: policy.to_json(),
    })
}
