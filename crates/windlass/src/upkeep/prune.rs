//! Prune: removes archived jobs past their retention, a bounded number at a time.

use super::ROUNDS;
use crate::client::windlass::Windlass;

pub(super) async fn prune(windlass: &Windlass) {
    for _ in 0..ROUNDS {
        let result = windlass.store().prune().await;
        windlass.inner().record_contact(&result);
        match result {
            Ok(0) => return,
            Ok(count) => tracing::debug!(count, "pruned archived jobs"),
            Err(error) => return tracing::warn!(%error, "the archive could not be pruned"),
        }
    }
}
