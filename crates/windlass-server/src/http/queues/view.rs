//! Queues as the API shows them: one item per tenant and name, even if several executors serve it.

use crate::http::app::App;
use crate::http::openapi::types;
use crate::http::output::problem::Problem;
use crate::http::output::view::moment;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use windlass::client::{QueueStatus, Retention, Scope};
use windlass_core::gate::FLOW_FIELDS;
use windlass_core::{Executor, Timestamp};

/// A queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Queue)]
pub(crate) struct QueueView {
    tenant_id: String,
    name: String,
    executors: Vec<&'static str>,
    paused: bool,
    /// How many jobs are due, how many wait for their time, and how many are running.
    depth: u64,
    due: u64,
    later: u64,
    running: u64,
    dead: u64,
    /// The due time of the job that has been due longest, and how long ago that was.
    oldest_due_at: Option<String>,
    oldest_due_ms: Option<u64>,
    rates: Rates,
    /// The policy set for the queue, if any.
    #[schema(value_type = Option<types::PolicyInput>)]
    policy: Option<Value>,
    retention: RetentionView,
    /// Its limits; this and the following are absent where not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::LimitsInput>)]
    limits: Option<Value>,
    /// Its circuit breaker, for each limit key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::BreakerInput>)]
    breaker: Option<Value>,
    /// The share of first attempts that may be retries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::BudgetInput>)]
    retry_budget: Option<Value>,
    /// Who waits for a `Retry-After`: `key` or `job`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    honor_retry_after: Option<Value>,
    /// The longest automatic hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<types::Duration>)]
    max_hold: Option<Value>,
    /// Its error rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<types::RuleInput>>)]
    rules: Option<Value>,
}

/// Per second, over the last 5 minutes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rates {
    enqueued: f64,
    succeeded: f64,
    failed: f64,
    retried: f64,
}

/// How long finished jobs are kept: a duration, `0` (dropped on finish) or `forever`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Retention)]
pub(crate) struct RetentionView {
    succeeded: String,
    cancelled: String,
    failed: String,
}

impl From<Retention> for RetentionView {
    fn from(retention: Retention) -> Self {
        Self {
            succeeded: retention.succeeded.to_string(),
            cancelled: retention.cancelled.to_string(),
            failed: retention.failed.to_string(),
        }
    }
}

pub(super) async fn all(app: &App, scope: &Scope) -> Result<Vec<QueueView>, Problem> {
    let now = app.now();
    let queues = app.windlass().queues().within(scope).list().await?;
    Ok(queues.into_iter().map(|queue| QueueView::new(queue, now)).collect())
}

impl QueueView {
    fn new(mut queue: QueueStatus, now: Timestamp) -> Self {
        let mut flow = |name: &str| queue.flow.remove(name);
        let [limits, breaker, retry_budget, honor_retry_after, max_hold, rules] = FLOW_FIELDS.map(&mut flow);
        Self {
            limits,
            breaker,
            retry_budget,
            honor_retry_after,
            max_hold,
            rules,
            depth: queue.depth(),
            tenant_id: queue.tenant.to_string(),
            name: queue.name.to_string(),
            executors: queue.executors.into_iter().map(Executor::as_str).collect(),
            paused: queue.paused,
            due: queue.due,
            later: queue.later,
            running: queue.running,
            dead: queue.dead,
            oldest_due_at: moment(queue.oldest_due),
            oldest_due_ms: queue.oldest_due.map(|due_at| now.since(due_at).get()),
            rates: Rates {
                enqueued: queue.rates.enqueued,
                succeeded: queue.rates.succeeded,
                failed: queue.rates.failed,
                retried: queue.rates.retried,
            },
            policy: queue.policy,
            retention: queue.retention.into(),
        }
    }
}
