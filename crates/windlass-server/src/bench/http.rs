//! The API on loopback: the real accept loop and routes, and callers with persistent connections. Every answer means
//! that the job is on disk.

use super::cost::Gauge;
use super::{Load, report::Figure};
use crate::http::{self, Access, App};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::header::CONTENT_TYPE;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use windlass::TenantLabel;
use windlass::Windlass;
use windlass::low_level::clock::Stopwatch;
use windlass::low_level::stores::Store;

const CONNECTIONS: usize = 64;
/// The server's default limit of connections.
const MAX_CONNECTIONS: usize = 1024;
const BATCH: usize = 1000;
/// Jobs a remote worker claims at a time.
const LEASED: usize = 100;

type Caller = Client<HttpConnector, Full<Bytes>>;

/// Single enqueues, batches, and a remote worker's cycles. Returns rates, and the latency of single enqueues.
pub(crate) async fn api(store: &Arc<dyn Store>, load: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let listener = http::connection::listen::bind(([127, 0, 0, 1], 0).into())?;
    let base = format!("http://{}/api/v1", listener.local_addr()?);
    let windlass = Windlass::from_store(store.clone());
    let app = App::new(windlass.clone(), Access::OpenUntilFirstToken, Vec::new(), TenantLabel::Off);
    let stop = CancellationToken::new();
    let grace = Duration::from_secs(5);
    let serve = http::connection::listen::serve(
        listener,
        http::router(app),
        windlass.clock().clone(),
        MAX_CONNECTIONS,
        stop.clone(),
        grace,
    );
    let server = tokio::spawn(serve);
    let figures = measure(&base, load, gauge).await;
    stop.cancel();
    server.await?;
    figures
}

async fn measure(base: &str, load: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let caller = Client::builder(TokioExecutor::new()).build_http();
    let singles = Load { jobs: load.jobs.min(20_000), ..load };
    let mut figures = one_by_one(&caller, base, singles, gauge).await?;
    figures.push(in_batches(&caller, base, load, gauge).await?);
    figures.push(work(&caller, base, singles.jobs + load.jobs, gauge).await?);
    Ok(figures)
}

async fn one_by_one(caller: &Caller, base: &str, load: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let left = Arc::new(AtomicUsize::new(load.jobs));
    let body = format!(r#"{{"kind":"bench","queue":"api","payload":{}}}"#, load.text());
    let meter = gauge.start().await?;
    let mut callers = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (caller, left, body, pace) = (caller.clone(), left.clone(), body.clone(), gauge.pace.clone());
        let url = format!("{base}/jobs");
        callers.spawn(async move {
            let mut waits = Vec::new();
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                let watch = Stopwatch::start();
                post(&caller, &url, body.clone()).await?;
                pace.moved(1);
                waits.push(watch.elapsed().as_secs_f64() * 1000.0);
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits = Vec::with_capacity(load.jobs);
    while let Some(done) = callers.join_next().await {
        waits.extend(done??);
    }
    let cost = meter.read().await?;
    let what = format!("API enqueue one by one, {CONNECTIONS} connections");
    let answers = Figure::latency(format!("{what}: answers"), load.jobs, cost, waits);
    Ok(vec![Figure::rate(what, load.jobs, cost), answers])
}

async fn in_batches(caller: &Caller, base: &str, load: Load, gauge: &Gauge) -> Result<Figure> {
    let job = format!(r#"{{"kind":"bench","queue":"api","payload":{}}}"#, load.text());
    let url = format!("{base}/jobs/batch");
    let meter = gauge.start().await?;
    for start in (0..load.jobs).step_by(BATCH) {
        let jobs = vec![job.as_str(); BATCH.min(load.jobs - start)].join(",");
        post(caller, &url, format!(r#"{{"jobs":[{jobs}],"atomic":false}}"#)).await?;
        gauge.pace.moved(BATCH.min(load.jobs - start));
    }
    Ok(Figure::rate(format!("API enqueue, batches of {BATCH}"), load.jobs, meter.read().await?))
}

/// A remote worker: leases and completes jobs until none are left.
async fn work(caller: &Caller, base: &str, jobs: usize, gauge: &Gauge) -> Result<Figure> {
    let (lease, complete) = (format!("{base}/leases"), format!("{base}/leases/complete"));
    let subscription =
        json!({"worker": "bench", "queues": ["api"], "max": LEASED, "waitMs": 0, "leaseMs": 30_000}).to_string();
    let meter = gauge.start().await?;
    let mut done = 0;
    while done < jobs {
        let answer: Value = serde_json::from_slice(&post(caller, &lease, subscription.clone()).await?)?;
        let leased = answer["jobs"].as_array().context("the answer lists jobs")?;
        ensure!(!leased.is_empty(), "{jobs} jobs were enqueued, but {done} came back");
        let results: Vec<Value> =
            leased.iter().map(|j| json!({"id": j["id"], "attempt": j["attempt"], "lease": j["lease"]})).collect();
        done += results.len();
        gauge.pace.moved(results.len());
        post(caller, &complete, json!({"worker": "bench", "results": results}).to_string()).await?;
    }
    Ok(Figure::rate(format!("API remote worker, {LEASED} leases at a time"), jobs, meter.read().await?))
}

async fn post(caller: &Caller, url: &str, body: String) -> Result<Bytes> {
    let request = Request::post(url).header(CONTENT_TYPE, "application/json").body(Full::new(Bytes::from(body)))?;
    let answer = caller.request(request).await?;
    let status = answer.status();
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{url} answered {status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}
