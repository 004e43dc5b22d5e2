//! The store by itself: all steps of a job through `trait Store`, in batches, by several callers at once.

use crate::bench::cost::{Cost, Gauge};
use crate::bench::pace::Pace;
use crate::bench::raw::Step;
use crate::bench::{Load, report::Figure};
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;
use windlass::Random;
use windlass::client::{Atomicity, WorkerId};
use windlass::core::job::{Kind, QueueName, Tenant};
use windlass::core::policy::{Partial, Role};
use windlass::core::{Executor, Millis, Outcome, Policy, Roll};
use windlass::low_level::job::{ClaimedJob, LeaseId, NewJob, QueueId, RunAt};
use windlass::low_level::leases::transition::{Trace, commit_of};
use windlass::low_level::stores::{Claim, Leases, Share, Store};

/// The queue that benchmarks use.
const QUEUE: &str = "bench";

pub(in crate::bench) fn new_job(payload: &str, policy: &Arc<Policy>) -> NewJob {
    let kind = Kind::new("bench").expect("bench is a kind");
    let queue = QueueName::new(QUEUE).expect("bench is a queue");
    NewJob { queue, ..NewJob::new(kind, payload, policy.clone()) }
}

pub(in crate::bench) fn policy() -> Arc<Policy> {
    let whole = Partial::resolve(&[Role::Handler.default_policy()], &[]);
    Arc::new(whole.expect("the default policy is whole"))
}

/// Enqueues all jobs, then claims and commits them, in batches of `batch`, by `callers` at once. Returns two figures.
pub(crate) async fn cycle(
    store: &Arc<dyn Store>,
    load: Load,
    batch: usize,
    callers: usize,
    gauge: &Gauge,
) -> Result<[Figure; 2]> {
    let queue = store.register_queue(&Tenant::default(), &QueueName::new(QUEUE)?, Executor::Worker).await?.id;
    let meter = gauge.start().await?;
    fill(store, load, batch, callers, RunAt::Now, &gauge.pace).await?;
    let filled = meter.read().await?;
    let drained = drain(store, queue, load.jobs, batch, callers, gauge).await?;
    let figure =
        |what: &str, cost| Figure::rate(format!("{what}, batches of {batch}, callers: {callers}"), load.jobs, cost);
    Ok([figure("store insert", filled).of_step(Step::Bulk), figure("store drain", drained).of_step(Step::Drain)])
}

/// Enqueues jobs for tomorrow: they must not slow down claims.
pub(crate) async fn future_load(store: &Arc<dyn Store>, load: Load, gauge: &Gauge) -> Result<Figure> {
    let meter = gauge.start().await?;
    fill(store, load, 1000, 2, RunAt::After(Millis::from_secs(86_400)), &gauge.pace).await?;
    Ok(Figure::rate("enqueue for tomorrow".into(), load.jobs, meter.read().await?))
}

async fn fill(
    store: &Arc<dyn Store>,
    load: Load,
    batch: usize,
    callers: usize,
    run_at: RunAt,
    pace: &Pace,
) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(load.jobs));
    let (policy, payload) = (policy(), load.text());
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (store, left, pace) = (store.clone(), left.clone(), pace.clone());
        let (policy, payload) = (policy.clone(), payload.clone());
        tasks.spawn(async move {
            while let Some(count) = take(&left, batch) {
                let jobs = (0..count).map(|_| NewJob { run_at, ..new_job(&payload, &policy) }).collect();
                store.enqueue(jobs, Atomicity::Each).await?;
                pace.moved(count);
            }
            anyhow::Ok(())
        });
    }
    join(tasks).await
}

async fn drain(
    store: &Arc<dyn Store>,
    queue: QueueId,
    jobs: usize,
    batch: usize,
    callers: usize,
    gauge: &Gauge,
) -> Result<Cost> {
    let left = Arc::new(AtomicUsize::new(jobs));
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for caller in 0..callers {
        let (store, left, pace) = (store.clone(), left.clone(), gauge.pace.clone());
        tasks.spawn(async move {
            let worker = WorkerId::new(&format!("bench-{caller}"));
            let random = Random::system();
            while left.load(Ordering::Relaxed) > 0 {
                let lease = LeaseId::draw(&random);
                let claim = Claim {
                    worker: worker.clone(),
                    leases: Leases::Shared(lease),
                    lease_for: Millis::from_secs(30),
                    shares: vec![Share { queue, slots: batch as u32, ahead: 0 }],
                    limit: batch as u32,
                    suspects: 1,
                    kinds: None,
                };
                let claimed = store.claim(claim).await?.jobs;
                let commits = claimed.iter().map(|job| succeed(job, &worker)).collect::<Vec<_>>();
                let done = store.commit(commits, vec![lease]).await?.len();
                pace.moved(done);
                let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(done)));
            }
            anyhow::Ok(())
        });
    }
    join(tasks).await?;
    meter.read().await
}

pub(in crate::bench) fn succeed(job: &ClaimedJob, worker: &WorkerId) -> windlass::low_level::stores::Commit {
    let started_at = job.claimed_at.unwrap_or(job.due_at);
    let trace = Trace { started_at, finished_at: started_at, worker: worker.to_string(), ..Trace::default() };
    commit_of(job, &Outcome::Succeeded, trace, Roll(0))
}

/// Takes up to `batch` jobs from the rest.
fn take(left: &AtomicUsize, batch: usize) -> Option<usize> {
    let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(batch)));
    before.ok().filter(|n| *n > 0).map(|n| n.min(batch))
}

async fn join(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}
