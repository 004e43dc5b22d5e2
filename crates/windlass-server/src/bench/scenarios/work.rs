//! The worker: jobs run by no-op handlers, with history kept and every commit on disk.

use crate::bench::cost::Gauge;
use crate::bench::load::{BATCH, Bench, Load, fill};
use crate::bench::pace::Pace;
use crate::bench::raw::Step;
use crate::bench::report::Figure;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;
use windlass::core::{Executor, Failure, Millis};
use windlass::{Attempt, AttemptLog, Windlass, Worker};

/// The queue of jobs that name none.
const QUEUE: &str = "default";
/// The library's default policy, and one that retries at once.
pub(in crate::bench) const POLICY: &str = "exponential";
const AT_ONCE: &str = "fixed:base=0s,jitter=none,cap=none,retries=3";
/// Payloads of the scenario `payload`, in bytes.
const LARGE: usize = 4096;

/// Counts jobs until enough have run. A worker that stops still finishes what it has claimed, so it may run more.
#[derive(Clone)]
pub(in crate::bench) struct Countdown(Arc<Count>, Pace);

struct Count {
    wanted: usize,
    ran: AtomicUsize,
    enough: Notify,
}

impl Countdown {
    pub(in crate::bench) fn from(jobs: usize, gauge: &Gauge) -> Self {
        let count = Count { wanted: jobs, ran: AtomicUsize::new(0), enough: Notify::new() };
        Self(Arc::new(count), gauge.pace.clone())
    }

    pub(in crate::bench) fn tick(&self) {
        self.1.moved(1);
        if self.0.ran.fetch_add(1, Ordering::Relaxed) + 1 == self.0.wanted {
            self.0.enough.notify_one();
        }
    }

    pub(in crate::bench) async fn over(self) {
        self.0.enough.notified().await;
    }

    fn ran(&self) -> usize {
        self.0.ran.load(Ordering::Relaxed)
    }
}

/// What a worker's scenarios share.
#[derive(Clone, Copy)]
pub(in crate::bench) struct Bed<'a> {
    pub(in crate::bench) windlass: &'a Windlass,
    pub(in crate::bench) load: Load,
    pub(in crate::bench) concurrency: u32,
    pub(in crate::bench) gauge: &'a Gauge,
}

impl Bed<'_> {
    pub(in crate::bench) fn worker(&self) -> Worker {
        Worker::new(self.windlass).all_queues(Executor::Worker, self.concurrency).attempt_log(AttemptLog::Off)
    }

    /// Stores the load. Returns its figure.
    pub(in crate::bench) async fn fill(&self, queues: &[String], retry: &str) -> Result<Figure> {
        let meter = self.gauge.start().await?;
        fill(self.windlass, self.load, queues, retry, &self.gauge.pace).await?;
        let what = format!("enqueue in bulk, {BATCH} a call");
        Ok(Figure::rate(what, self.load.jobs, meter.read().await?).of_step(Step::Bulk))
    }

    /// Runs at least `jobs` of the stored jobs with no-op handlers. The figure says how many ran.
    pub(in crate::bench) async fn run(&self, what: String, jobs: usize) -> Result<Figure> {
        let count = Countdown::from(jobs, self.gauge);
        let ticking = count.clone();
        let handler = move |_: Bench, _: Attempt| {
            ticking.tick();
            std::future::ready(Ok::<(), Failure>(()))
        };
        let meter = self.gauge.start().await?;
        self.worker().handle(handler).run(count.clone().over()).await?;
        Ok(Figure::rate(what, count.ran(), meter.read().await?).of_step(Step::Drain))
    }
}

pub(in crate::bench) fn default_queue() -> Vec<String> {
    vec![QUEUE.to_owned()]
}

/// No-op handlers drain a backlog. Returns two figures: enqueue in bulk, drain.
pub(in crate::bench) async fn drain(bed: Bed<'_>) -> Result<[Figure; 2]> {
    let filled = bed.fill(&default_queue(), POLICY).await?;
    let drained = bed.run(format!("drain, {} jobs", bed.load.jobs), bed.load.jobs).await?;
    Ok([filled, drained])
}

/// Producers and the worker at the same time.
pub(in crate::bench) async fn sustained(bed: Bed<'_>) -> Result<Figure> {
    let producer = {
        let (windlass, load, pace) = (bed.windlass.clone(), bed.load, bed.gauge.pace.clone());
        tokio::spawn(async move { fill(&windlass, load, &default_queue(), POLICY, &pace).await })
    };
    let figure = bed.run("sustained, producing and working".into(), bed.load.jobs).await?;
    producer.await??;
    Ok(figure)
}

/// Every job fails once and is retried at once. Compared to a drain of as many jobs.
pub(in crate::bench) async fn retries(bed: Bed<'_>) -> Result<Vec<Figure>> {
    let [_, drained] = drain(bed).await?;
    bed.fill(&default_queue(), AT_ONCE).await?;
    let left = Countdown::from(bed.load.jobs, bed.gauge);
    let done = left.clone();
    let handler = move |_: Bench, attempt: Attempt| {
        let answer = if attempt.retry() == 0 { Err(Failure::new("once")) } else { Ok(()) };
        if answer.is_ok() {
            left.tick();
        }
        std::future::ready(answer)
    };
    let meter = bed.gauge.start().await?;
    bed.worker().handle(handler).run(done.over()).await?;
    let retried = Figure::rate("retries, each job fails once".into(), bed.load.jobs, meter.read().await?);
    Ok(vec![retried.of(&drained)])
}

/// Large payloads, compared to as many of the load's own.
pub(in crate::bench) async fn payload(bed: Bed<'_>) -> Result<Vec<Figure>> {
    let of = |payload| Bed { load: Load { payload, jobs: (bed.load.jobs / 4).max(1) }, ..bed };
    let [small_in, small_out] = drain(of(bed.load.payload)).await?;
    let [large_in, large_out] = drain(of(LARGE)).await?;
    let named = |what: &str, large: Figure, small: Figure| {
        let small = Figure { what: format!("{what}, {} bytes", bed.load.payload), ..small };
        Figure { what: format!("{what}, {LARGE} bytes of payload"), ..large }.of(&small)
    };
    Ok(vec![named("enqueue in bulk", large_in, small_in), named("drain", large_out, small_out)])
}

/// The cost of a worker on a hundred idle queues.
pub(in crate::bench) async fn idle(bed: Bed<'_>, span: Millis) -> Result<Figure> {
    let mut worker = Worker::new(bed.windlass).handle(|_: Bench, _: Attempt| std::future::ready(Ok::<(), Failure>(())));
    for queue in 0..100 {
        worker = worker.queue(&format!("idle-{queue}"), 5);
    }
    let meter = bed.gauge.start().await?;
    worker.run(tokio::time::sleep(span.to_std())).await?;
    let cost = meter.read().await?;
    let percent = cost.cpu_seconds / cost.seconds * 100.0;
    Ok(Figure::rate(format!("idle on 100 queues: {percent:.1} % of a core"), 0, cost))
}
