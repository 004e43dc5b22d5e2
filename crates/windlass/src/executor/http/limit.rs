//! Limit: how long a phase of a call may take. With the system clock this uses the runtime's timer, which corrections
//! of the time of day do not affect. A test moves its own clock.

use crate::clock::Clock;
use windlass_core::Millis;

/// The time is up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Elapsed;

/// Runs `work` for at most `span`; then drops it.
pub(super) async fn within<T>(clock: &Clock, span: Millis, work: impl Future<Output = T>) -> Result<T, Elapsed> {
    tokio::select! {
        biased; // A finished call counts, even if the time is up as well.
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
