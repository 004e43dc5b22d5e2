//! Holds: times until which nothing of a queue or limit key starts.

use super::app::App;
use super::auth::{Caller, Manage, May, Read};
use super::input::body::Body;
use super::input::fields::{Faults, Fields};
use super::input::query::Query;
use super::openapi::types;
use super::output::page::Listing;
use super::output::problem::{Problem, ProblemBody};
use super::output::view::moment;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass::client::{GateStatus, Scope};
use windlass_core::gate::{BreakerState, Hold, HoldOrigin, MAX_LIMIT_KEY};
use windlass_core::job::{QueueName, Tenant};
use windlass_core::{Millis, Timestamp};

/// The longest reason, in characters.
const MAX_REASON: usize = 500;
/// The longest hold by `for`.
const MAX_HOLD: Millis = Millis::from_secs(365 * 86_400);

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list, put, release))
}

/// What to hold, and until when.
#[derive(Debug, ToSchema)]
#[schema(as = NewHold, rename_all = "camelCase", example = json!({"queue": "billing", "key": "stripe", "for": "10m", "reason": "maintenance"}))]
#[expect(dead_code, reason = "documents what `put` accepts")]
pub(crate) struct HoldBody {
    /// The queue; may be left out if `key` is given.
    #[schema(value_type = Option<types::QueueName>)]
    queue: Option<String>,
    /// Only this limit key: of the queue, or without one of every queue that exists.
    #[schema(min_length = 1, max_length = 128)]
    key: Option<String>,
    /// Only with a token for all tenants; `*` holds the queue of every tenant that has it.
    #[schema(value_type = Option<types::TenantName>)]
    tenant_id: Option<String>,
    /// For how long; or give `until`.
    #[schema(value_type = Option<types::Duration>)]
    r#for: Option<String>,
    /// Until when; or give `for`.
    #[schema(value_type = Option<types::Moment>)]
    until: Option<String>,
    /// Why, for other operators.
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// A queue or key of which nothing starts, or only a probe.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Hold)]
pub(crate) struct HoldView {
    /// `*` for the queues of this name of all tenants.
    tenant_id: String,
    queue: String,
    /// The limit key; null for the whole queue, empty for the jobs that have none.
    key: Option<String>,
    /// Until when it is held; null if only its breaker is open.
    until: Option<String>,
    /// Since when it is held.
    since: Option<String>,
    /// Who holds it: `operator`, `retryAfter` (an answer asked for it) or `rule` (an error rule did).
    origin: Option<&'static str>,
    /// The operator.
    by: Option<String>,
    reason: Option<String>,
    /// The circuit breaker: `closed`, `open`, `halfOpen` (ready for a probe) or `probing`.
    breaker: &'static str,
    /// When the open breaker lets a probe through.
    breaker_until: Option<String>,
    /// Attempts that run.
    in_use: u32,
    /// Jobs that wait behind it, counted up to 10,000.
    parked: u64,
}

/// The result of a hold or release.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Held {
    /// How many queues or keys were held or released.
    held: u64,
    /// Until when; null after a release.
    until: Option<String>,
}

/// List what is held, and open circuit breakers.
#[utoipa::path(get, path = "/api/v1/holds", operation_id = "listHolds", tag = "queues", params(("tenant" = Option<String>, Query)),
    responses((status = 200, body = Listing<HoldView>)))]
async fn list(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Listing<HoldView>>, Problem> {
    query.only(&["tenant"])?;
    let tenant = caller.narrowed(query.parsed("tenant", Tenant::new)?)?;
    let scope = tenant.map_or_else(|| caller.tenants(), Scope::Tenant);
    let now = app.now();
    let held = app.windlass().queues().within(&scope).gates().held().await?;
    Ok(Json(Listing::whole(held.iter().map(|gate| HoldView::new(gate, now)).collect())))
}

/// Hold a queue or a limit key: nothing of it starts until then.
///
/// A key without a queue is held in every queue that exists. What runs goes on, and no job is charged an attempt. After
/// the hold, starts are slow at first. A queue may be held before its first job.
#[utoipa::path(put, path = "/api/v1/holds", operation_id = "hold", tag = "queues", request_body = HoldBody,
    responses((status = 200, body = Held), (status = 422, body = ProblemBody)))]
async fn put(State(app): State<App>, caller: May<Manage>, body: Body) -> Result<Json<Held>, Problem> {
    let asked = read(&body, &caller, app.now())?;
    let gates = app.windlass().queues().within(&asked.scope).by(&caller.by).gates();
    let held = match (&asked.queue, &asked.key) {
        (Some(queue), key) => {
            caller.check_queue(queue)?;
            gates.hold(queue, key.as_deref(), asked.until, &asked.reason).await?
        }
        (None, key) => {
            caller.for_all_queues()?;
            gates.hold_key(key.as_deref().unwrap_or_default(), asked.until, &asked.reason).await?
        }
    };
    Ok(Json(Held { held, until: moment(Some(asked.until)) }))
}

/// End a hold. A key without a queue is released in every queue.
#[utoipa::path(delete, path = "/api/v1/holds", operation_id = "release", tag = "queues",
    params(("queue" = Option<String>, Query), ("key" = Option<String>, Query), ("tenant" = Option<String>, Query)),
    responses((status = 200, body = Held), (status = 422, body = ProblemBody)))]
