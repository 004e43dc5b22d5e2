//! The HTTP API on loopback: the real accept loop and routes, and callers with persistent connections, which share the
//! processors with the server. Every answer means that the job is on disk.

use super::enqueue::{self, CALLERS, singly};
use crate::bench::cost::Gauge;
use crate::bench::load::{BATCH, Load};
use crate::bench::report::Figure;
use crate::bench::server::Server;
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windlass::Windlass;
use windlass::low_level::clock::Stopwatch;

/// Jobs a remote worker claims at a time, and how many of them work.
const LEASED: usize = 100;
const WORKERS: usize = 4;
/// How long requests arrive at half the load.
const HALF_LOAD_FOR: Duration = Duration::from_secs(3);

/// How much of the job an answer repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Whole,
    Minimal,
}

/// Single enqueues next to the library's, latency at half the load, batches, and remote workers.
pub(in crate::bench) async fn api(windlass: &Windlass, load: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let server = Server::start(windlass)?;
    let figures = measure(windlass, server.address, load, gauge).await;
    server.stop().await?;
    figures
}

async fn measure(windlass: &Windlass, address: SocketAddr, load: Load, gauge: &Gauge) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let (mut stored, mut fastest) = (0, 0.0);
    for connections in CALLERS {
        let library = singly(windlass, load, connections, gauge).await?;
        for answer in [Answer::Whole, Answer::Minimal] {
            let figure = one_by_one(address, load, connections, answer, gauge).await?;
            stored += figure.jobs;
            fastest = figure.per_second();
            figures.push(figure.of(&library));
        }
    }
    let half = at_half_load(address, load, fastest / 2.0, gauge).await?;
    let batches = in_batches(address, load, gauge).await?;
    stored += half.jobs + batches.jobs;
    figures.extend([half, batches]);
    figures.push(work(address, stored, gauge).await?);
    Ok(figures)
}

fn job(load: Load) -> String {
    format!(r#"{{"kind":"bench","queue":"api","payload":{}}}"#, load.text())
}

async fn one_by_one(
    address: SocketAddr,
    load: Load,
    connections: usize,
    answer: Answer,
    gauge: &Gauge,
) -> Result<Figure> {
    let jobs = enqueue::jobs(load, connections);
    let left = Arc::new(AtomicUsize::new(jobs));
    let body = Bytes::from(job(load));
    let mut callers = connect(address, connections).await?;
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for mut caller in callers.drain(..) {
        let (left, body, pace) = (left.clone(), body.clone(), gauge.pace.clone());
        tasks.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                caller.post("/api/v1/jobs", body.clone(), answer).await?;
                pace.moved(1);
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let form = match answer {
        Answer::Whole => "",
        Answer::Minimal => ", return=minimal",
    };
    Ok(Figure::rate(format!("HTTP enqueue, connections: {connections}{form}"), jobs, meter.read().await?))
}

/// Latencies while requests arrive at a fixed rate, whether or not earlier ones were answered.
async fn at_half_load(address: SocketAddr, load: Load, per_second: f64, gauge: &Gauge) -> Result<Figure> {
    let connections = CALLERS[CALLERS.len() - 1];
    let every = Duration::from_secs_f64(connections as f64 / per_second.max(1.0));
    let body = Bytes::from(job(load));
    let mut callers = connect(address, connections).await?;
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for (place, mut caller) in callers.drain(..).enumerate() {
        let body = body.clone();
        tasks.spawn(async move {
            let began = Stopwatch::start();
            let mut waits = Vec::new();
            let mut due = every.mul_f64(place as f64 / connections as f64);
            while due < HALF_LOAD_FOR {
                tokio::time::sleep(due.saturating_sub(began.elapsed())).await;
                let watch = Stopwatch::start();
                caller.post("/api/v1/jobs", body.clone(), Answer::Minimal).await?;
                waits.push(watch.elapsed().as_secs_f64() * 1000.0);
                due += every;
            }
            anyhow::Ok(waits)
        });
    }
    let mut waits = Vec::new();
    while let Some(done) = tasks.join_next().await {
        waits.extend(done??);
    }
    let what = format!("HTTP enqueue at half the load, connections: {connections}");
    Ok(Figure::latency(what, waits.len(), meter.read().await?, waits))
}

async fn in_batches(address: SocketAddr, load: Load, gauge: &Gauge) -> Result<Figure> {
    let job = job(load);
    let mut caller = Caller::connect(address).await?;
    let meter = gauge.start().await?;
    for start in (0..load.jobs).step_by(BATCH) {
        let count = BATCH.min(load.jobs - start);
        let body = format!(r#"{{"jobs":[{}],"atomic":false}}"#, vec![job.as_str(); count].join(","));
        caller.post("/api/v1/jobs/batch", body.into(), Answer::Minimal).await?;
        gauge.pace.moved(count);
    }
    Ok(Figure::rate(format!("HTTP enqueue, {BATCH} a call"), load.jobs, meter.read().await?))
}

/// Remote workers: lease and complete jobs until none are left.
async fn work(address: SocketAddr, jobs: usize, gauge: &Gauge) -> Result<Figure> {
    let left = Arc::new(AtomicUsize::new(jobs));
    let mut callers = connect(address, WORKERS).await?;
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for (number, mut caller) in callers.drain(..).enumerate() {
        let (left, pace) = (left.clone(), gauge.pace.clone());
        tasks.spawn(async move {
            let worker = format!("bench-{number}");
            while left.load(Ordering::Relaxed) > 0 {
                let done = lease_and_complete(&mut caller, &worker).await?;
                pace.moved(done);
                let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(done)));
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let what = format!("HTTP lease + complete, {LEASED} at a time, {WORKERS} connections");
    Ok(Figure::rate(what, jobs, meter.read().await?))
}

async fn lease_and_complete(caller: &mut Caller, worker: &str) -> Result<usize> {
    let ask = json!({"worker": worker, "queues": ["api"], "max": LEASED, "waitMs": 0, "leaseMs": 30_000}).to_string();
    let answer = caller.post("/api/v1/leases", ask.into(), Answer::Whole).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let leased = answer["jobs"].as_array().context("the answer lists jobs")?;
    if leased.is_empty() {
        return Ok(0);
    }
    let results: Vec<Value> =
        leased.iter().map(|j| json!({"id": j["id"], "attempt": j["attempt"], "lease": j["lease"]})).collect();
    let results = json!({"worker": worker, "results": results}).to_string();
    caller.post("/api/v1/leases/complete", results.into(), Answer::Minimal).await?;
    Ok(leased.len())
}

/// One connection.
struct Caller {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

async fn connect(address: SocketAddr, count: usize) -> Result<Vec<Caller>> {
    let mut callers = Vec::with_capacity(count);
    for _ in 0..count {
        callers.push(Caller::connect(address).await?);
    }
    Ok(callers)
}

impl Caller {
    async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        // Ends when the sender is dropped.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, host: address.to_string() })
    }

    async fn post(&mut self, path: &str, body: Bytes, answer: Answer) -> Result<Bytes> {
        let mut request = Request::post(path).header(HOST, &self.host).header(CONTENT_TYPE, "application/json");
        if answer == Answer::Minimal {
            request = request.header("prefer", "return=minimal");
        }
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.body(Full::new(body))?).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{path} answered {status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }
}
