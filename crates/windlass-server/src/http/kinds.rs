//! Kinds: the policy and error rules of all jobs of a kind.

use super::app::App;
use super::auth::{Admin, May, Read};
use super::input::body::Body;
use super::input::fields::{Faults, Fields};
use super::openapi::types;
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use super::policies::policy_pointer;
use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::{KindSettings, PolicyFault};
use windlass_core::job::Kind;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(put))
}

/// The settings of a kind. An omitted setting returns to what the nodes' files say.
#[derive(Debug, ToSchema)]
#[schema(as = KindSettings, example = json!({"policy": "full-jitter", "rules": [{"match": {"class": "Deadlock*"}, "then": "retry"}]}))]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct KindBody {
    /// A policy's name, line or object.
    #[schema(value_type = Option<types::PolicyInput>)]
    policy: Option<Value>,
    /// Error rules: `{match: {class, status, message}, then, for, policy}`; the first that matches decides.
    #[schema(value_type = Option<Vec<types::RuleInput>>)]
    rules: Option<Value>,
}

/// A kind with settings of its own.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Kind)]
pub(crate) struct KindView {
    name: String,
    /// The settings as stored.
    #[schema(value_type = Object)]
    settings: Value,
}

/// List the kinds that have settings of their own.
#[utoipa::path(get, path = "/api/v1/kinds", operation_id = "listKinds", tag = "policies", responses((status = 200, body = Listing<KindView>)))]
async fn list(State(app): State<App>, _caller: May<Read>) -> Result<Json<Listing<KindView>>, Problem> {
    let kinds = app.windlass().policies().kinds().await?;
    Ok(Json(Listing::whole(kinds.into_iter().map(|(kind, settings)| KindView::new(&kind, &settings)).collect())))
}

/// Set the policy and error rules of a kind, for every tenant and queue.
///
/// Jobs that are already stored keep their policy; rules apply to every attempt that ends from now on. `{}` removes
/// what was set here.
#[utoipa::path(put, path = "/api/v1/kinds/{name}", operation_id = "setKind", tag = "policies",
    params(("name" = String, Path)), request_body = KindBody,
    responses((status = 200, body = KindView), (status = 422, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: May<Admin>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Json<KindView>, Problem> {
    caller.for_all_tenants()?;
    let kind = Kind::new(&name).map_err(|error| Problem::query("name", error.to_string()))?;
    let settings = read(&body)?;
    match app.windlass().policies().by(&caller.by).set_kind(&kind, &settings).await {
        Ok(stored) => Ok(Json(KindView::new(&kind, &stored))),
        Err(PolicyFault::Policy(error)) => {
            let faults = Faults::default();
            let pointer = match &settings.policy {
                Some(policy) if !error.field.starts_with("rules") => policy_pointer(policy, &error),
                Some(_) | None => format!("/{}", error.field),
            };
            faults.add(pointer, error.message);
            Err(faults.problem())
        }
        Err(error @ (PolicyFault::Preset(_) | PolicyFault::Store(_))) => Err(error.into()),
    }
}

fn read(body: &Body) -> Result<KindSettings, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["policy", "rules"]);
    let settings = KindSettings { policy: fields.value("policy"), rules: fields.value("rules") };
    faults.finish()?;
    Ok(settings)
}

impl KindView {
    fn new(kind: &Kind, settings: &KindSettings) -> Self {
        Self { name: kind.to_string(), settings: settings.to_json() }
    }
}