async fn release(State(app): State<App>, caller: May<Manage>, query: Query) -> Result<Json<Held>, Problem> {
    query.only(&["queue", "key", "tenant"])?;
    let queue = query.parsed("queue", QueueName::new)?;
    let scope = scope(&caller, query.text("tenant"), |error| Problem::query("tenant", error))?;
    let key = query.text("key");
    if key.is_some_and(is_too_long) {
        return Err(Problem::query("key", TOO_LONG));
    }
    let gates = app.windlass().queues().within(&scope).by(&caller.by).gates();
    let held = match (&queue, key) {
        (Some(queue), key) => {
            caller.check_queue(queue)?;
            gates.release(queue, key).await?
        }
        (None, Some(key)) => {
            caller.for_all_queues()?;
            gates.release_key(key).await?
        }
        (None, None) => {
            let faults = Faults::default();
            faults.add("?queue", "is missing; give a queue, a key, or both");
            return Err(faults.problem());
        }
    };
    Ok(Json(Held { held, until: None }))
}

const TOO_LONG: &str = "must be 1 to 128 characters";

fn is_too_long(key: &str) -> bool {
    key.chars().count() > MAX_LIMIT_KEY
}

/// What a request asks to hold.
struct Asked {
    /// Absent only with a key.
    queue: Option<QueueName>,
    key: Option<String>,
    scope: Scope,
    until: Timestamp,
    reason: String,
}

fn read(body: &Body, caller: &Caller, now: Timestamp) -> Result<Asked, Problem> {
    let faults = Faults::default();
    let Some(fields) = Fields::open(body.json()?, "", &faults) else { return Err(faults.problem()) };
    fields.refuse_unknown(&["queue", "key", "tenantId", "for", "until", "reason"]);
    let queue = fields.parsed("queue", QueueName::new);
    let key = fields.text("key");
    if !fields.has("queue") && !fields.has("key") {
        fields.fault("queue", "is missing; write the name of a queue, or give key");
    }
    if key.as_ref().is_some_and(|key| key.is_empty() || is_too_long(key)) {
        fields.fault("key", TOO_LONG);
    }
    let reason = fields.text("reason").unwrap_or_default();
    if reason.chars().count() > MAX_REASON {
        fields.fault("reason", format!("must be at most {MAX_REASON} characters"));
    }
    let until = match (fields.duration("for"), fields.moment("until")) {
        (Some(_), Some(_)) => {
            fields.fault("until", "is given together with for; give one of them");
            None
        }
        (Some(span), None) if span.is_zero() || span > MAX_HOLD => {
            fields.fault("for", "must be longer than 0s and at most 365d");
            None
        }
        (Some(span), None) => Some(now + span),
        (None, Some(at)) if at <= now => {
            fields.fault("until", "must be in the future");
            None
        }
        (None, Some(at)) => Some(at),
        (None, None) => {
            if faults.is_empty() {
                fields.fault("for", "is missing; write how long, such as 10m, or give until");
            }
            None
        }
    };
    let tenant = fields.text("tenantId");
    let scope = scope(caller, tenant.as_deref(), |error| {
        fields.fault("tenantId", error);
        faults.problem()
    })?;
    faults.finish()?;
    let until = until.ok_or_else(|| faults.problem())?;
    Ok(Asked { queue, key, scope, until, reason })
}

/// Whose queue is meant. `*` means every tenant's, for callers for all tenants.
fn scope(caller: &Caller, tenant: Option<&str>, wrong: impl Fn(String) -> Problem) -> Result<Scope, Problem> {
    if tenant == Some("*") {
        return caller.for_all_tenants().map(|()| Scope::All);
    }
    let named = tenant.map(Tenant::new).transpose().map_err(|error| wrong(error.to_string()))?;
    caller.tenant(named).map(Scope::Tenant)
}

impl HoldView {
    fn new(status: &GateStatus, now: Timestamp) -> Self {
        let hold: Option<&Hold> = status.gate.held(now);
        let (breaker, breaker_until) = match status.gate.breaker(now) {
            BreakerState::Closed => ("closed", None),
            BreakerState::Open { until } => ("open", Some(until)),
            BreakerState::HalfOpen => ("halfOpen", None),
            BreakerState::Probing => ("probing", None),
        };
        Self {
            tenant_id: status.name.tenant.as_ref().map_or_else(|| "*".to_owned(), ToString::to_string),
            queue: status.name.queue.to_string(),
            key: status.name.key.as_deref().map(str::to_owned),
            until: moment(hold.map(|hold| hold.until)),
            since: moment(hold.map(|hold| hold.since)),
            origin: hold.map(|hold| hold.origin.as_str()),
            by: hold.and_then(|hold| match &hold.origin {
                HoldOrigin::Operator(by) => Some(by.clone()),
                HoldOrigin::RetryAfter | HoldOrigin::Rule => None,
            }),
            reason: hold.map(|hold| hold.reason.clone()),
            breaker,
            breaker_until: moment(breaker_until),
            in_use: status.gate.in_use(),
            parked: status.parked,
        }
    }
}
