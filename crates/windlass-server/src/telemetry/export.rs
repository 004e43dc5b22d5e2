//! The exporter: sends spans in batches. A collector that is away, slow or silent costs spans, and nothing else.

use super::collector::{Answer, Collector};
use super::encode::{Resource, encode};
use super::queue::SpanQueue;
use bytes::Bytes;
use std::sync::Arc;
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;
use windlass::telemetry::{Span, SpanSink as _};
use windlass::{Clock, Random};
use windlass_core::Millis;

/// The most spans in one request.
const MAX_BATCH: usize = 512;
/// How long the first span of a batch waits for others.
const COLLECT_FOR: Millis = Millis::from_secs(1);
/// How long a request may take.
const REQUEST_LIMIT: Millis = Millis::from_secs(10);
/// How often a batch is sent before it is dropped.
const TRIES: u32 = 5;
/// The pause after the first failure; it doubles with every further one.
const FIRST_PAUSE: Millis = Millis::from_secs(1);
/// The longest pause, whatever the collector asks for.
const MAX_PAUSE: Millis = Millis::from_secs(30);
/// The pause between tries while the process stops.
const LAST_PAUSE: Millis = Millis::new(200);

/// Sends the spans of a queue to a collector.
#[derive(Debug)]
pub(crate) struct Exporter {
    spans: Receiver<Span>,
    queue: Arc<SpanQueue>,
    collector: Collector,
    resource: Resource,
    clock: Clock,
    random: Random,
    /// Spans of the batch that is being sent.
    in_hand: u64,
    /// How many spans had been dropped when exporting began to fail; none while it works.
    failing_since: Option<u64>,
    has_reported_rejected: bool,
}

impl Exporter {
    pub(super) fn new(
        spans: Receiver<Span>,
        queue: Arc<SpanQueue>,
        collector: Collector,
        resource: Resource,
        clock: Clock,
        random: Random,
    ) -> Self {
        let (in_hand, failing_since, has_reported_rejected) = (0, None, false);
        Self { spans, queue, collector, resource, clock, random, in_hand, failing_since, has_reported_rejected }
    }

    /// Exports until it is stopped, and then what is left, for `last` at most.
    pub(crate) async fn run(mut self, stop: CancellationToken, last: Millis) {
        let clock = self.clock.clone();
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
        let clock = self.clock.clone();
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

    /// Sends a batch until it is accepted, refused, or was tried often enough.
    async fn deliver(&mut self, batch: &[Span], stop: &CancellationToken) {
        let count = batch.len() as u64;
        self.in_hand = count;
        let body = Bytes::from(encode(&self.resource, batch));
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=TRIES {
            match self.send(body.clone()).await {
                Answer::Accepted { rejected } => {
                    self.accepted(count, rejected.min(count));
                    break;
                }
                Answer::Refused(why) => {
                    self.failed(&why);
                    self.queue.dropped(count);
                    break;
                }
                Answer::Later { why, after } => {
                    self.failed(&why);
                    if attempt == TRIES {
                        self.queue.dropped(count);
                        break;
                    }
                    self.pause(after.unwrap_or_else(|| self.jittered(pause)).min(MAX_PAUSE), stop).await;
                    pause = Millis::new(pause.get() * 2);
                }
            }
        }
        self.in_hand = 0;
    }

    async fn send(&mut self, body: Bytes) -> Answer {
        let clock = self.clock.clone();
        tokio::select! {
            biased;
            answer = self.collector.send(body) => answer,
            () = clock.sleep(REQUEST_LIMIT) => {
                Answer::Later { why: format!("it did not answer within {REQUEST_LIMIT}"), after: None }
            }
        }
    }

    async fn pause(&self, span: Millis, stop: &CancellationToken) {
        if stop.is_cancelled() {
            return self.clock.sleep(LAST_PAUSE.min(span)).await;
        }
        tokio::select! {
            () = self.clock.sleep(span) => {}
            () = stop.cancelled() => {}
        }
    }

    /// Between half and all of a pause, so that nodes do not send in step.
    fn jittered(&self, pause: Millis) -> Millis {
        let half = pause.get() / 2;
        Millis::new(half + self.random.number() % (half + 1))
    }

    fn accepted(&mut self, count: u64, rejected: u64) {
        self.queue.exported(count - rejected);
        self.queue.dropped(rejected);
        if rejected > 0 && !self.has_reported_rejected {
            self.has_reported_rejected = true;
            tracing::warn!("the collector took a batch but rejected {rejected} of its {count} spans");
        }
        if let Some(dropped) = self.failing_since.take() {
            let dropped = self.queue.counts().dropped - dropped;
            tracing::info!("traces are exported again; {dropped} spans were dropped meanwhile");
        }
    }

    fn failed(&mut self, why: &str) {
        if self.failing_since.is_none() {
            self.failing_since = Some(self.queue.counts().dropped);
            tracing::warn!(
                "traces cannot be exported: {why}; jobs are not affected, and spans are dropped if this lasts"
            );
        } else {
            tracing::debug!("traces cannot be exported: {why}");
        }
    }
}
