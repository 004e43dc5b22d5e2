//! The dashboard beside many jobs: how soon each page's first byte arrives, and what 200 open pages cost.

use super::work::Bed;
use super::{cycle, work};
use crate::bench::cost::Gauge;
use crate::bench::load::Load;
use crate::bench::report::Figure;
use crate::bench::server::{self, Caller, Server};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, Response, body::Incoming};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass::core::Millis;
use windlass::low_level::clock::Stopwatch;
use windlass::low_level::stores::Store;

/// Dead letters, of five causes.
const DEAD: usize = 10_000;
/// Requests of each page.
const REQUESTS: usize = 50;
/// Browsers that watch the overview.
const VIEWERS: usize = 200;
const WATCHED_FOR: Millis = Millis::from_secs(10);
const AT_ONCE: usize = 500;
const PAGES: [&str; 10] = [
    "/?span=1h",
    "/?span=24h",
    "/queues",
    "/queues/default/default",
    "/jobs",
    "/jobs?state=failed",
    "/dead-letters",
    "/schedules",
    "/policies",
    "/audit",
];

/// Fills the store with `deep` waiting and `deep` archived jobs and the dead letters, then measures.
pub(in crate::bench) async fn pages(store: &Arc<dyn Store>, bed: Bed<'_>) -> Result<Vec<Figure>> {
    work::drain(bed).await?;
    cycle::future_load(store, bed.load, bed.gauge).await?;
    let server = Server::start(bed.windlass)?;
    let figures = measure(&server.url(), bed.load, bed.gauge).await;
    server.stop().await?;
    figures
}

async fn measure(address: &str, deep: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let caller = server::caller();
    let job = dead_letters(&caller, address, DEAD.min(deep.jobs), gauge).await?;
    let mut figures = Vec::new();
    for path in PAGES.into_iter().map(str::to_owned).chain([format!("/jobs/{job}")]) {
        let meter = gauge.start().await?;
        let mut waits = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let watch = Stopwatch::start();
            let answer = get(&caller, &format!("{address}{path}")).await?;
            waits.push(watch.elapsed().as_secs_f64() * 1000.0);
            ensure!(answer.status().is_success(), "{path} answered {}", answer.status());
            gauge.pace.moved(1);
        }
        figures.push(Figure::latency(format!("first byte of {path}"), REQUESTS, meter.read().await?, waits));
    }
    figures.push(viewers(&caller, address, gauge).await?);
    Ok(figures)
}

/// What open overviews cost while jobs wait.
async fn viewers(caller: &Caller, address: &str, gauge: &Gauge) -> Result<Figure> {
    let mut open: Vec<Response<Incoming>> = Vec::with_capacity(VIEWERS);
    for _ in 0..VIEWERS {
        open.push(get(caller, &format!("{address}/live?page=%2F")).await?);
    }
    let meter = gauge.start().await?;
    tokio::time::sleep(WATCHED_FOR.to_std()).await;
    let cost = meter.read().await?;
    ensure!(open.iter().all(|answer| answer.status().is_success()), "a viewer was refused");
    let percent = cost.cpu_seconds / cost.seconds * 100.0;
    Ok(Figure::rate(format!("{VIEWERS} open dashboards: {percent:.1} % of a core"), 0, cost))
}

/// Makes dead letters and returns the id of one.
async fn dead_letters(caller: &Caller, address: &str, count: usize, gauge: &Gauge) -> Result<i64> {
    let base = format!("{address}/api/v1");
    let lease = json!({"worker": "bench", "queues": ["dead"], "max": AT_ONCE, "waitMs": 0}).to_string();
    let (mut failed, mut last) = (0, 0);
    for start in (0..count).step_by(AT_ONCE) {
        let job = |n: usize| json!({"kind": format!("kind-{}", n % 5), "queue": "dead", "payload": {"n": n}});
        let jobs: Vec<Value> = (start..count.min(start + AT_ONCE)).map(job).collect();
        server::post(caller, &format!("{base}/jobs/batch"), json!({ "jobs": jobs }).to_string()).await?;
        let answer: Value =
            serde_json::from_slice(&server::post(caller, &format!("{base}/leases"), lease.clone()).await?)?;
        let leased = answer["jobs"].as_array().context("the answer lists jobs")?;
        let fail = |job: &Value| {
            json!({"id": job["id"], "attempt": job["attempt"], "lease": job["lease"], "permanent": true,
                "class": job["kind"], "message": format!("{} was refused", job["kind"])})
        };
        let results: Vec<Value> = leased.iter().map(fail).collect();
        last = leased.last().and_then(|job| job["id"].as_i64()).unwrap_or(last);
        failed += results.len();
        gauge.pace.moved(results.len());
        server::post(
            caller,
            &format!("{base}/leases/fail"),
            json!({"worker": "bench", "results": results}).to_string(),
        )
        .await?;
    }
    ensure!(failed == count, "{count} jobs were enqueued, but {failed} came back");
    Ok(last)
}

async fn get(caller: &Caller, url: &str) -> Result<Response<Incoming>> {
    Ok(caller.request(Request::get(url).body(Full::new(Bytes::new()))?).await?)
}
