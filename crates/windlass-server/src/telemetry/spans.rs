//! Sends spans in batches. A collector that is away, slow or silent costs spans, and nothing else.

use super::encode::{self, Resource};
use super::queue::SpanQueue;
use super::sender::{Sender, Sent};
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use windlass::telemetry::{Span, SpanSink as _};
use windlass_core::Millis;

/// The most spans in one request.
const MAX_BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const COLLECT_FOR: Millis = Millis::from_secs(1);

/// Sends the spans of a queue to a collector.
#[derive(Debug)]
pub(super) struct SpanExporter {
    spans: Receiver<Span>,
    queue: Arc<SpanQueue>,
    sender: Sender,
    resource: Resource,
    /// Spans of the batch that is being sent.
    in_hand: u64,
    /// How many spans had been dropped when a request last succeeded.
    dropped_before: u64,
    has_reported_rejected: bool,
}

impl SpanExporter {
    pub(super) const fn new(spans: Receiver<Span>, queue: Arc<SpanQueue>, sender: Sender, resource: Resource) -> Self {
        let (in_hand, dropped_before, has_reported_rejected) = (0, 0, false);
        Self { spans, queue, sender, resource, in_hand, dropped_before, has_reported_rejected }
    }

    /// Exports until it is stopped, and then what is left, for `last` at most.
    pub(super) async fn run(mut self, stop: CancellationToken, last: Millis) {
        let clock = self.sender.clock().clone();
        let is_over = async {
            stop.cancelled().await;
            clock.sleep(last).await;
        };
        tokio::select! {
            () = self.export(&stop) => {}
            () = is_over => {}
        }
        let left = self.in_hand + self.spans.len() as u64;
        if left > 0 {
            self.queue.dropped(left);
            tracing::warn!("{left} spans were dropped: the collector did not take them before the process ended");
        }
    }

    async fn export(&mut self, stop: &CancellationToken) {
        loop {
            let batch = self.batch(stop).await;
            if batch.is_empty() {
                return;
            }
            self.deliver(&batch, stop).await;
        }
    }

    /// The next spans; none if the process stops and none are left.
    async fn batch(&mut self, stop: &CancellationToken) -> Vec<Span> {
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            _ = self.spans.recv_many(&mut batch, MAX_BATCH) => {}
            () = stop.cancelled() => return batch,
        }
        let clock = self.sender.clock().clone();
        let mut is_time = std::pin::pin!(clock.sleep(COLLECT_FOR));
        while batch.len() < MAX_BATCH {
            let room = MAX_BATCH - batch.len();
            tokio::select! {
                biased;
                _ = self.spans.recv_many(&mut batch, room) => {}
                () = stop.cancelled() => break,
                () = &mut is_time => break,
            }
        }
        batch
    }

    async fn deliver(&mut self, batch: &[Span], stop: &CancellationToken) {
        let count = batch.len() as u64;
        self.in_hand = count;
        if !self.sender.is_failing() {
            self.dropped_before = self.queue.counts().dropped;
        }
        let body = Bytes::from(encode::spans(self.sender.protocol(), &self.resource, batch));
        match self.sender.send(body, stop).await {
            Sent::Accepted { rejected, is_recovery } => self.accepted(count, rejected.min(count), is_recovery),
            Sent::Dropped => self.queue.dropped(count),
        }
        self.in_hand = 0;
    }

    fn accepted(&mut self, count: u64, rejected: u64, is_recovery: bool) {
        self.queue.exported(count - rejected);
        self.queue.dropped(rejected);
        if rejected > 0 && !self.has_reported_rejected {
            self.has_reported_rejected = true;
            tracing::warn!("the collector took a batch but rejected {rejected} of its {count} spans");
        }
        if is_recovery {
            let dropped = self.queue.counts().dropped - self.dropped_before;
            tracing::info!("traces are exported again; {dropped} spans were dropped meanwhile");
        }
    }
}
