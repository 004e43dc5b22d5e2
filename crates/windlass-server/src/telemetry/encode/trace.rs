//! `ExportTraceServiceRequest`.

use super::resource::{self, Resource};
use super::{Writer, nanos, scope};
use windlass::telemetry::{Span, SpanKind, SpanStatus, SpanValue};

pub(super) fn request(to: &mut impl Writer, resource: &Resource, spans: &[Span]) {
    to.messages((1, "resourceSpans"), [()], |to, ()| {
        to.message((1, "resource"), |to| resource::write(to, resource));
        to.messages((2, "scopeSpans"), [()], |to, ()| {
            to.message((1, "scope"), scope);
            to.messages((2, "spans"), spans, span);
        });
    });
}

fn span<W: Writer>(to: &mut W, span: &Span) {
    to.id((1, "traceId"), &span.context.trace.to_bytes());
    to.id((2, "spanId"), &span.context.span.to_bytes());
    if let Some(parent) = span.parent {
        to.id((4, "parentSpanId"), &parent.to_bytes());
    }
    // Bit 0: the trace is recorded.
    to.fixed32((16, "flags"), span.context.is_sampled.into());
    to.text((5, "name"), &span.name);
    let kind = match span.kind {
        SpanKind::Server => 2,
        SpanKind::Client => 3,
        SpanKind::Consumer => 5,
    };
    to.small((6, "kind"), kind);
    to.fixed64((7, "startTimeUnixNano"), nanos(span.started_at));
    // By the standard, a span does not end before it starts, even if a clock was set back.
    to.fixed64((8, "endTimeUnixNano"), nanos(span.ended_at.max(span.started_at)));
    to.messages((9, "attributes"), &span.attributes, |to, (key, value)| {
        to.text((1, "key"), key);
        to.message((2, "value"), |to| match value {
            SpanValue::Text(text) => to.text((1, "stringValue"), text),
            SpanValue::Whole(number) => to.whole((3, "intValue"), *number),
        });
    });
    to.message((15, "status"), |to| {
        let (code, message) = match &span.status {
            SpanStatus::Unset => (0, None),
            SpanStatus::Ok => (1, None),
            SpanStatus::Error(message) => (2, Some(message)),
        };
        to.small((3, "code"), code);
        if let Some(message) = message {
            to.text((2, "message"), message);
        }
    });
}
