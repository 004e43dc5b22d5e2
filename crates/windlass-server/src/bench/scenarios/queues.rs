//! Many queues: a drain of one, ten and a hundred queues, and how evenly a hundred are served.

use super::work::{Bed, Countdown, POLICY};
use crate::bench::load::Bench;
use crate::bench::raw::Step;
use crate::bench::report::Figure;
use anyhow::Result;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass::Attempt;
use windlass::core::Failure;
use windlass::low_level::job::QueueId;

const COUNTS: [usize; 3] = [1, 10, 100];
/// Queues of the scenario `fairness`.
const EQUAL: usize = 100;

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}-{n}")).collect()
}

/// The same jobs on more and more queues, compared to one queue.
pub(in crate::bench) async fn queues(bed: Bed<'_>) -> Result<Vec<Figure>> {
    let mut figures: Vec<Figure> = Vec::new();
    for count in COUNTS {
        bed.fill(&names(&format!("of-{count}"), count), POLICY).await?;
        let figure = bed.run(format!("drain, queues: {count}"), bed.load.jobs).await?;
        figures.push(match figures.first() {
            Some(one) => figure.of(one),
            None => figure,
        });
    }
    Ok(figures)
}

/// The first jobs that were done, by queue.
#[derive(Default)]
struct Done {
    all: usize,
    by_queue: HashMap<QueueId, usize>,
}

impl Done {
    fn count(&mut self, attempt: &Attempt, most: usize) {
        if self.all < most {
            self.all += 1;
            *self.by_queue.entry(attempt.job().queue_id).or_default() += 1;
        }
    }

    fn spread(&self) -> (usize, usize) {
        let least = if self.by_queue.len() < EQUAL { None } else { self.by_queue.values().min() };
        (least.copied().unwrap_or(0), self.by_queue.values().max().copied().unwrap_or(0))
    }
}

/// Equal backlogs on a hundred queues: how many jobs of each are done when half of all are.
pub(in crate::bench) async fn fairness(bed: Bed<'_>) -> Result<Figure> {
    bed.fill(&names("fair", EQUAL), POLICY).await?;
    let half = bed.load.jobs / 2;
    let done: Arc<Mutex<Done>> = Arc::default();
    let left = Countdown::from(bed.load.jobs, bed.gauge);
    let over = left.clone();
    let handler = {
        let done = done.clone();
        move |_: Bench, attempt: Attempt| {
            done.lock().unwrap_or_else(PoisonError::into_inner).count(&attempt, half);
            left.tick();
            std::future::ready(Ok::<(), Failure>(()))
        }
    };
    let meter = bed.gauge.start().await?;
    bed.worker().handle(handler).run(over.over()).await?;
    let cost = meter.read().await?;
    let done = done.lock().unwrap_or_else(PoisonError::into_inner);
    let (least, most) = done.spread();
    let what = format!("fairness: {least} to {most} of {} done on {EQUAL} queues", half / EQUAL);
    Ok(Figure::rate(what, bed.load.jobs, cost).of_step(Step::Drain))
}
