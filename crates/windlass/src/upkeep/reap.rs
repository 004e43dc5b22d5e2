//! Reap: decides, by their policy, the jobs whose worker was lost.

use super::{BATCH, ROUNDS};
use crate::client::windlass::Windlass;
use crate::event::Reporter;
use crate::leases::commit::next_firing;
use crate::leases::outage::store_failed;
use crate::store::Reap;
use windlass_core::Next;

pub(super) async fn reap(windlass: &Windlass, reporter: &Reporter) {
    for _ in 0..ROUNDS {
        let result = windlass.store().reap(Reap::Expired { spared: windlass.inner().spared() }, BATCH).await;
        windlass.inner().record_contact(&result);
        let transitioned = match result {
            Ok(transitioned) => transitioned,
            Err(error) => return store_failed!(error, "leases that ran out could not be reaped"),
        };
        for one in &transitioned {
            let firing = match (one.transition.next, one.job.schedule) {
                (Next::Failed(_), Some(schedule)) => next_firing(windlass, schedule).await,
                (Next::Failed(_) | Next::Succeeded | Next::Cancelled | Next::Wait { .. }, _) => None,
            };
            reporter.transitioned(one, windlass.clock().now(), firing);
        }
        if transitioned.is_empty() {
            return;
        }
    }
}
