//! Telemetry: spans of traces, for whoever wants to export them. Off unless a sink is set; then a job costs one look at
//! whether there is one.
//!
//! A span is handed over as a whole when it ends. The id of an attempt's span is derived from its lease, so that every
//! node finds the same one without storing it: the node that hands a job out, the one that takes its result, and the
//! one that finds its worker lost.

mod attempt;
#[cfg(feature = "http")]
mod call;
mod span;

#[cfg(feature = "metrics")]
pub use crate::metrics::{Distribution, Labels, Metric, Number, Points};
#[cfg(feature = "http")]
pub(crate) use call::{CallTrace, OpenCall};
pub use span::{Span, SpanCounts, SpanKind, SpanStatus, SpanValue};
pub use windlass_core::trace_context::{NOT_RECORDED, SampleShare, SpanId, TraceContext, TraceId};

use attempt::Seed;

use crate::client::windlass::Windlass;
use crate::random::Random;
use crate::store::StoreError;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Takes spans as they end, in the task that ended them. Must be quick, must not block, and must bound what it keeps.
pub trait SpanSink: Send + Sync {
    /// Called for each span.
    fn record(&self, span: Span);

    /// What became of the spans so far, for metrics.
    fn counts(&self) -> SpanCounts {
        SpanCounts::default()
    }
}

/// Makes spans of one installation, and hands them to a sink.
#[derive(Clone)]
pub struct Tracer {
    sink: Arc<dyn SpanSink>,
    share: SampleShare,
    seed: Seed,
    random: Random,
}

impl Tracer {
    /// From now on, every attempt and every call to a URL in this process is handed to `sink` as a span, if its trace
    /// is recorded: jobs that were enqueued with a `traceparent` follow its flag, of all others this share is recorded.
    /// The first sink stays.
    ///
    /// ```
    /// use serde::{Deserialize, Serialize};
    /// use std::sync::{Arc, Mutex};
    /// use windlass::telemetry::{SampleShare, Span, SpanSink, Tracer};
    /// use windlass::{Attempt, Failure, JobKind, Windlass, Worker};
    ///
    /// #[derive(Serialize, Deserialize, JobKind)]
    /// #[job(kind = "email")]
    /// struct SendEmail {}
    ///
    /// async fn send_email(_: SendEmail, _: Attempt) -> Result<(), Failure> {
    ///     Ok(())
    /// }
    ///
    /// #[derive(Default)]
    /// struct Names(Mutex<Vec<String>>);
    ///
    /// impl SpanSink for Names {
    ///     fn record(&self, span: Span) {
    ///         self.0.lock().unwrap().push(span.name);
    ///     }
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let windlass = Windlass::open("memory:").await?;
    /// let names = Arc::new(Names::default());
    /// Tracer::start(&windlass, names.clone(), SampleShare::ALL).await?;
    ///
    /// let id = windlass.enqueue(SendEmail {}).await?;
    /// Worker::new(&windlass).handle(send_email).run(windlass.wait(id)).await?;
    /// assert_eq!(*names.0.lock().unwrap(), ["attempt email"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The store cannot be read: ids of traces contain the installation's id.
    pub async fn start(windlass: &Windlass, sink: Arc<dyn SpanSink>, share: SampleShare) -> Result<(), StoreError> {
        let installation = windlass.installation().await?;
        let tracer = Self { sink, share, seed: Seed::of(&installation), random: windlass.random().clone() };
        let _ = windlass.inner().telemetry().0.set(tracer);
        Ok(())
    }

    /// Makes spans for a program's own part of a trace, such as the request that enqueues a job. `None` if nothing is
    /// traced.
    #[must_use]
    pub fn of(windlass: &Windlass) -> Option<&Self> {
        windlass.tracer()
    }

    /// The context of a new span under `parent`, or in a new trace. Whether a new trace is recorded is drawn by the
    /// share that was set; a trace that exists has its decision with it.
    #[must_use]
    pub fn context(&self, parent: Option<TraceContext>) -> TraceContext {
        let span = SpanId::new(self.random.number());
        parent.map_or_else(
            || {
                let trace = TraceId::new(self.random.bytes());
                TraceContext { trace, span, is_sampled: self.share.picks(trace) }
            },
            |parent| parent.with_span(span),
        )
    }

    /// What jobs carry that a request stores: the context of its span. If the request began a trace that is not
    /// recorded, only that.
    #[must_use]
    pub fn carried(&self, context: TraceContext, parent: Option<TraceContext>) -> Arc<str> {
        match parent {
            None if !context.is_sampled => NOT_RECORDED.into(),
            None | Some(_) => context.to_string().into(),
        }
    }

    /// Hands a span over, unless its trace is not recorded.
    pub fn record(&self, span: Span) {
        if span.context.is_sampled {
            self.sink.record(span);
        }
    }

    /// What became of the spans so far.
    #[must_use]
    pub fn counts(&self) -> SpanCounts {
        self.sink.counts()
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("share", &self.share).finish_non_exhaustive()
    }
}

/// The tracer of a client and all its parts, if there is one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Telemetry(Arc<OnceLock<Tracer>>);

impl Telemetry {
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.0.get()
    }
}

impl Windlass {
    pub(crate) fn tracer(&self) -> Option<&Tracer> {
        self.inner().telemetry().tracer()
    }
}
