//! Outages of the store. A Faktory server is its own store, so its clients know no outages: a refused FETCH ends some
//! workers, and a refused ACK makes its job run again. Commands wait for the store instead.

use super::reply::Reply;
use windlass::Clock;
use windlass_core::Millis;

/// How long a command waits for the store. Common clients give a call up after 30 seconds.
const MAX_WAIT: Millis = Millis::from_secs(20);
/// How long until it is tried again.
const PAUSE: Millis = Millis::new(500);

/// How long a command has waited. Every command may be repeated: a jid is stored once, an attempt ends once, and the
/// others say how things should be.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    clock: &'a Clock,
    until: Millis,
}

impl<'a> Waiting<'a> {
    pub(super) fn new(clock: &'a Clock) -> Self {
        Self { clock, until: clock.monotonic() + MAX_WAIT }
    }

    /// Whether to try again, after a pause: the store is away, and the command has not waited long enough.
    pub(super) async fn tries_again<T>(&self, answered: &Result<T, Reply>) -> bool {
        let is_away = matches!(answered, Err(Reply::Outage(_))) && self.clock.monotonic() < self.until;
        if is_away {
            self.clock.sleep(PAUSE).await;
        }
        is_away
    }
}
