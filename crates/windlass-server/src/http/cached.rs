//! A cached copy of stored data. A caller that finds it old loads it again.

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
    /// The number of loads that have begun.
    begun: AtomicU64,
    /// Only one caller at a time loads what the copy does not contain.
    looking: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Copy<T> {
    /// When its load began, and the number of that load.
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

    /// The copy, not older than `stale_after`. One caller renews it before that time; the others use the old copy
    /// meanwhile.
    ///
    /// # Errors
    /// The error of `load`.
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

    /// A copy whose load began after this call, so it contains everything stored before. Callers that arrive during a
    /// load share the next one, so that only one caller at a time reads the store.
    ///
    /// # Errors
    /// The error of `load`.
    pub(crate) async fn newest(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let before = self.begun.load(Ordering::Acquire);
        let _turn = self.looking.lock().await;
        let later = self.copy().as_ref().filter(|copy| copy.number > before).map(|copy| copy.value.clone());
        match later {
            Some(value) => Ok(value),
            None => self.renew(load).await,
        }
    }

    /// The last copy, however old it is.
    pub(crate) fn last(&self) -> Option<Arc<T>> {
        self.copy().as_ref().map(|copy| copy.value.clone())
    }

    async fn renew(&self, load: impl AsyncFnOnce() -> Result<T, Problem>) -> Result<Arc<T>, Problem> {
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let loaded_at = self.clock.monotonic();
        let value = Arc::new(load().await?);
        let mut copy = self.copy();
        // A load that began later may have ended first.
        if copy.as_ref().is_none_or(|copy| copy.number < number) {
            *copy = Some(Copy { loaded_at, number, value: value.clone() });
        }
        Ok(value)
    }

    fn copy(&self) -> MutexGuard<'_, Option<Copy<T>>> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Allows the next renewal when dropped, even if the caller that renews is cancelled.
struct Share<'a>(&'a AtomicBool);

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use windlass_core::Timestamp;

    const REFRESH: Millis = Millis::from_secs(1);
    const STALE: Millis = Millis::from_secs(5);

    /// What the store says of tokens decides who gets in, so the age of what is used has a bound even if a load hangs.
    #[tokio::test]
    async fn no_caller_uses_a_stale_copy_although_another_one_is_loading() {
        let clock = Clock::manual(Timestamp::from_millis(0));
        let cached = Cached::new(clock.clone(), REFRESH, STALE);
        assert_eq!(*cached.get(async || Ok(1)).await.unwrap(), 1);
        clock.advance(REFRESH);
        let hanging = cached.get(async || pending::<Result<i32, Problem>>().await);
        let others = async {
            clock.advance(STALE - REFRESH - Millis::new(1));
            assert_eq!(*cached.get(async || Ok(2)).await.unwrap(), 1, "the copy is used while another caller loads");
            clock.advance(Millis::new(1));
            assert_eq!(*cached.get(async || Ok(2)).await.unwrap(), 2, "at this age it is not");
        };
        tokio::select! {
            biased;
            _ = hanging => unreachable!("the load does not end"),
            () = others => {}
        }
    }
}
