//! One JSON object per line: time, level, message, then the line's fields and those of the spans around it, in
//! camelCase.

use serde_json::{Map, Value};
use std::fmt;
use std::io::Write as _;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

#[derive(Debug)]
pub(super) struct JsonLines<W>(W);

impl<W> JsonLines<W> {
    pub(super) const fn new(writer: W) -> Self {
        Self(writer)
    }
}

/// What a span adds to the lines inside it.
struct Around(Map<String, Value>);

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Around(fields.0));
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        if let Some(span) = context.span(id)
            && let Some(around) = span.extensions_mut().get_mut::<Around>()
        {
            around.0.extend(fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Map::new();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().into_iter().rev() {
            if let Some(around) = span.extensions().get::<Around>() {
                line.extend(around.0.clone());
            }
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        line.extend(fields.0);
        line.insert("target".into(), event.metadata().target().into());
        let text = written(event.metadata().level().as_str(), line);
        // If the log cannot be written, there is no place to report it.
        let _ = self.0.make_writer_for(event.metadata()).write_all(text.as_bytes());
    }
}

/// The line, with the most important fields first.
fn written(level: &str, mut fields: Map<String, Value>) -> String {
    let message = fields.remove("message").unwrap_or_default();
    let (time, level) = (Value::from(now()), Value::from(level));
    let rest = Value::Object(fields).to_string();
    format!("{{\"timestamp\":{time},\"level\":{level},\"message\":{message},{}\n", &rest[1..])
}

/// The time in RFC 3339, UTC.
fn now() -> String {
    let mut text = String::new();
    match SystemTime.format_time(&mut Writer::new(&mut text)) {
        Ok(()) => text,
        Err(fmt::Error) => String::new(),
    }
}

#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        // Fields that the bridge from the older `log` crate adds.
        if !field.name().starts_with("log.") {
            self.0.insert(camel_case(field.name()), value);
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }
}

/// `max_attempts` is `maxAttempts`.
pub(super) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}
