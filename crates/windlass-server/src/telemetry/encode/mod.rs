//! The messages of OTLP. Each is described once, by calls of a [`Writer`]; the two encodings are its implementations.

mod json;
mod metrics;
mod protobuf;
mod resource;
#[cfg(test)]
mod tests;
mod trace;

pub(super) use protobuf::Reader;
pub(super) use resource::{Resource, resource};

use crate::config::Protocol;
use json::Json;
use protobuf::Protobuf;
use windlass::Timestamp;
use windlass::telemetry::{Metric, Span};

const NANOS_PER_MILLI: i128 = 1_000_000;

/// A field: its number in protobuf and its name in JSON.
type Field = (u32, &'static str);

/// Writes the fields of a message.
trait Writer: Sized {
    fn text(&mut self, field: Field, value: &str);
    /// The id of a trace or span.
    fn id(&mut self, field: Field, bytes: &[u8]);
    /// A `uint32` or an enumeration.
    fn small(&mut self, field: Field, value: u32);
    fn flag(&mut self, field: Field, value: bool);
    /// An `int64`.
    fn whole(&mut self, field: Field, value: i64);
    fn fixed32(&mut self, field: Field, value: u32);
    /// A `fixed64` or `sfixed64`, by its bits.
    fn fixed64(&mut self, field: Field, value: Fixed64);
    fn real(&mut self, field: Field, value: f64);
    /// A repeated `fixed64`.
    fn counts(&mut self, field: Field, values: &[u64]);
    /// A repeated `double`.
    fn reals(&mut self, field: Field, values: &[f64]);
    fn message(&mut self, field: Field, fill: impl FnOnce(&mut Self));
    /// A repeated message.
    fn messages<T>(&mut self, field: Field, items: impl IntoIterator<Item = T>, fill: impl FnMut(&mut Self, T));
}

/// Eight bytes with a sign or without.
#[derive(Debug, Clone, Copy)]
enum Fixed64 {
    Signed(i64),
    Unsigned(u64),
}

/// An export request for spans.
pub(super) fn spans(protocol: Protocol, resource: &Resource, spans: &[Span]) -> Vec<u8> {
    match protocol {
        Protocol::HttpJson => Json::written(|to| trace::request(to, resource, spans)),
        Protocol::HttpProtobuf | Protocol::Grpc => Protobuf::written(|to| trace::request(to, resource, spans)),
    }
}

/// A reading of the metrics: since when they count, and when they were read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) metrics: Vec<Metric>,
    pub(super) since: Timestamp,
    pub(super) at: Timestamp,
}

/// An export request for metrics.
pub(super) fn reading(protocol: Protocol, resource: &Resource, reading: &Reading) -> Vec<u8> {
    match protocol {
        Protocol::HttpJson => Json::written(|to| metrics::request(to, resource, reading)),
        Protocol::HttpProtobuf | Protocol::Grpc => Protobuf::written(|to| metrics::request(to, resource, reading)),
    }
}

fn nanos(at: Timestamp) -> Fixed64 {
    let nanos = i128::from(at.as_millis()).max(0) * NANOS_PER_MILLI;
    Fixed64::Unsigned(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A `KeyValue` with a text.
fn text_fact(to: &mut impl Writer, (key, value): (&str, &str)) {
    to.text((1, "key"), key);
    to.message((2, "value"), |to| to.text((1, "stringValue"), value));
}

fn scope(to: &mut impl Writer) {
    to.text((1, "name"), "windlass");
    to.text((2, "version"), env!("CARGO_PKG_VERSION"));
}
