//! Upkeep: reap, expire, fire schedules, prune, judge alerts. Any node may do it, and no leader is elected. Each node
//! does it at slightly different times.

mod alerts;
mod expire;
mod prune;
mod reap;
pub mod schedules;
#[cfg(feature = "sealing")]
mod seal;
mod set_back;

use crate::alert::{Alerts, Judge};
use crate::client::windlass::Windlass;
use crate::event::Reporter;
use crate::wake::Waker;
use tokio_util::sync::CancellationToken;
use windlass_core::Millis;

/// How often expired leases are looked for. This also keeps an idle node in contact with its store: an outage between
/// two looks is shorter than [`Spared::SHORT`](crate::store::Spared::SHORT).
const REAP_EVERY: Millis = Millis::from_secs(1);
/// How often expired jobs, and schedules changed without a wake-up, are looked for.
const TICK: Millis = Millis::from_secs(5);
/// How often the archive is pruned.
const PRUNE_EVERY: Millis = Millis::from_secs(60);
/// After a wake-up, schedules are read again, but no more often than this.
const WAKE_GAP: Millis = Millis::from_secs(1);
/// Items per call of each kind of upkeep.
const BATCH: u32 = 500;
/// Calls in a row of each kind of upkeep. The next tick continues.
const ROUNDS: u32 = 20;

/// Does the upkeep of a store until it is stopped.
#[derive(Debug)]
pub struct Keeper {
    windlass: Windlass,
    reporter: Reporter,
    waker: Waker,
    judge: Option<Judge>,
    #[cfg(feature = "sealing")]
    walk: seal::Walk,
}

impl Keeper {
    pub(crate) fn new(windlass: Windlass, reporter: Reporter) -> Self {
        let waker = windlass.store().wake().subscribe();
        Self {
            windlass,
            reporter,
            waker,
            judge: None,
            #[cfg(feature = "sealing")]
            walk: seal::Walk::default(),
        }
    }

    /// Upkeep for a process without a worker.
    #[must_use]
    pub fn of(windlass: &Windlass) -> Self {
        Self::new(windlass.clone(), windlass.inner().reporter("upkeep".into()))
    }

    /// Judges these alert rules too, at their own interval.
    #[must_use]
    pub fn alerts(mut self, alerts: Option<Alerts>) -> Self {
        self.judge = alerts.map(Judge::new);
        self
    }

    /// Runs until it is stopped.
    pub async fn run(mut self, stop: CancellationToken) {
        let clock = self.windlass.clock().clone();
        let start = clock.monotonic();
        let (mut next_reap, mut next_expire, mut next_look, mut looked_at) = (start, start, start, start);
        let (mut next_firing, mut set_back, mut moving) = (None, None, set_back::Walk::Over);
        let mut next_prune = start + self.jittered(PRUNE_EVERY);
        let mut next_alert = self.judge.is_some().then_some(start);
        while !stop.is_cancelled() {
            let now = clock.monotonic();
            if now >= next_reap {
                reap::reap(&self.windlass, &self.reporter).await;
                next_reap = clock.monotonic() + self.jittered(REAP_EVERY);
            }
            if now >= next_expire {
                expire::expire(&self.windlass, &self.reporter).await;
                self.seal().await;
                next_expire = clock.monotonic() + self.jittered(TICK);
            }
            if now >= next_prune {
                prune::prune(&self.windlass).await;
                next_prune = clock.monotonic() + self.jittered(PRUNE_EVERY);
            }
            if next_alert.is_some_and(|at| now >= at) {
                self.judge().await;
                next_alert = self.judge.as_ref().map(|judge| clock.monotonic() + self.jittered(judge.every()));
            }
            // The first time, because the clock may have been set back while no node was running.
            let back = Some(clock.changes().back);
            if std::mem::replace(&mut set_back, back) != back {
                schedules::after_set_back(&self.windlass).await;
                (next_look, moving) = (now, set_back::Walk::START);
            }
            let is_moving = !moving.is_over() && moving.go_on(&self.windlass).await;
            if now >= next_look || next_firing.is_some_and(|at| clock.now() >= at) {
                next_firing = schedules::fire_due(&self.windlass).await;
                looked_at = clock.monotonic();
                next_look = looked_at + self.jittered(TICK);
            }
            let soonest = next_reap.min(next_expire).min(next_prune).min(next_look);
            let soonest = next_alert.map_or(soonest, |at| at.min(soonest));
            let soonest = if is_moving { now } else { soonest };
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(soonest - clock.monotonic()) => continue,
                () = clock.due(next_firing) => continue,
                () = self.waker.rung() => {}
            }
            next_look = next_look.min(looked_at + WAKE_GAP);
            let pause = soonest.min(next_look) - clock.monotonic();
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(pause) => {}
                () = clock.due(next_firing) => {}
            }
        }
    }

    /// One round of everything that is due regularly.
    pub async fn tick(&self) {
        reap::reap(&self.windlass, &self.reporter).await;
        expire::expire(&self.windlass, &self.reporter).await;
    }

    /// Seals jobs that came in clear.
    #[cfg_attr(not(feature = "sealing"), allow(clippy::unused_async, clippy::needless_pass_by_ref_mut))]
    async fn seal(&mut self) {
        #[cfg(feature = "sealing")]
        self.walk.go_on(&self.windlass).await;
    }

    /// Judges the alert rules once, if there are any.
    pub async fn judge(&mut self) {
        if let Some(judge) = &mut self.judge {
            alerts::judge(&self.windlass, judge).await;
        }
    }

    /// Does everything at once, for tests that control the clock.
    #[cfg(feature = "testing")]
    pub(crate) async fn all(mut self) {
        self.tick().await;
        schedules::fire_due(&self.windlass).await;
        prune::prune(&self.windlass).await;
        self.seal().await;
        self.judge().await;
    }

    /// Between 90 % and 110 % of a span, so that nodes do not run in step.
    fn jittered(&self, span: Millis) -> Millis {
        let tenth = span.get() / 10;
        Millis::new(span.get() - tenth + self.windlass.random().number() % (2 * tenth).max(1))
    }
}
