//! The JSON encoding of OTLP: ids in hexadecimal, numbers of 64 bits as texts.

use super::{Field, Fixed64, Writer};
use std::fmt::Write as _;

/// Writes an object, field by field.
pub(super) struct Json(String);

impl Json {
    pub(super) fn written(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut json = Self(String::new());
        json.object(fill);
        json.0.into_bytes()
    }

    fn object(&mut self, fill: impl FnOnce(&mut Self)) {
        self.0.push('{');
        fill(self);
        self.0.push('}');
    }

    fn name(&mut self, (_, name): Field) {
        if !self.0.ends_with('{') {
            self.0.push(',');
        }
        let _ = write!(self.0, "\"{name}\":");
    }

    fn list<T>(&mut self, field: Field, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        self.name(field);
        self.0.push('[');
        for (number, item) in items.into_iter().enumerate() {
            if number > 0 {
                self.0.push(',');
            }
            write(self, item);
        }
        self.0.push(']');
    }

    /// By the rules of protobuf, what JSON has no number for is a text.
    fn put_real(&mut self, value: f64) {
        let _ = match value {
            value if value.is_nan() => write!(self.0, "\"NaN\""),
            f64::INFINITY => write!(self.0, "\"Infinity\""),
            f64::NEG_INFINITY => write!(self.0, "\"-Infinity\""),
            value => write!(self.0, "{value:?}"),
        };
    }
}

impl Writer for Json {
    fn text(&mut self, field: Field, value: &str) {
        self.name(field);
        self.0.push_str(&serde_json::Value::from(value).to_string());
    }

    fn id(&mut self, field: Field, bytes: &[u8]) {
        self.name(field);
        self.0.push('"');
        for byte in bytes {
            let _ = write!(self.0, "{byte:02x}");
        }
        self.0.push('"');
    }

    fn small(&mut self, field: Field, value: u32) {
        self.name(field);
        let _ = write!(self.0, "{value}");
    }

    fn flag(&mut self, field: Field, value: bool) {
        self.name(field);
        let _ = write!(self.0, "{value}");
    }

    fn whole(&mut self, field: Field, value: i64) {
        self.name(field);
        let _ = write!(self.0, "\"{value}\"");
    }

    fn fixed32(&mut self, field: Field, value: u32) {
        self.small(field, value);
    }

    fn fixed64(&mut self, field: Field, value: Fixed64) {
        self.name(field);
        let _ = match value {
            Fixed64::Signed(value) => write!(self.0, "\"{value}\""),
            Fixed64::Unsigned(value) => write!(self.0, "\"{value}\""),
        };
    }

    fn real(&mut self, field: Field, value: f64) {
        self.name(field);
        self.put_real(value);
    }

    fn counts(&mut self, field: Field, values: &[u64]) {
        self.list(field, values, |to, value| _ = write!(to.0, "\"{value}\""));
    }

    fn reals(&mut self, field: Field, values: &[f64]) {
        self.list(field, values, |to, value| to.put_real(*value));
    }

    fn message(&mut self, field: Field, fill: impl FnOnce(&mut Self)) {
        self.name(field);
        self.object(fill);
    }

    fn messages<T>(&mut self, field: Field, items: impl IntoIterator<Item = T>, mut fill: impl FnMut(&mut Self, T)) {
        self.list(field, items, |to, item| to.object(|to| fill(to, item)));
    }
}
