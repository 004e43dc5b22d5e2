//! A copy of something the store holds, renewed by whoever finds it old.

use super::problem::Problem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::clock::Clock;
use windlass_core::Millis;

#[derive(Debug)]
pub(crate) struct Cached<T> {
    clock: Clock,
    refresh_after: Millis,
    stale_after: Millis,
    copy: Mutex<Option<(Millis, Arc<T>)>>,
    refreshing: AtomicBool,
}

impl<T> Cached<T> {
    pub(crate) const fn new(clock: Clock, refresh_after: Millis, stale_after: Millis) -> Self {
        Self { clock, refresh_after, stale_after, copy: Mutex::new(None), refreshing: AtomicBool::new(false) }
    }

    /// The copy, not older than `stale_after`. One caller renews it ahead of that while the others go on with the old one.
    ///
    /// # Errors
    /// What `load` says.
    pub(crate) async fn get(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        self.newer(self.refresh_after, load).await
    }

    /// The copy, renewed if it is older than `refresh_after` and nobody else is about to.
    ///
    /// # Errors
    /// What `load` says.
    pub(crate) async fn newer(
        &self,
        refresh_after: Millis,
        load: impl AsyncFnOnce() -> Result<T, Problem>,
    ) -> Result<Arc<T>, Problem> {
        let now = self.clock.monotonic();
        let held = self.copy().clone();
        if let Some((loaded_at, copy)) = held {
            let age = now - loaded_at;
            if age < refresh_after {
                return Ok(copy);
            }
            let is_others_turn = self.refreshing.swap(true, Ordering::AcqRel);
            if is_others_turn && age < self.stale_after {
                return Ok(copy);
            }
        }
        let _turn = Turn(&self.refreshing);
        let fresh = Arc::new(load().await?);
        *self.copy() = Some((now, fresh.clone()));
        Ok(fresh)
    }

    fn copy(&self) -> MutexGuard<'_, Option<(Millis, Arc<T>)>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the turn to renew back, even if the one who has it is dropped.
struct Turn<'a>(&'a AtomicBool);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
