//! An open transaction keeps Postgres from cleaning up dead rows, and every claimed and finished job leaves some.
//! Claims must not get slower because of them.

use super::cycle::{new_job, policy, succeed};
use crate::bench::cost::Gauge;
use crate::bench::{Load, report::Figure};
use anyhow::Result;
use std::sync::Arc;
use tokio_postgres::NoTls;
use windlass::Random;
use windlass::client::{Atomicity, WorkerId};
use windlass::core::job::{QueueName, Tenant};
use windlass::core::{Executor, Millis};
use windlass::low_level::clock::Stopwatch;
use windlass::low_level::job::{LeaseId, QueueId};
use windlass::low_level::stores::{Claim, Leases, Share, Store};

/// In every interval, this many jobs are enqueued, claimed and finished: 2,000 a second.
const BEAT: Millis = Millis::new(50);
const JOBS: usize = 100;
/// The length of one reported period.
const STRETCH: Millis = Millis::from_secs(30);

/// Claim times per period, while a reader keeps its transaction open.
pub(crate) async fn claims(
    store: &Arc<dyn Store>,
    url: &str,
    load: Load,
    lasts: Millis,
    gauge: &Gauge,
) -> Result<Vec<Figure>> {
    let (reader, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    reader.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class").await?;
    let queue = store.register_queue(&Tenant::default(), &QueueName::new("horizon")?, Executor::Worker).await?.id;
    let mut figures = Vec::new();
    let whole = Stopwatch::start();
    while whole.elapsed() < lasts.to_std() {
        let since = whole.elapsed().as_secs();
        let meter = gauge.start().await?;
        let mut waits = Vec::new();
        let watch = Stopwatch::start();
        while watch.elapsed() < STRETCH.to_std() {
            let beat = Stopwatch::start();
            waits.push(one_beat(store, queue, load).await?);
            gauge.pace.moved(JOBS);
            tokio::time::sleep(BEAT.to_std().saturating_sub(beat.elapsed())).await;
        }
        let (jobs, cost) = (waits.len() * JOBS, meter.read().await?);
        let what = format!("claim of {JOBS} with an open transaction, from {since} s");
        figures.push(Figure::latency(what, jobs, cost, waits));
    }
    reader.batch_execute("ROLLBACK").await?;
    drop(reader);
    connection.await??;
    Ok(figures)
}

/// Jobs are enqueued, claimed and succeed. Returns how long the claim took, in milliseconds.
async fn one_beat(store: &Arc<dyn Store>, queue: QueueId, load: Load) -> Result<f64> {
    let (policy, payload) = (policy(), load.text());
    let new = || windlass::low_level::job::NewJob {
        queue: QueueName::new("horizon").expect("horizon is a queue"),
        ..new_job(&payload, &policy)
    };
    store.enqueue((0..JOBS).map(|_| new()).collect(), Atomicity::Each).await?;
    let worker = WorkerId::new("bench");
    let lease = LeaseId::draw(&Random::system());
    let claim = Claim {
        worker: worker.clone(),
        leases: Leases::Shared(lease),
        lease_for: Millis::from_secs(30),
        shares: vec![Share { queue, slots: JOBS as u32, ahead: 0 }],
        limit: JOBS as u32,
        suspects: 1,
        kinds: None,
    };
    let watch = Stopwatch::start();
    let claimed = store.claim(claim).await?.jobs;
    let took = watch.elapsed().as_secs_f64() * 1000.0;
    let commits = claimed.iter().map(|job| succeed(job, &worker)).collect();
    store.commit(commits, vec![lease]).await?;
    Ok(took)
}
