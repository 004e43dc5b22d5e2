//! Limit: how long a phase of a call may take. On the machine's clock this is the runtime's timer, which no
//! correction of the time of day can stretch; a test's clock is turned by hand.

use crate::clock::Clock;
use windlass_core::Millis;

/// The time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elapsed;

/// Runs `work` for at most `span`; then drops it.
pub(super) async fn within<T>(clock: &Clock, span: Millis, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    tokio::select! {
        biased; // What is done in time counts, even if the time is up as well.
        done = work => Ok(done),
        () = pass(clock, span) => Err(Elapsed),
    }
}

async fn pass(clock: &Clock, span: Millis) {
    match clock.fixed() {
        Some(_) => clock.sleep(span).await,
        None => tokio::time::sleep(span.to_std()).await,
    }
}
