//! A copy of something the store holds, renewed by whoever finds it old.

use super::output::problem::Problem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass::Clock;
use windlass_core::Millis;

#[derive(Debug)]
pub(crate) struct Cached<T> {
    clock: Clock,
    refresh_after: Millis,
    stale_after: Millis,
    copy: Mutex<Option<Copy<T>>>,
    refreshing: AtomicBool,
    /// Loads that have begun.
    begun: AtomicU64,
    /// One at a time looks for what the copy lacks.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Copy<T> {
    /// When its load began, and which one it was.
    loaded_at: Millis,
    number: u64,
    value: Arc<T>,
}

impl<T> Cached<T> {
    pub(crate) fn new(clock: Clock, refresh_after: Millis, stale_after: Millis) -> Self {
        Self {
            clock,
            refresh_after,
            stale_after,
            copy: Mutex::new(None),
            refreshing: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            looking: tokio::sync::Mutex::new(()),
        }
    }

    /// The copy, not older than `stale_after`. One caller renews it ahead of that while the others go on with the old one.
    ///
    /// # Errors
    /// What `load` says.
    pub(crate) async fn get(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let now = self.clock.monotonic();
        let held = self.copy().as_ref().map(|copy| (now - copy.loaded_at, copy.value.clone()));
        if let Some((age, value)) = held {
            if age < self.refresh_after {
                return Ok(value);
            }
            let is_others_turn = self.refreshing.swap(true, Ordering::AcqRel);
            if is_others_turn && age < self.stale_after {
                return Ok(value);
            }
        }
        let _turn = Share(&self.refreshing);
        self.renew(load).await
    }

    /// A copy whose load began after this call: whatever was stored before it is there. Callers that come while one loads share
    /// the next load, so however many they are, the store is asked by one at a time.
    ///
    /// # Errors
    /// What `load` says.
    pub(crate) async fn newest(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let before = self.begun.load(Ordering::Acquire);
        let _turn = self.looking.lock().await;
        let later = self.copy().as_ref().filter(|copy| copy.number > before).map(|copy| copy.value.clone());
        match later {
            Some(value) => Ok(value),
            None => self.renew(load).await,
        }
    }

    async fn renew(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let loaded_at = self.clock.monotonic();
        let value = Arc::new(load().await?);
        let mut copy = self.copy();
        // A load that began later may have ended sooner.
        if copy.as_ref().is_none_or(|copy| copy.number < number) {
            *copy = Some(Copy { loaded_at, number, value: value.clone() });
        }
        Ok(value)
    }

    fn copy(&self) -> MutexGuard<'_, Option<Copy<T>>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the turn to renew back, even if the one who has it is dropped.
struct Share<'a>(&'a AtomicBool);

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
