//! What is sent, and what becomes of it.

mod grpc;
mod metrics;
mod spans;
mod tls;

use super::collector::{Collector, Signal};
use super::sender::Sender;
use crate::config::{Target, TelemetrySettings};
use windlass::telemetry::{Span, SpanId, SpanKind, SpanStatus, TraceContext, TraceId};
use windlass::{Clock, Random};
use windlass_core::Timestamp;

pub(super) fn settings() -> TelemetrySettings {
    TelemetrySettings { traces: None, metrics: None, service_name: "windlass".into(), resource: Vec::new() }
}

fn sender(signal: Signal, target: Target, clock: &Clock) -> Sender {
    Sender::new(Collector::new(signal, target).unwrap(), clock.clone(), Random::seeded(7))
}

pub(super) fn span() -> Span {
    Span {
        context: TraceContext { trace: TraceId::new([7; 16]), span: SpanId::new(9), is_sampled: true },
        parent: Some(SpanId::new(8)),
        name: "attempt email".into(),
        kind: SpanKind::Consumer,
        started_at: Timestamp::from_millis(1_767_268_800_000),
        ended_at: Timestamp::from_millis(1_767_268_800_250),
        attributes: vec![("queue", "email".into()), ("jobId", 42_i64.into())],
        status: SpanStatus::Error("no \"answer\"\u{1}".into()),
    }
}
