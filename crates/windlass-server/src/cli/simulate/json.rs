//! The report of `simulate` for programs.

use super::Curve;
use super::chart::{Column, Time};
use serde_json::{Map, Value, json};
use windlass_core::Millis;
use windlass_core::simulate::{Peak, Scenario};

/// The most points of a load curve.
const MAX_POINTS: usize = 1000;

pub(super) fn report(seed: u64, scenario: &Scenario, curves: &[Curve]) -> Value {
    let target = &scenario.target;
    let time = Time::fitting(curves, target.recovers_at(), MAX_POINTS);
    json!({
        "seed": seed,
        "jobs": scenario.jobs,
        "arrivalMs": scenario.arrival.get(),
        "target": {
            "capacity": target.capacity,
            "latencyMs": target.latency.get(),
            "downAtMs": target.down_at.get(),
            "recoversAtMs": target.recovers_at().get(),
            "retryAfterMs": target.retry_after.map(Millis::get),
        },
        "bucketMs": time.step * 1000,
        "items": curves.iter().map(|curve| item(curve, time)).collect::<Vec<_>>(),
    })
}

fn item(curve: &Curve, time: Time) -> Value {
    let run = &curve.run;
    let reasons: Map<String, Value> =
        run.reasons.iter().map(|(reason, jobs)| (reason.as_str().to_owned(), json!(jobs))).collect();
    json!({
        "name": curve.label,
        "line": curve.policy.to_string(),
        "calls": run.calls,
        "wasted": run.wasted,
        "peak": peak(run.peak),
        "peakAfterRecovery": peak(run.peak_after),
        "drainMs": run.drain.map(Millis::get),
        "medianMs": run.median.map(Millis::get),
        "p99Ms": run.p99.map(Millis::get),
        "succeeded": run.succeeded,
        "givenUp": run.given_up(),
        "reasons": reasons,
        "unfinished": run.unfinished,
        "load": time.columns_of(&run.load).iter().enumerate().map(|(i, c)| point(i * time.step, c)).collect::<Vec<_>>(),
    })
}

fn peak(peak: Peak) -> Value {
    json!({ "callsPerSecond": peak.calls, "atMs": peak.at.get() })
}

fn point(second: usize, column: &Column) -> Value {
    json!({ "atMs": second * 1000, "calls": column.calls, "failed": column.failed, "peak": column.peak })
}
