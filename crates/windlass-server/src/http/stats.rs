//! Stats: what happened over 5 minutes, an hour and a day, in all and per queue, kind and tenant. Read from tallies.

use super::app::App;
use super::auth::{May, Read};
use super::input::query::Query;
use super::output::problem::Problem;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;
use windlass::store::Scope;
use windlass::tally::Tally;
use windlass_core::Millis;
use windlass_core::job::Tenant;

const WINDOWS: [(&str, Millis); 3] =
    [("5m", Millis::from_secs(300)), ("1h", Millis::from_secs(3600)), ("24h", Millis::from_secs(86_400))];

/// Counts over each window.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Stats {
    /// `5m`, `1h` and `24h`
    windows: BTreeMap<&'static str, WindowStats>,
}

/// Counts over one window.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WindowStats {
    total: Counts,
    queues: BTreeMap<String, Counts>,
    kinds: BTreeMap<String, Counts>,
    tenants: BTreeMap<String, Counts>,
}

/// What happened.
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
    /// Retries of jobs that ended well.
    successful_retries: i64,
    /// 0 to 1; null while there were no retries.
    retry_success_rate: Option<f64>,
    /// Retries for each first attempt; null while there were none.
    retry_rate: Option<f64>,
    exhausted: i64,
    lost: i64,
    replayed: i64,
    latency: Latency,
}

/// Mean times in milliseconds; null while there is nothing to measure.
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

/// Counts over 5 minutes, 1 hour and 24 hours.
#[utoipa::path(get, path = "/api/v1/stats", tag = "stats", params(("tenant" = Option<String>, Query)),
    responses((status = 200, body = Stats)))]
pub(crate) async fn stats(State(app): State<App>, caller: May<Read>, query: Query) -> Result<Json<Stats>, Problem> {
    query.only(&["tenant"])?;
    let tenant = caller.narrowed(query.parsed("tenant", Tenant::new)?)?;
    let scope = tenant.map_or_else(|| caller.tenants(), Scope::Tenant);
    let now = app.now();
    let counted = app.store().windows(&scope, &WINDOWS.map(|(_, span)| now - span)).await?;
    let mut windows = BTreeMap::new();
    for ((name, _), tallies) in WINDOWS.into_iter().zip(counted) {
        let mut total = Tally::default();
        let mut by: [BTreeMap<String, Tally>; 3] = Default::default();
        for (queue, kind, tally) in tallies {
            total += tally;
            let names = [queue.name.to_string(), kind.to_string(), queue.tenant.to_string()];
            for (sums, name) in by.iter_mut().zip(names) {
                *sums.entry(name).or_default() += tally;
            }
        }
        let [queues, kinds, tenants] = by.map(|sums| sums.into_iter().map(|(k, t)| (k, Counts::from(t))).collect());
        windows.insert(name, WindowStats { total: total.into(), queues, kinds, tenants });
    }
    Ok(Json(Stats { windows }))
}

impl From<Tally> for Counts {
    fn from(tally: Tally) -> Self {
        let ratio = |part: i64, of: i64| (of > 0).then(|| part as f64 / of as f64);
        Self {
            enqueued: tally.enqueued,
            attempts: tally.attempts,
            succeeded: tally.succeeded,
            failed: tally.failed,
            cancelled: tally.cancelled,
            total_retries: tally.retries,
            successful_retries: tally.successful_retries,
            // Retries of a job that ended in this window may have been made before it.
            retry_success_rate: ratio(tally.successful_retries, tally.retries).map(|rate| rate.min(1.0)),
            retry_rate: ratio(tally.retries, tally.first_attempts),
            exhausted: tally.exhausted,
            lost: tally.lost,
            replayed: tally.replayed,
            latency: Latency {
                run_ms: ratio(tally.run_ms, tally.attempts),
                pickup_ms: ratio(tally.pickup_ms, tally.attempts),
                backoff_ms: ratio(tally.backoff_ms, tally.retried),
            },
        }
    }
}
