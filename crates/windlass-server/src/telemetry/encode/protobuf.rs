//! The protobuf encoding, as much of it as OTLP needs. Every field is written, also with its default value: receivers
//! read both alike.

use super::{Field, Fixed64, Writer};

const VARINT: u32 = 0;
const EIGHT_BYTES: u32 = 1;
const LENGTH: u32 = 2;
const FOUR_BYTES: u32 = 5;

/// The most bytes of a number of 64 bits.
const MAX_VARINT: usize = 10;

/// Writes a message, field by field.
pub(super) struct Protobuf(Vec<u8>);

impl Protobuf {
    pub(super) fn written(fill: impl FnOnce(&mut Self)) -> Vec<u8> {
        let mut message = Self(Vec::new());
        fill(&mut message);
        message.0
    }

    fn tag(&mut self, (number, _): Field, form: u32) {
        self.varint(u64::from(number << 3 | form));
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn bytes(&mut self, field: Field, bytes: &[u8]) {
        self.tag(field, LENGTH);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }
}

impl Writer for Protobuf {
    fn text(&mut self, field: Field, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    fn id(&mut self, field: Field, bytes: &[u8]) {
        self.bytes(field, bytes);
    }

    fn small(&mut self, field: Field, value: u32) {
        self.tag(field, VARINT);
        self.varint(value.into());
    }

    fn flag(&mut self, field: Field, value: bool) {
        self.small(field, value.into());
    }

    fn whole(&mut self, field: Field, value: i64) {
        self.tag(field, VARINT);
        self.varint(value.cast_unsigned());
    }

    fn fixed32(&mut self, field: Field, value: u32) {
        self.tag(field, FOUR_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed64(&mut self, field: Field, value: Fixed64) {
        self.tag(field, EIGHT_BYTES);
        self.0.extend_from_slice(&match value {
            Fixed64::Signed(value) => value.to_le_bytes(),
            Fixed64::Unsigned(value) => value.to_le_bytes(),
        });
    }

    fn real(&mut self, field: Field, value: f64) {
        self.tag(field, EIGHT_BYTES);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn counts(&mut self, field: Field, values: &[u64]) {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(field, &packed);
    }

    fn reals(&mut self, field: Field, values: &[f64]) {
        let packed: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.bytes(field, &packed);
    }

    fn message(&mut self, field: Field, fill: impl FnOnce(&mut Self)) {
        let body = Self::written(fill);
        self.bytes(field, &body);
    }

    fn messages<T>(&mut self, field: Field, items: impl IntoIterator<Item = T>, mut fill: impl FnMut(&mut Self, T)) {
        for item in items {
            self.message(field, |to| fill(to, item));
        }
    }
}

/// Reads the fields of a message that came from elsewhere. It ends at the first thing that is wrong.
#[derive(Debug, Clone)]
pub(in crate::telemetry) struct Reader<'a>(&'a [u8]);

/// A field as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::telemetry) enum Read<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Reader<'a> {
    pub(in crate::telemetry) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The last number under this field; 0 if there is none.
    pub(in crate::telemetry) fn number(&self, field: u32) -> u64 {
        let numbers = self.clone().filter_map(|(number, value)| match value {
            Read::Number(value) if number == field => Some(value),
            Read::Number(_) | Read::Bytes(_) => None,
        });
        numbers.last().unwrap_or(0)
    }

    /// The texts, bytes and messages under this field.
    pub(in crate::telemetry) fn all(&self, field: u32) -> impl Iterator<Item = &'a [u8]> {
        self.clone().filter_map(move |(number, value)| match value {
            Read::Bytes(bytes) if number == field => Some(bytes),
            Read::Number(_) | Read::Bytes(_) => None,
        })
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for position in 0..MAX_VARINT {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 0x7f) << (7 * position);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = (u32, Read<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let tag = u32::try_from(self.varint()?).ok()?;
        let value = match tag & 7 {
            VARINT => Read::Number(self.varint()?),
            EIGHT_BYTES => Read::Bytes(self.take(8)?),
            LENGTH => {
                let length = usize::try_from(self.varint()?).ok()?;
                Read::Bytes(self.take(length)?)
            }
            FOUR_BYTES => Read::Bytes(self.take(4)?),
            _ => return None,
        };
        Some((tag >> 3, value))
    }
}
