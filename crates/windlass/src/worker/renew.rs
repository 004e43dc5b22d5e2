//! Renew: extends all leases in use with one statement, three times per lease length. The result says which cancels
//! were requested and which leases were reaped. In between, cancels that other nodes requested are read twice a second,
//! but only for jobs that have run for a while.

use super::commit::end_leases;
use super::dispatch::Group;
use crate::client::windlass::Windlass;
use crate::leases::held_leases::HeldLeases;
use crate::leases::limits::RENEW_AGAIN;
use crate::leases::outage::store_failed;
use crate::leases::renew::renew;
use crate::store::{Kinds, WorkerId, WorkerReport};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_core::{Millis, Timestamp};

/// How often requested cancels are read, and how long a job runs before they are read for it.
const CANCEL_LOOK: Millis = Millis::new(500);

pub(crate) struct Renewer {
    pub windlass: Windlass,
    pub held_leases: Arc<HeldLeases>,
    pub worker: WorkerId,
    pub lease_for: Millis,
    /// For the report: queue names with their concurrency, and the groups that know how many run.
    pub queues: Vec<(String, u32)>,
    pub kinds: Kinds,
    pub groups: Vec<Arc<Group>>,
    pub host: String,
    pub started_at: Timestamp,
}

impl Renewer {
    pub(crate) async fn run(self, stop: CancellationToken) {
        let every = Millis::new((self.lease_for.get() / 3).max(1));
        let soon = Millis::new((every.get() / 4).max(1)).min(RENEW_AGAIN);
        let mut next = self.windlass.clock().monotonic() + every;
        self.report().await;
        loop {
            let left = next - self.windlass.clock().monotonic();
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.windlass.clock().sleep(left.min(CANCEL_LOOK)) => {}
            }
            if self.windlass.clock().monotonic() < next {
                self.look_for_cancels().await;
                continue;
            }
            let pause = if self.renew().await { every } else { soon };
            next = self.windlass.clock().monotonic() + pause;
            end_leases(&self.windlass, &self.held_leases).await;
            self.report().await;
        }
    }

    /// Asks the attempts to stop whose cancel was requested on another node.
    async fn look_for_cancels(&self) {
        let since = self.windlass.clock().now() - CANCEL_LOOK;
        let leases = self.held_leases.leases_before(since);
        if leases.is_empty() {
            return;
        }
        let result = self.windlass.store().cancel_requests(leases).await;
        self.windlass.inner().record_contact(&result);
        match result {
            Ok(requested) => self.held_leases.request_cancel(&requested),
            // The next renewal says the same.
            Err(error) => tracing::debug!(%error, "requested cancels could not be read"),
        }
    }

    /// Whether the store answered.
    async fn renew(&self) -> bool {
        let leases = self.held_leases.leases();
        if leases.is_empty() {
            return true;
        }
        let renewed = match renew(&self.windlass, &self.worker, leases, self.lease_for).await {
            Ok(renewed) => renewed,
            Err(error) => {
                // A lease ends when it is reaped, not when its time is over. Continue, and try again soon.
                store_failed!(error, worker = %self.worker, "leases could not be renewed");
                return false;
            }
        };
        for lease in renewed.lost {
            let count = self.held_leases.lose(lease);
            if count > 0 {
                tracing::warn!(worker = %self.worker, count, "a lease was lost: its handlers were asked to stop");
            }
        }
        self.held_leases.request_cancel(&renewed.cancel_requested);
        true
    }

    async fn report(&self) {
        let report = WorkerReport {
            worker: self.worker.clone(),
            host: self.host.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            queues: self.queues.clone(),
            kinds: Some(self.kinds.iter().map(str::to_owned).collect()),
            running: self.groups.iter().map(|group| group.running()).sum(),
            started_at: self.started_at,
            seen_at: self.windlass.clock().now(),
        };
        let result = self.windlass.inner().write(self.windlass.store().report_worker(&report)).await;
        if let Err(error) = result {
            tracing::debug!(%error, "the worker's report could not be stored");
        }
    }
}
