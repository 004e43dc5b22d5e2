//! Jobs that call URLs: a receiver on loopback that answers 200 at once, and the whole path from claim to commit.

use crate::bench::cost::Gauge;
use crate::bench::pace::Pace;
use crate::bench::{Load, report::Figure};
use anyhow::Result;
use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use windlass::Worker;
use windlass::client::Atomicity;
use windlass::core::{Executor, Millis};
use windlass::http::{Egress, HttpExecutor, HttpOptions, Percent, SlotShares};
use windlass::low_level::job::{HttpCall, NewJob};
use windlass::low_level::stores::Store;
use windlass::{AttemptLog, Windlass};

const BATCH: usize = 1000;
const CALLS: usize = 64;

/// Calls a local receiver once per job.
pub(crate) async fn calls(store: &Arc<dyn Store>, load: Load, gauge: &Gauge) -> Result<Figure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    let over = Arc::new(Notify::new());
    let receiver = tokio::spawn(receive(listener, load.jobs, over.clone(), gauge.pace.clone()));
    let call = Arc::new(HttpCall { method: "POST".into(), url, headers: Vec::new(), secret: None, webhook_id: None });
    for start in (0..load.jobs).step_by(BATCH) {
        let job = |_| NewJob {
            executor: Executor::Http,
            http: Some(call.clone()),
            ..super::cycle::new_job(&load.text(), &super::cycle::policy())
        };
        store.enqueue((start..load.jobs.min(start + BATCH)).map(job).collect(), Atomicity::Each).await?;
    }
    let windlass = Windlass::from_store(store.clone());
    let options = HttpOptions {
        egress: Egress::AllowPrivate,
        calls_per_host: CALLS,
        calls: CALLS,
        shares: SlotShares { tenant: Percent::ALL, destination: Percent::ALL },
        default_timeout: Millis::from_secs(30),
        ..HttpOptions::default()
    };
    let executor = HttpExecutor::new(options, windlass.clock().clone());
    let meter = gauge.start().await?;
    let worker = Worker::new(&windlass).http(executor).all_queues(Executor::Http, CALLS as u32);
    worker.attempt_log(AttemptLog::Off).run(async move { over.notified().await }).await?;
    let cost = meter.read().await?;
    receiver.abort();
    Ok(Figure::rate(format!("HTTP jobs, {CALLS} calls at once"), load.jobs, cost))
}

async fn receive(listener: TcpListener, jobs: usize, over: Arc<Notify>, pace: Pace) {
    let left = Arc::new(AtomicUsize::new(jobs));
    while let Ok((stream, _)) = listener.accept().await {
        let (left, over, pace) = (left.clone(), over.clone(), pace.clone());
        let answer = service_fn(move |_| {
            pace.moved(1);
            if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                over.notify_one();
            }
            std::future::ready(Ok::<_, Infallible>(hyper::Response::new(Full::new(Bytes::new()))))
        });
        // Ends with its connection, or at the latest when the process ends.
        tokio::spawn(async move {
            let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), answer)
                .await;
        });
    }
}
