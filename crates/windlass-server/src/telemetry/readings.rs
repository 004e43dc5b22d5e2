//! Sends what `/metrics` shows, again and again. A reading that is lost costs no count: the next one has it too.

use super::encode::{self, Reading, Resource};
use super::sender::{Sender, Sent};
use bytes::Bytes;
use tokio_util::sync::CancellationToken;
use windlass::Metrics;
use windlass_core::Millis;

/// Reads metrics and sends them to a collector.
#[derive(Debug)]
pub(super) struct MetricsExporter {
    metrics: Metrics,
    sender: Sender,
    resource: Resource,
    every: Millis,
    has_reported_rejected: bool,
}

impl MetricsExporter {
    pub(super) const fn new(metrics: Metrics, sender: Sender, resource: Resource, every: Millis) -> Self {
        Self { metrics, sender, resource, every, has_reported_rejected: false }
    }

    /// Exports until it is stopped, and then once more, for `last` at most.
    pub(super) async fn run(mut self, stop: CancellationToken, last: Millis) {
        let clock = self.sender.clock().clone();
        let is_over = async {
            stop.cancelled().await;
            clock.sleep(last).await;
        };
        tokio::select! {
            () = self.export(&stop) => {}
            () = is_over => tracing::warn!("the last metrics were not sent before the process ended"),
        }
    }

    async fn export(&mut self, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = self.sender.clock().sleep(self.every) => {}
                () = stop.cancelled() => {}
            }
            let is_last = stop.is_cancelled();
            self.read_and_send(stop).await;
            if is_last {
                return;
            }
        }
    }

    async fn read_and_send(&mut self, stop: &CancellationToken) {
        let metrics = self.metrics.read().await;
        let reading = Reading { metrics, since: self.metrics.since(), at: self.sender.clock().now() };
        let body = Bytes::from(encode::reading(self.sender.protocol(), &self.resource, &reading));
        let Sent::Accepted { rejected, is_recovery } = self.sender.send(body, stop).await else { return };
        if rejected > 0 && !self.has_reported_rejected {
            self.has_reported_rejected = true;
            tracing::warn!("the collector took a reading of the metrics but rejected {rejected} of its points");
        }
        if is_recovery {
            tracing::info!("metrics are exported again");
        }
    }
}
