//! Spans in the JSON encoding of OTLP: ids in hexadecimal, numbers of 64 bits as texts.

use crate::config::TelemetrySettings;
use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};
use windlass::telemetry::{Span, SpanKind, SpanStatus, SpanValue};
use windlass_core::Timestamp;

const NANOS_PER_MILLI: i128 = 1_000_000;

/// Who sends the spans.
#[derive(Debug, Clone)]
pub(super) struct Resource(Vec<(String, String)>);

/// The configured facts, and the name of the service.
pub(super) fn resource(settings: &TelemetrySettings) -> Resource {
    let mut facts = vec![
        ("service.name".to_owned(), settings.service_name.clone()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
    ];
    for (name, value) in &settings.resource {
        match facts.iter_mut().find(|(known, _)| known == name) {
            Some((known, _)) if known == "service.name" => {}
            Some((_, known)) => known.clone_from(value),
            None => facts.push((name.clone(), value.clone())),
        }
    }
    Resource(facts)
}

/// The body of an export request.
pub(super) fn encode(resource: &Resource, spans: &[Span]) -> Vec<u8> {
    let attributes = resource.0.iter().map(|(key, value)| Attribute { key, value: Value::Text(value) }).collect();
    let request = Request {
        resource_spans: [ResourceSpans {
            resource: ResourceJson { attributes },
            scope_spans: [ScopeSpans {
                scope: Scope { name: "windlass", version: env!("CARGO_PKG_VERSION") },
                spans: Spans(spans),
            }],
        }],
    };
    serde_json::to_vec(&request).expect("texts and numbers can be written as JSON")
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_spans: [ResourceSpans<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans<'a> {
    resource: ResourceJson<'a>,
    scope_spans: [ScopeSpans<'a>; 1],
}

#[derive(Serialize)]
struct ResourceJson<'a> {
    attributes: Vec<Attribute<'a>>,
}

#[derive(Serialize)]
struct ScopeSpans<'a> {
    scope: Scope,
    spans: Spans<'a>,
}

#[derive(Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

struct Spans<'a>(&'a [Span]);

impl Serialize for Spans<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(SpanJson::new))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SpanJson<'a> {
    trace_id: String,
    span_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_span_id: Option<String>,
    /// Bit 0: the trace is recorded.
    flags: u32,
    name: &'a str,
    kind: u8,
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Attributes<'a>,
    status: Status<'a>,
}

impl<'a> SpanJson<'a> {
    fn new(span: &'a Span) -> Self {
        // By the standard, a span does not end before it starts, even if a clock was set back.
        let ended_at = span.ended_at.max(span.started_at);
        Self {
            trace_id: span.context.trace.to_string(),
            span_id: span.context.span.to_string(),
            parent_span_id: span.parent.map(|parent| parent.to_string()),
            flags: u32::from(span.context.is_sampled),
            name: &span.name,
            kind: match span.kind {
                SpanKind::Server => 2,
                SpanKind::Client => 3,
                SpanKind::Consumer => 5,
            },
            start_time_unix_nano: nanos(span.started_at),
            end_time_unix_nano: nanos(ended_at),
            attributes: Attributes(&span.attributes),
            status: match &span.status {
                SpanStatus::Unset => Status { code: 0, message: None },
                SpanStatus::Ok => Status { code: 1, message: None },
                SpanStatus::Error(message) => Status { code: 2, message: Some(message) },
            },
        }
    }
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.as_millis()).max(0) * NANOS_PER_MILLI).to_string()
}

struct Attributes<'a>(&'a [(&'static str, SpanValue)]);

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for (key, value) in self.0 {
            let value = match value {
                SpanValue::Text(text) => Value::Text(text),
                SpanValue::Whole(number) => Value::Whole(number.to_string()),
            };
            list.serialize_element(&Attribute { key, value })?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: Value<'a>,
}

#[derive(Serialize)]
enum Value<'a> {
    #[serde(rename = "stringValue")]
    Text(&'a str),
    #[serde(rename = "intValue")]
    Whole(String),
}

#[derive(Serialize)]
struct Status<'a> {
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}
