//! Prune: removes archived jobs past their retention, a bounded number at a time.

use super::ROUNDS;
use crate::client::windlass::Windlass;
use crate::leases::outage::store_failed;

pub(super) async fn prune(windlass: &Windlass) {
    for _ in 0..ROUNDS {
        let result = windlass.store().prune().await;
        windlass.inner().record_contact(&result);
        match result {
            Ok(0) => return,
            Ok(count) => tracing::debug!(count, "pruned archived jobs"),
            Err(error) => return store_failed!(error, "the archive could not be pruned"),
        }
    }
}
