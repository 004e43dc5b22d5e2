//! PUT /queues/{name}: sets a queue's policy, retention and flow control, for all producers.

use super::{Name, Whose, whose};
use crate::http::app::App;
use crate::http::auth::{Admin, May};
use crate::http::input::body::Body;
use crate::http::input::fields::{Faults, Fields};
use crate::http::input::query::Query;
use crate::http::openapi::types;
use crate::http::output::problem::{Problem, ProblemBody};
use crate::http::policies::policy_pointer;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use windlass::client::{Keep, PolicyFault, QueueSettings, Scope};
use windlass_core::gate::FLOW_FIELDS;

/// The settings of a queue. An omitted setting returns to its default.
#[derive(Debug, ToSchema)]
#[schema(as = QueueSettings, rename_all = "camelCase", example = json!({"policy": "full-jitter", "retention": {"succeeded": "1d"}}))]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct SettingsBody {
    /// A policy's name, line or object.
    #[schema(value_type = Option<types::PolicyInput>)]
    policy: Option<Value>,
    /// How long finished jobs are kept: `{"succeeded":"7d","cancelled":"7d","failed":"forever"}`; `0` drops them on
    /// finish.
    #[schema(value_type = Option<types::RetentionInput>)]
    retention: Option<Value>,
    /// `{concurrency, rate, burst, perKey: {concurrency, rate, burst}, keyBy, across}`: how many attempts at once, and
    /// how many starts per time (`"100/1m"`), for the queue and for each limit key.
    #[schema(value_type = Option<types::LimitsInput>)]
    limits: Option<Value>,
    /// `"on"`, `"off"`, or `{window, minimum, ratio, openFor, maxOpenFor}`: stops starts of a key whose destination
    /// fails.
    #[schema(value_type = Option<types::BreakerInput>)]
    breaker: Option<Value>,
    /// `"20%"` or `{share, minimum}`: retries are at most this share of first attempts.
    #[schema(value_type = Option<types::BudgetInput>)]
    retry_budget: Option<Value>,
    /// Who waits for a `Retry-After`: everything with the same key, or only the job.
    #[schema(pattern = "^(key|job)$")]
    honor_retry_after: Option<String>,
    /// The longest hold that an answer or a rule may set.
    #[schema(value_type = Option<types::Duration>)]
    max_hold: Option<String>,
    /// Error rules: `{match: {class, status, message}, then, for, policy}`; the first that matches decides.
    #[schema(value_type = Option<Vec<types::RuleInput>>)]
    rules: Option<Value>,
}

/// The settings as stored.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsView {
    name: String,
    /// `*` for every tenant.
    tenant_id: String,
    #[schema(value_type = Object)]
    settings: Value,
}

/// Set a queue's policy, retention, limits and rules.
///
/// Jobs that are already stored keep their policy; limits and rules apply to all of them. `?tenant=*` sets it for every
/// tenant.
#[utoipa::path(put, path = "/api/v1/queues/{name}", operation_id = "setQueue", tag = "queues",
    params(("name" = String, Path), ("tenant" = Option<String>, Query)), request_body = SettingsBody,
    responses((status = 200, body = SettingsView), (status = 422, body = ProblemBody)))]
pub(crate) async fn put(
    State(app): State<App>,
    caller: May<Admin>,
    name: Name,
    query: Query,
    body: Body,
) -> Result<Json<SettingsView>, Problem> {
    query.only(&["tenant"])?;
    let tenant = match whose(&query, &caller)? {
        Whose::Of(tenant) => Some(tenant),
        Whose::Everyones => None,
    };
    let faults = Faults::default();
    let settings = read(&body, &faults)?;
    let scope = tenant.clone().map_or(Scope::All, Scope::Tenant);
    let queues = app.windlass().queues().within(&scope).by(&caller.by);
    if let Some(policy) = &settings.policy {
        match queues.check_policy(&name.0, policy).await {
            Ok(()) => {}
            Err(PolicyFault::Policy(error)) => faults.add(policy_pointer(policy, &error), error.to_string()),
            Err(error @ (PolicyFault::Preset(_) | PolicyFault::Store(_))) => return Err(error.into()),
        }
    }
    match queues.check_flow(&settings.flow).await {
        Ok(_) => {}
        Err(PolicyFault::Policy(error)) => faults.add(format!("/{}", error.field), error.message),
        Err(error @ (PolicyFault::Preset(_) | PolicyFault::Store(_))) => return Err(error.into()),
    }
    faults.finish()?;
    queues.set(&name.0, &settings).await?;
    let tenant_id = tenant.map_or_else(|| "*".to_owned(), |tenant| tenant.to_string());
    Ok(Json(SettingsView { name: name.0.to_string(), tenant_id, settings: settings.to_json() }))
}

fn read(body: &Body, faults: &Faults) -> Result<QueueSettings, Problem> {
    let Some(fields) = Fields::open(body.json()?, "", faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&[&["policy", "retention"][..], &FLOW_FIELDS].concat());
    let given = FLOW_FIELDS.iter().filter_map(|name| Some(((*name).to_owned(), fields.value(name)?)));
    let mut settings =
        QueueSettings { policy: fields.value("policy"), flow: given.collect(), ..QueueSettings::default() };
    if let Some(retention) = fields.object("retention") {
        retention.refuse_unknown(&["succeeded", "cancelled", "failed"]);
        let keep = |name| retention.word(name, Keep::parse, "a duration such as 7d, 0 to drop on finish, or forever");
        settings.retention.succeeded = keep("succeeded");
        settings.retention.cancelled = keep("cancelled");
        settings.retention.failed = keep("failed");
    }
    Ok(settings)
}
