//! Enqueue through the library: one job per call by several callers at once.

use crate::bench::cost::Gauge;
use crate::bench::load::Load;
use crate::bench::raw::Step;
use crate::bench::report::Figure;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;
use windlass::Windlass;

/// Callers that enqueue one job at a time.
pub(in crate::bench) const CALLERS: [usize; 3] = [1, 16, 64];
/// Jobs per caller: each waits for its commit, so few are enough.
const PER_CALLER: usize = 300;

/// How many jobs `callers` enqueue.
pub(in crate::bench) fn jobs(load: Load, callers: usize) -> usize {
    load.jobs.min(callers * PER_CALLER)
}

/// One job per call, by `callers` at once; group commit is for this load.
pub(in crate::bench) async fn singly(windlass: &Windlass, load: Load, callers: usize, gauge: &Gauge) -> Result<Figure> {
    let jobs = jobs(load, callers);
    let left = Arc::new(AtomicUsize::new(jobs));
    let meter = gauge.start().await?;
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        let (windlass, left, pace, job) = (windlass.clone(), left.clone(), gauge.pace.clone(), load.job());
        tasks.spawn(async move {
            while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                windlass.enqueue(job.clone()).await?;
                pace.moved(1);
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let step = if callers == 1 { Step::Insert } else { Step::Inserts };
    let what = format!("enqueue one by one, callers: {callers}");
    Ok(Figure::rate(what, jobs, meter.read().await?).of_step(step))
}
