//! Expire: ends jobs that were not started by their `startBy`.

use super::{BATCH, ROUNDS};
use crate::client::windlass::Windlass;
use crate::event::Reporter;
use crate::leases::outage::store_failed;

pub(super) async fn expire(windlass: &Windlass, reporter: &Reporter) {
    for _ in 0..ROUNDS {
        let result = windlass.store().expire(BATCH).await;
        windlass.inner().record_contact(&result);
        let transitioned = match result {
            Ok(transitioned) => transitioned,
            Err(error) => return store_failed!(error, "jobs past their startBy could not be ended"),
        };
        for one in &transitioned {
            reporter.transitioned(one, windlass.clock().now(), None);
        }
        if transitioned.len() < BATCH as usize {
            return;
        }
    }
}
