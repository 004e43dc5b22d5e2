//! The queue between those who end spans and the exporter. Bounded: a span that finds it full is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc::{self, Receiver, Sender};
use windlass::telemetry::{Span, SpanCounts, SpanSink};

/// The most spans that wait. A span takes about a kilobyte.
pub(super) const MAX_WAITING: usize = 8192;

/// Takes spans and counts what becomes of them.
#[derive(Debug)]
pub(super) struct SpanQueue {
    sender: Sender<Span>,
    exported: AtomicU64,
    dropped: AtomicU64,
}

/// The queue and its end.
pub(super) fn queue() -> (Arc<SpanQueue>, Receiver<Span>) {
    let (sender, spans) = mpsc::channel(MAX_WAITING);
    (Arc::new(SpanQueue { sender, exported: AtomicU64::new(0), dropped: AtomicU64::new(0) }), spans)
}

impl SpanQueue {
    pub(super) fn exported(&self, count: u64) {
        self.exported.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, count: u64) {
        self.dropped.fetch_add(count, Ordering::Relaxed);
    }
}

impl SpanSink for SpanQueue {
    fn record(&self, span: Span) {
        if self.sender.try_send(span).is_err() {
            self.dropped(1);
        }
    }

    fn counts(&self) -> SpanCounts {
        SpanCounts { exported: self.exported.load(Ordering::Relaxed), dropped: self.dropped.load(Ordering::Relaxed) }
    }
}
