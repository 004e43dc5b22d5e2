//! Pickup: how soon a single job on an idle queue starts, from the moment its enqueue was acknowledged. The claim in
//! between is itself a durable commit.

use super::work::Bed;
use crate::bench::load::Bench;
use crate::bench::report::{Against, Figure};
use anyhow::Result;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};
use windlass::core::{Failure, Millis};
use windlass::low_level::clock::Stopwatch;
use windlass::{Attempt, AttemptLog, Worker};

/// Jobs enqueued one by one.
const PICKUPS: usize = 300;
/// How long to wait until the system is idle again.
const PAUSE: Millis = Millis::new(5);

pub(in crate::bench) async fn pickup(bed: Bed<'_>) -> Result<Figure> {
    let (started, mut starts) = mpsc::unbounded_channel();
    let handler = move |_: Bench, _: Attempt| {
        // The receiver exists until the last job has started.
        let _ = started.send(Stopwatch::start());
        std::future::ready(Ok::<(), Failure>(()))
    };
    let over = Arc::new(Notify::new());
    let stop = over.clone();
    let (windlass, load, pace) = (bed.windlass.clone(), bed.load, bed.gauge.pace.clone());
    let meter = bed.gauge.start().await?;
    let probes = async move {
        let mut waits = Vec::with_capacity(PICKUPS);
        for _ in 0..load.jobs.min(PICKUPS) {
            windlass.enqueue(load.job()).await?;
            let acknowledged = Stopwatch::start();
            let Some(start) = starts.recv().await else { break };
            // The job started before the caller got its answer: the wait is zero.
            let wait = acknowledged.elapsed().saturating_sub(start.elapsed());
            waits.push(wait.as_secs_f64() * 1000.0);
            pace.moved(1);
            tokio::time::sleep(PAUSE.to_std()).await;
        }
        over.notify_one();
        anyhow::Ok(waits)
    };
    let worker = Worker::new(bed.windlass).attempt_log(AttemptLog::Off).handle(handler);
    let run = worker.run(async move { stop.notified().await });
    let (ran, waits) = tokio::join!(run, probes);
    ran?;
    let waits = waits?;
    let figure = Figure::latency("pickup on an idle queue".into(), waits.len(), meter.read().await?, waits);
    Ok(figure.against(Against::OneCommit))
}
