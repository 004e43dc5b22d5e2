//! Stats: counts over 5 minutes, an hour, a day and since the beginning, in total and per queue, kind and tenant. They
//! are read from tallies.

use super::app::App;
use super::auth::{May, Read};
use super::input::query::Query;
use super::output::problem::Problem;
use super::tenants::QuotasView;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass::client::{Scope, Tally, TenantQuotas, WindowStats as Counted};
use windlass_core::job::Tenant;
use windlass_core::{Millis, Timestamp};

/// The windows and their lengths at a moment; the last one reaches back to the beginning.
fn spans(now: Timestamp) -> [(&'static str, Millis); 4] {
    let secs = Millis::from_secs;
    [("5m", secs(300)), ("1h", secs(3600)), ("24h", secs(86_400)), ("all", now.since(Timestamp::EPOCH))]
}

/// Counts over each window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// `5m`, `1h`, `24h` and `all` (since the beginning)
    windows: BTreeMap<&'static str, WindowStats>,
    /// How many jobs wait now, by what for: `ready` (a worker may take them), `later` (`runAt` and `retry` together),
    /// `concurrency`, `rate`, `hold`, `breaker`, `budget`, `paused`, `worker`. Only those that any job waits for. Jobs
    /// behind one limit key are counted up to 10,000.
    waiting: BTreeMap<&'static str, u64>,
    /// The use of quotas by tenants that this node has counted something for.
    quotas: Vec<QuotaUse>,
}

/// A tenant's quotas and their use on the node that answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct QuotaUse {
    tenant_id: String,
    /// The quotas in force.
    quotas: QuotasView,
    /// Jobs that wait; null if the tenant has no quota of them.
    waiting: Option<u64>,
    /// How often this node has refused something since it started, by quota.
    refused: BTreeMap<&'static str, u64>,
}

impl From<TenantQuotas> for QuotaUse {
    fn from(used: TenantQuotas) -> Self {
        Self {
            tenant_id: used.tenant.to_string(),
            quotas: used.quotas.into(),
            waiting: used.waiting,
            refused: used.refused.into_iter().map(|(quota, count)| (quota.as_str(), count)).collect(),
        }
    }
}

/// The most tenants whose quotas are listed.
const MAX_TENANTS: usize = 1000;

/// Counts over one window.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WindowStats {
    total: Counts,
    queues: BTreeMap<String, Counts>,
    kinds: BTreeMap<String, Counts>,
    tenants: BTreeMap<String, Counts>,
}

/// The counts of one window.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counts {
    enqueued: i64,
    attempts: i64,
    succeeded: i64,
    failed: i64,
    cancelled: i64,
    /// Attempts that were retries.
    total_retries: i64,
    /// Retries of jobs that succeeded.
    successful_retries: i64,
    /// 0 to 1; null if there were no retries.
    retry_success_rate: Option<f64>,
    /// Retries per first attempt; null if there were none.
    retry_rate: Option<f64>,
    exhausted: i64,
    lost: i64,
    replayed: i64,
    latency: Latency,
}

/// Mean times in milliseconds; null if there is nothing to measure.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Latency {
    /// How long attempts took.
    run_ms: Option<f64>,
    /// How long due jobs waited for a worker.
    pickup_ms: Option<f64>,
    /// How long retries waited in backoff.
    backoff_ms: Option<f64>,
}

/// Counts over 5 minutes, 1 hour, 24 hours, and since the beginning.
#[utoipa::path(get, path = "/api/v1/stats", operation_id = "getStats", tag = "stats", params(("tenant" = Option<String>, Query)),
    responses((status = 200, body = Stats)))]
pub(crate) async fn stats(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Stats>, Problem> {
    query.only(&["tenant"])?;
    let tenant = caller.narrowed(query.parsed("tenant", Tenant::new)?)?;
    let scope = tenant.map_or_else(|| caller.tenants(), Scope::Tenant);
    let spans = spans(app.now());
    let counted = app.windlass().stats().within(&scope).windows(&spans.map(|(_, span)| span)).await?;
    let windows = spans.iter().zip(counted).map(|((name, _), counted)| (*name, WindowStats::from(counted)));
    let waiting = app.windlass().queues().within(&scope).waiting_in_all().await?;
    let used = app.windlass().tenants().quota_use(&scope).await?;
    let quotas = used.into_iter().take(MAX_TENANTS).map(QuotaUse::from).collect();
    Ok(Json(Stats { windows: windows.collect(), waiting: waiting.reasons().collect(), quotas }))
}

impl From<Counted> for WindowStats {
    fn from(counted: Counted) -> Self {
        let shown =
            |sums: BTreeMap<String, Tally>| sums.into_iter().map(|(name, tally)| (name, tally.into())).collect();
        Self {
            total: counted.total.into(),
            queues: shown(counted.queues),
            kinds: shown(counted.kinds),
            tenants: shown(counted.tenants),
        }
    }
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        Self {
            enqueued: tally.enqueued,
            attempts: tally.attempts,
            succeeded: tally.succeeded,
            failed: tally.failed,
            cancelled: tally.cancelled,
            total_retries: tally.retries,
            successful_retries: tally.successful_retries,
            retry_success_rate: tally.retry_success_rate(),
            retry_rate: tally.retry_rate(),
            exhausted: tally.exhausted,
            lost: tally.lost,
            replayed: tally.replayed,
            latency: Latency {
                run_ms: tally.mean_run_ms(),
                pickup_ms: tally.mean_pickup_ms(),
                backoff_ms: tally.mean_backoff_ms(),
            },
        }
    }
}
