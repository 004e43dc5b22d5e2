//! Pace: how many jobs per second a scenario processes while it runs, for the progress bar.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use windlass::low_level::clock::Stopwatch;

/// How long jobs are counted before the rate is updated.
const EVERY: Duration = Duration::from_secs(1);

/// Counts processed jobs: stored, run, or finished.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace(Arc<AtomicU64>);

impl Pace {
    pub(crate) fn moved(&self, jobs: usize) {
        self.0.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(crate) fn watch(&self) -> Watch {
        Watch { pace: self.clone(), last: Mutex::new(Reading { watch: Stopwatch::start(), moved: 0, rate: 0.0 }) }
    }
}

/// Reads a pace repeatedly.
#[derive(Debug)]
pub(crate) struct Watch {
    pace: Pace,
    last: Mutex<Reading>,
}

#[derive(Debug)]
struct Reading {
    watch: Stopwatch,
    moved: u64,
    rate: f64,
}

impl Watch {
    /// Recent jobs per second.
    pub(crate) fn rate(&self) -> f64 {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = last.watch.elapsed();
        if passed >= EVERY {
            let moved = self.pace.0.load(Ordering::Relaxed);
            let rate = (moved - last.moved) as f64 / passed.as_secs_f64();
            *last = Reading { watch: Stopwatch::start(), moved, rate };
        }
        last.rate
    }
}
