//! The worker: jobs run by no-op handlers, with history kept and every commit on disk.

use super::cost::Gauge;
use super::cycle::new_job;
use super::pace::Pace;
use super::{Load, report::Figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, mpsc};
use windlass::Worker;
use windlass::client::Atomicity;
use windlass::core::policy::Partial;
use windlass::core::{Failure, Millis, Policy};
use windlass::low_level::clock::Stopwatch;
use windlass::low_level::job::NewJob;
use windlass::low_level::stores::Store;
use windlass::{Attempt, AttemptLog, JobKind, Windlass};

const BATCH: usize = 1000;
/// Jobs enqueued one by one to see how soon each is picked up.
const PICKUPS: usize = 300;

#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
struct Bench(serde_json::Value);

impl JobKind for Bench {
    const KIND: &'static str = "bench";
}

/// Counts down to the last job.
#[derive(Clone)]
struct Countdown(Arc<(AtomicUsize, Notify)>, Pace);

impl Countdown {
    fn from(jobs: usize, gauge: &Gauge) -> Self {
        Self(Arc::new((AtomicUsize::new(jobs), Notify::new())), gauge.pace.clone())
    }

    fn tick(&self) {
        self.1.moved(1);
        if self.0.0.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.1.notify_one();
        }
    }

    async fn over(self) {
        self.0.1.notified().await;
    }
}

fn worker(windlass: &Windlass, concurrency: u32) -> Worker {
    Worker::new(windlass).queue("bench", concurrency).attempt_log(AttemptLog::Off)
}

async fn fill(store: &Arc<dyn Store>, load: Load, policy: &Arc<Policy>, pace: &Pace) -> Result<()> {
    let payload = load.text();
    for start in (0..load.jobs).step_by(BATCH) {
        let jobs: Vec<NewJob> = (start..load.jobs.min(start + BATCH)).map(|_| new_job(&payload, policy)).collect();
        let count = jobs.len();
        store.enqueue(jobs, Atomicity::Each).await?;
        pace.moved(count);
    }
    Ok(())
}

fn policy(line: &str) -> Result<Arc<Policy>> {
    Ok(Arc::new(Partial::resolve(&[Partial::parse_line(line)?], &[])?))
}

/// No-op handlers drain a backlog. Returns two figures: enqueue in bulk, drain.
pub(crate) async fn drain(store: &Arc<dyn Store>, load: Load, concurrency: u32, gauge: &Gauge) -> Result<[Figure; 2]> {
    let meter = gauge.start().await?;
    fill(store, load, &policy("exponential")?, &gauge.pace).await?;
    let filled = meter.read().await?;
    let left = Countdown::from(load.jobs, gauge);
    let done = left.clone();
    let windlass = Windlass::from_store(store.clone());
    let meter = gauge.start().await?;
    let handler = move |_: Bench, _: Attempt| {
        left.tick();
        std::future::ready(Ok::<(), Failure>(()))
    };
    worker(&windlass, concurrency).handle(handler).run(done.over()).await?;
    let drained = meter.read().await?;
    let bulk = Figure::rate(format!("enqueue in bulk, batches of {BATCH}"), load.jobs, filled);
    Ok([bulk, Figure::rate(format!("drain, {} jobs", load.jobs), load.jobs, drained)])
}

/// Producers and the worker at the same time.
pub(crate) async fn sustained(store: &Arc<dyn Store>, load: Load, concurrency: u32, gauge: &Gauge) -> Result<Figure> {
    let left = Countdown::from(load.jobs, gauge);
    let done = left.clone();
    let windlass = Windlass::from_store(store.clone());
    let meter = gauge.start().await?;
    let producer = {
        let (store, policy, pace) = (store.clone(), policy("exponential")?, gauge.pace.clone());
        tokio::spawn(async move { fill(&store, load, &policy, &pace).await })
    };
    let handler = move |_: Bench, _: Attempt| {
        left.tick();
        std::future::ready(Ok::<(), Failure>(()))
    };
    worker(&windlass, concurrency).handle(handler).run(done.over()).await?;
    producer.await??;
    Ok(Figure::rate("sustained, producing and working".into(), load.jobs, meter.read().await?))
}

/// Every job fails once and is retried at once.
pub(crate) async fn storm(store: &Arc<dyn Store>, load: Load, concurrency: u32, gauge: &Gauge) -> Result<Figure> {
    fill(store, load, &policy("fixed:base=0s,jitter=none,cap=none,retries=3")?, &gauge.pace).await?;
    let left = Countdown::from(load.jobs, gauge);
    let done = left.clone();
    let windlass = Windlass::from_store(store.clone());
    let meter = gauge.start().await?;
    let handler = move |_: Bench, attempt: Attempt| {
        let answer = if attempt.retry() == 0 { Err(Failure::new("once")) } else { Ok(()) };
        if answer.is_ok() {
            left.tick();
        }
        std::future::ready(answer)
    };
    worker(&windlass, concurrency).handle(handler).run(done.over()).await?;
    Ok(Figure::rate("retry storm, each job fails once".into(), load.jobs, meter.read().await?))
}

/// How soon a single job on an idle queue starts, from the moment its enqueue was acknowledged.
pub(crate) async fn pickup(store: &Arc<dyn Store>, load: Load, gauge: &Gauge) -> Result<Figure> {
    let windlass = Windlass::from_store(store.clone());
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = move |_: Bench, _: Attempt| {
        // The receiver exists until the last job has started.
        let _ = started.send(Stopwatch::start());
        std::future::ready(Ok::<(), Failure>(()))
    };
    let over = Arc::new(Notify::new());
    let stop = over.clone();
    let (policy, payload, store, pace) = (policy("exponential")?, load.text(), store.clone(), gauge.pace.clone());
    let meter = gauge.start().await?;
    let probes = async move {
        let mut waits = Vec::with_capacity(PICKUPS);
        for _ in 0..PICKUPS {
            store.enqueue(vec![new_job(&payload, &policy)], Atomicity::Each).await?;
            let acknowledged = Stopwatch::start();
            let Some(start) = starts.recv().await else { break };
            // The job started before the caller got its answer: the wait is zero.
            let wait = acknowledged.elapsed().saturating_sub(start.elapsed());
            waits.push(wait.as_secs_f64() * 1000.0);
            pace.moved(1);
            // Wait until the system is idle again before the next job.
            tokio::time::sleep(Millis::new(5).to_std()).await;
        }
        over.notify_one();
        anyhow::Ok(waits)
    };
    let run = worker(&windlass, 10).handle(handler).run(async move { stop.notified().await });
    let (ran, waits) = tokio::join!(run, probes);
    ran?;
    let waits = waits?;
    Ok(Figure::latency("pickup on an idle queue".into(), waits.len(), meter.read().await?, waits))
}

/// The cost of a worker on a hundred idle queues.
pub(crate) async fn idle(store: &Arc<dyn Store>, span: Millis, gauge: &Gauge) -> Result<Figure> {
    let windlass = Windlass::from_store(store.clone());
    let mut worker = Worker::new(&windlass).handle(|_: Bench, _: Attempt| std::future::ready(Ok::<(), Failure>(())));
    for queue in 0..100 {
        worker = worker.queue(&format!("idle-{queue}"), 5);
    }
    let meter = gauge.start().await?;
    worker.run(tokio::time::sleep(span.to_std())).await?;
    let cost = meter.read().await?;
    let percent = cost.cpu_seconds / cost.seconds * 100.0;
    Ok(Figure::rate(format!("idle on 100 queues: {percent:.1} % of a core"), 0, cost))
}
