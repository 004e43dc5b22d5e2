//! Expire: jobs that were not started by their `startBy` end.

use super::{BATCH, ROUNDS};
use crate::event::Reporter;
use crate::windlass::Windlass;

pub(super) async fn expire(windlass: &Windlass, reporter: &Reporter) {
    for _ in 0..ROUNDS {
        let result = windlass.store().expire(BATCH).await;
        windlass.heard(&result);
        let settled = match result {
            Ok(settled) => settled,
            Err(error) => return tracing::warn!(%error, "jobs past their startBy could not be ended"),
        };
        for one in &settled {
            reporter.settled(one, windlass.clock().now(), None);
        }
        if settled.len() < BATCH as usize {
            return;
        }
    }
}
