//! The only place that reads the time. A store's clock is used for everything in it; tests move it by hand.
#![allow(clippy::disallowed_methods)] // The lint points to this file.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use windlass_core::{Millis, Timestamp};

/// Reads the time and waits for it to pass.
#[derive(Debug, Clone)]
pub struct Clock(Source);

#[derive(Debug, Clone)]
enum Source {
    System(Arc<System>),
    Manual(Arc<Manual>),
}

#[derive(Debug)]
struct System {
    started: Instant,
    /// The time that `started` stands for, corrected when the store's own clock differs.
    origin: Mutex<Timestamp>,
}

#[derive(Debug)]
struct Manual {
    now: watch::Sender<Timestamp>,
    started: Timestamp,
}

impl Clock {
    /// The system clock. It runs on the monotonic clock from its first reading on, so it never goes back.
    #[must_use]
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = Timestamp::EPOCH + Millis::from(since_epoch);
        Self(Source::System(Arc::new(System { started: Instant::now(), origin: Mutex::new(origin) })))
    }

    /// A clock that stands still until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Manual { now: watch::Sender::new(start), started: start })))
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(system) => *lock(&system.origin) + Millis::from(system.started.elapsed()),
            Source::Manual(manual) => *manual.now.borrow(),
        }
    }

    /// Time since this clock was created, by the monotonic clock. Leases and store contact are measured with it.
    #[must_use]
    pub fn monotonic(&self) -> Millis {
        match &self.0 {
            Source::System(system) => Millis::from(system.started.elapsed()),
            Source::Manual(manual) => manual.now.borrow().since(manual.started),
        }
    }

    /// The time a test has set; `None` on the system clock, where a database reads its own.
    #[must_use]
    pub fn fixed(&self) -> Option<Timestamp> {
        match &self.0 {
            Source::System(_) => None,
            Source::Manual(manual) => Some(*manual.now.borrow()),
        }
    }

    /// Adjusts to the time of the store's server. Ignored where a test sets the time.
    pub fn follow(&self, server_now: Timestamp) {
        if let Source::System(system) = &self.0 {
            let elapsed = Millis::from(system.started.elapsed());
            *lock(&system.origin) = server_now - elapsed;
        }
    }

    /// Waits until `moment`. Cancel-safe.
    pub async fn sleep_until(&self, moment: impl Into<Timestamp>) {
        let moment = moment.into();
        match &self.0 {
            Source::System(_) => loop {
                let left = moment.since(self.now());
                if left.is_zero() {
                    return;
                }
                // The clock may be corrected during the sleep, so check again after an hour at the latest.
                tokio::time::sleep(left.min(Millis::from_secs(3600)).to_std()).await;
            },
            Source::Manual(manual) => {
                let mut now = manual.now.subscribe();
                // The sender lives in `manual`, which this future borrows: waiting cannot fail.
                let _ = now.wait_for(|now| *now >= moment).await;
            }
        }
    }

    /// Waits for `span` to pass. Cancel-safe.
    pub async fn sleep(&self, span: impl Into<Millis>) {
        self.sleep_until(self.now() + span.into()).await;
    }

    /// Moves a manual clock forward. Does nothing to the system clock.
    pub fn advance(&self, span: impl Into<Millis>) {
        let span = span.into();
        if let Source::Manual(manual) = &self.0 {
            manual.now.send_modify(|now| *now = *now + span);
        }
    }
}

fn lock(origin: &Mutex<Timestamp>) -> MutexGuard<'_, Timestamp> {
    origin.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Measures how long something takes, with a finer resolution than [`Clock`]: for benchmarks and histograms.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts to measure.
    #[must_use]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// The time since the start.
    #[must_use]
    pub fn elapsed(&self) -> std::time::Duration {
        self.0.elapsed()
    }
}
