//! Patience with a store that is away: wait a little longer each time, never for long.

use crate::clock::Clock;
use crate::dice::Dice;
use crate::store::StoreError;
use crate::windlass::Windlass;
use windlass_core::Millis;

const FIRST: Millis = Millis::new(50);
const LONGEST: Millis = Millis::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Patience(u32);

impl Patience {
    /// Waits before the next try. Cancel-safe.
    pub(crate) async fn wait(&mut self, clock: &Clock, dice: &Dice) {
        clock.sleep(self.next(dice)).await;
    }

    pub(crate) fn next(&mut self, dice: &Dice) -> Millis {
        let longest = FIRST.get().saturating_mul(1 << self.0.min(16)).min(LONGEST.get());
        self.0 += 1;
        // Half of it spread, so that a fleet does not come back in step.
        Millis::new(longest / 2 + dice.number() % (longest / 2))
    }

    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }
}

/// Asks the store until it answers, however long it is away. Only for what may be asked twice.
pub(crate) async fn until_answered<T, F>(windlass: &Windlass, ask: impl Fn() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut patience = Patience::default();
    loop {
        match ask().await {
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unknown(_))) => {
                tracing::warn!(%error, "the worker waits for the store");
                patience.wait(windlass.clock(), windlass.dice()).await;
            }
            answered => return answered,
        }
    }
}
