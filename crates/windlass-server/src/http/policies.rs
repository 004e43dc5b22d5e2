//! Policies: the presets, the operator's own policies, and previews of any policy.

use super::app::App;
use super::auth::{May, Read};
use super::input::body::Body;
use super::input::fields::{Faults, Fields};
use super::openapi::types;
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::{NamedPolicy, PolicyFault};
use windlass_core::preview::MAX_PREVIEW;
use windlass_core::{PolicyError, explain};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(preview_one))
}

/// A named policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NamedPolicy)]
pub(crate) struct PolicyView {
    name: String,
    /// What it is for; only presets have this.
    purpose: Option<&'static str>,
    preset: bool,
    /// The whole policy in one line.
    line: String,
    /// A description in words.
    explained: String,
    #[schema(value_type = types::Policy)]
    policy: Value,
}

/// A policy to preview: a name, line or object; and how many retries to show.
#[derive(Debug, ToSchema)]
#[schema(as = PolicyPreviewRequest, example = json!({"policy": "full-jitter", "count": 5}))]
#[expect(dead_code, reason = "documents what `preview_one` accepts")]
pub(crate) struct PreviewBody {
    /// A policy's name, line or object.
    #[schema(value_type = types::PolicyInput)]
    policy: Value,
    /// 0 to 1000; the policy's own number of retries if absent.
    #[schema(minimum = 0, maximum = 1000)]
    count: Option<u32>,
}

/// The retries of a policy.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PolicyPreview)]
pub(crate) struct PreviewView {
    #[schema(value_type = types::Policy)]
    policy: Value,
    /// The retries, the first one first.
    #[schema(value_type = Vec<types::PreviewedDelay>)]
    delays: Value,
    explained: String,
}

/// List policies: presets, and the operator's own.
#[utoipa::path(get, path = "/api/v1/policies", operation_id = "listPolicies", tag = "policies", responses((status = 200, body = Listing<PolicyView>)))]
async fn list(State(app): State<App>, _caller: May<Read>) -> Result<Json<Listing<PolicyView>>, Problem> {
    let policies = app.windlass().policies().list().await?;
    Ok(Json(Listing::whole(policies.into_iter().map(PolicyView::from).collect())))
}

/// Show one policy.
#[utoipa::path(get, path = "/api/v1/policies/{name}", operation_id = "getPolicy", tag = "policies", params(("name" = String, Path)),
    responses((status = 200, body = PolicyView), (status = 404, body = ProblemBody)))]
async fn get(
    State(app): State<App>,
    _caller: May<Read>,
    Path(name): Path<String>,
) -> Result<Json<PolicyView>, Problem> {
    let policy = app.windlass().policies().get(&name).await?;
    let shown: String = name.chars().take(60).collect();
    policy.map(|policy| Json(policy.into())).ok_or_else(|| Problem::not_found("policy", shown))
}

/// Preview a policy: its delays, their jitter windows and totals.
#[utoipa::path(post, path = "/api/v1/policies/preview", operation_id = "previewPolicy", tag = "policies", request_body = PreviewBody,
    responses((status = 200, body = PreviewView), (status = 422, body = ProblemBody)))]
async fn preview_one(State(app): State<App>, _caller: May<Read>, body: Body) -> Result<Json<PreviewView>, Problem> {
    let faults = Faults::default();
    let (value, count) = read_preview(&body, &faults)?;
    let policy = match value {
        None => None,
        Some(value) => match app.windlass().policies().resolve_json(&value).await {
            Ok(policy) => Some(policy),
            Err(PolicyFault::Policy(error)) => {
                faults.add(policy_pointer(&value, &error), error.to_string());
                None
            }
            Err(error @ (PolicyFault::Preset(_) | PolicyFault::Store(_))) => return Err(error.into()),
        },
    };
    faults.finish()?;
    let policy = policy.ok_or_else(|| faults.problem())?;
    let shown = app.windlass().policies().preview(&policy, count).await?.to_json(&policy);
    let delays = shown.get("delays").cloned().unwrap_or_default();
    Ok(Json(PreviewView { policy: policy.to_json(), delays, explained: explain(&policy) }))
}

/// The policy and how many of its retries to show.
fn read_preview(body: &Body, faults: &Faults) -> Result<(Option<Value>, Option<u32>), Problem> {
    let Some(fields) = Fields::open(body.json()?, "", faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["policy", "count"]);
    let count = fields.whole("count", 0..=u64::from(MAX_PREVIEW)).map(|n| n as u32);
    let value = fields.needed("policy", fields.value("policy"), "a policy's name, line or object");
    Ok((value, count))
}

/// The pointer to a fault in a body's `policy`: one of its fields, or the whole text.
pub(crate) fn policy_pointer(value: &Value, error: &PolicyError) -> String {
    let is_whole = error.field.is_empty() || value.is_string();
    if is_whole { "/policy".to_owned() } else { format!("/policy/{}", error.field) }
}

impl From<NamedPolicy> for PolicyView {
    fn from(named: NamedPolicy) -> Self {
        Self {
            preset: named.is_preset(),
            line: named.policy.to_string(),
            explained: named.explain(),
            policy: named.policy.to_json(),
            purpose: named.purpose,
            name: named.name,
        }
    }
}
