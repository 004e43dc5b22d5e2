//! The only place that reads the time. A store's clock is used for everything in it; tests move it by hand.
#![allow(clippy::disallowed_methods)] // The lint points to this file.

mod machine;
mod system;

pub use machine::{Machine, SetMachine, ThisMachine};
pub use system::ClockChanges;

use std::sync::Arc;
use std::time::Instant;
use system::System;
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
struct Manual {
    now: watch::Sender<Timestamp>,
    started: Timestamp,
}

impl Clock {
    /// The system clock. It starts with the machine's time of day and then follows the store: the server of a Postgres
    /// store, or the time that the processes of a SQLite file agree on.
    #[must_use]
    pub fn system() -> Self {
        Self::of(Arc::new(ThisMachine))
    }

    /// The clock of another machine, which tests set.
    #[must_use]
    pub fn of(machine: Arc<dyn Machine>) -> Self {
        Self(Source::System(Arc::new(System::new(machine))))
    }

    /// A clock that stands still until [`Clock::advance`] moves it.
    #[must_use]
    pub fn manual(start: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(Manual { now: watch::Sender::new(start), started: start })))
    }

    /// The time now. It may go back, when somebody sets the clock back.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(system) => system.now(),
            Source::Manual(manual) => *manual.now.borrow(),
        }
    }

    /// Time since this clock was created. It never goes back, and goes on while the machine sleeps. Leases, intervals
    /// and store contact are measured with it.
    #[must_use]
    pub fn monotonic(&self) -> Millis {
        match &self.0 {
            Source::System(system) => system.elapsed(),
            Source::Manual(manual) => manual.now.borrow().since(manual.started),
        }
    }

    /// The time since the machine started, the same in every process, in milliseconds.
    #[must_use]
    pub fn boot(&self) -> i64 {
        match &self.0 {
            Source::System(system) => i64::try_from(system.boot().get()).unwrap_or(i64::MAX),
            Source::Manual(manual) => manual.now.borrow().as_millis(),
        }
    }

    /// A name of this start of the machine: [`Clock::boot`] can be compared only under the same name.
    #[must_use]
    pub fn boot_id(&self) -> String {
        match &self.0 {
            Source::System(system) => system.boot_id(),
            Source::Manual(_) => "manual".into(),
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

    /// Follows the clock of the store's server, which was read after [`Clock::monotonic`] said `asked`. Ignored where
    /// a test sets the time.
    pub fn follow(&self, server_now: Timestamp, asked: Millis) {
        if let Source::System(system) = &self.0 {
            system.follow(server_now, asked);
        }
    }

    /// Reads the machine's time of day: how far it is ahead of [`Clock::boot`], in milliseconds.
    #[must_use]
    pub fn look(&self) -> i64 {
        match &self.0 {
            Source::System(system) => system.look(),
            Source::Manual(_) => 0,
        }
    }

    /// Uses this difference to [`Clock::boot`] from now on. A change is logged and counted as a step of the clock.
    pub fn set_ahead(&self, ahead: i64) {
        if let Source::System(system) = &self.0 {
            system.set(ahead);
        }
    }

    /// Uses this difference from the beginning.
    pub fn start_ahead(&self, ahead: i64) {
        if let Source::System(system) = &self.0 {
            system.start_at(ahead);
        }
    }

    /// How often the clock was set, or the machine slept.
    #[must_use]
    pub fn changes(&self) -> ClockChanges {
        match &self.0 {
            Source::System(system) => system.changes(),
            Source::Manual(_) => ClockChanges::default(),
        }
    }

    /// How long ago the clock was set last.
    #[must_use]
    pub fn since_step(&self) -> Option<Millis> {
        match &self.0 {
            Source::System(system) => system.since_step(),
            Source::Manual(_) => None,
        }
    }

    /// Waits until `moment`, also if the clock is set meanwhile. Cancel-safe.
    pub async fn sleep_until(&self, moment: impl Into<Timestamp>) {
        let moment = moment.into();
        match &self.0 {
            Source::System(system) => system.wait(|system| moment.since(system.now())).await,
            Source::Manual(manual) => {
                let mut now = manual.now.subscribe();
                // The sender lives in `manual`, which this future borrows: waiting cannot fail.
                let _ = now.wait_for(|now| *now >= moment).await;
            }
        }
    }

    /// Waits until `moment`, or for ever if there is none. Cancel-safe.
    pub async fn due(&self, moment: Option<Timestamp>) {
        match moment {
            Some(moment) => self.sleep_until(moment).await,
            None => std::future::pending().await,
        }
    }

    /// Waits for `span` to pass, whatever happens to the time of day. Cancel-safe.
    pub async fn sleep(&self, span: impl Into<Millis>) {
        let span = span.into();
        match &self.0 {
            Source::System(system) => {
                let end = system.elapsed() + span;
                system.wait(|system| end - system.elapsed()).await;
            }
            Source::Manual(_) => self.sleep_until(self.now() + span).await,
        }
    }

    /// Moves a manual clock forward. Does nothing to the system clock.
    pub fn advance(&self, span: impl Into<Millis>) {
        let span = span.into();
        if let Source::Manual(manual) = &self.0 {
            manual.now.send_modify(|now| *now = *now + span);
        }
    }
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
