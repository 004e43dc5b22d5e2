//! Reconnect: how long to wait before asking an unreachable store again. The wait grows with each try up to a limit.

use super::limits::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::client::windlass::Windlass;
use crate::clock::Clock;
use crate::leases::outage::store_failed;
use crate::random::Random;
use crate::store::StoreError;
use windlass_core::Millis;

#[derive(Debug, Default)]
pub(crate) struct Reconnect(u32);

impl Reconnect {
    /// Waits before the next try. Cancel-safe.
    pub(crate) async fn wait(&mut self, clock: &Clock, random: &Random) {
        clock.sleep(self.next(random)).await;
    }

    pub(crate) fn next(&mut self, random: &Random) -> Millis {
        let longest = FIRST_PAUSE.get().saturating_mul(1 << self.0.min(16)).min(LONGEST_PAUSE.get());
        self.0 += 1;
        // Half of the wait is random, so that the workers of a fleet do not all reconnect at once.
        Millis::new(longest / 2 + random.number() % (longest / 2))
    }

    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }
}

/// Repeats a call until the store answers, however long that takes. Only for calls that are safe to repeat.
pub(crate) async fn until_answered<T, F>(windlass: &Windlass, ask: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut reconnect = Reconnect::default();
    loop {
        match ask().await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                store_failed!(error, "the store is unreachable; trying again");
                reconnect.wait(windlass.clock(), windlass.random()).await;
            }
            answered => return answered,
        }
    }
}
