//! Reads JSON bodies field by field. Each wrong field is reported with its JSON pointer, and an unknown field with the
//! nearest known name. Raw parts (payloads) keep their bytes.

use crate::http::output::problem::{Fault, MAX_FAULTS, Problem};
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::cell::RefCell;
use std::fmt::Display;
use windlass_core::nearest::nearest;
use windlass_core::{Millis, Timestamp};

/// The most fields in one object.
const MAX_FIELDS: usize = 1000;

/// The faults found so far. A body is read to its end, so that one answer names every fault.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    pub(crate) fn add(&self, pointer: impl Into<String>, detail: impl Into<String>) {
        let mut faults = self.0.borrow_mut();
        if faults.len() < MAX_FAULTS {
            faults.push(Fault { pointer: pointer.into(), detail: detail.into() });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    /// The faults as an answer.
    pub(crate) fn problem(&self) -> Problem {
        Problem::invalid(self.0.borrow().clone())
    }

    /// # Errors
    /// The faults, if there are any.
    pub(crate) fn finish(&self) -> Result<(), Problem> {
        if self.is_empty() { Ok(()) } else { Err(self.problem()) }
    }
}

/// An object being read.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    at: String,
    map: Vec<(String, &'a RawValue)>,
    faults: &'a Faults,
}

impl<'a> Fields<'a> {
    /// Opens the object at the pointer `at`.
    pub(crate) fn open(raw: &'a RawValue, at: impl Into<String>, faults: &'a Faults) -> Option<Self> {
        let at = at.into();
        if !raw.get().starts_with('{') {
            faults.add(at, format!("must be an object, not {}", kind_of(raw)));
            return None;
        }
        match members(raw.get()) {
            Ok(map) => Some(Self { at, map, faults }),
            Err(detail) => {
                faults.add(at, detail);
                None
            }
        }
    }

    pub(crate) fn at(&self) -> &str {
        &self.at
    }

    pub(crate) fn faults(&self) -> &'a Faults {
        self.faults
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.map.iter().map(|(name, _)| name.as_str())
    }

    pub(crate) fn pointer(&self, name: &str) -> String {
        format!("{}/{}", self.at, name.replace('~', "~0").replace('/', "~1"))
    }

    pub(crate) fn fault(&self, name: &str, detail: impl Into<String>) {
        self.faults.add(self.pointer(name), detail);
    }

    /// Records a fault for every field that is not in `known`.
    pub(crate) fn refuse_unknown(&self, known: &[&str]) {
        for name in self.names().filter(|name| !known.contains(name)) {
            let hint = nearest(name, known).map_or_else(String::new, |k| format!("; did you mean `{k}`?"));
            self.fault(name, format!("is not a known field{hint}"));
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.raw(name).is_some()
    }

    /// The field's text as written; `null` counts as absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a RawValue> {
        self.map.iter().find(|(n, _)| n == name).map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
    }

    /// The field; records a fault if it is absent.
    pub(crate) fn needed<T>(&self, name: &str, found: Option<T>, form: &str) -> Option<T> {
        if found.is_none() && !self.has(name) {
            self.fault(name, format!("is needed: {form}"));
        }
        found
    }

    pub(crate) fn value(&self, name: &str) -> Option<Value> {
        let raw = self.raw(name)?;
        let value = serde_json::from_str(raw.get());
        value.map_err(|error| self.fault(name, unreadable(&error))).ok()
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        if !raw.get().starts_with('"') {
            self.fault(name, format!("must be a string, not {}", kind_of(raw)));
            return None;
        }
        match serde_json::from_str::<String>(raw.get()) {
            // Databases cannot store NUL.
            Ok(text) if text.contains('\0') => {
                self.fault(name, "contains a NUL character, which cannot be stored");
                None
            }
            Ok(text) => Some(text),
            Err(error) => {
                self.fault(name, unreadable(&error));
                None
            }
        }
    }

    /// Any text, for display only: characters that a database cannot store are replaced.
    pub(crate) fn lossy_text(&self, name: &str) -> Option<String> {
        let raw = self.raw(name)?;
        if !raw.get().starts_with('"') {
            self.fault(name, format!("must be a string, not {}", kind_of(raw)));
            return None;
        }
        let text = serde_json::from_slice::<LossyText>(raw.get().as_bytes());
        text.map(|text| text.0.replace('\0', "\u{FFFD}")).map_err(|error| self.fault(name, unreadable(&error))).ok()
    }

    /// A text that `parse` accepts.
    pub(crate) fn parsed<T, E: Display>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Option<T> {
        let text = self.text(name)?;
        parse(&text).map_err(|error| self.fault(name, error.to_string())).ok()
    }

    /// One of a few fixed words.
    pub(crate) fn word<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>, words: &str) -> Option<T> {
        self.parsed(name, |text| {
            parse(text).ok_or_else(|| format!("must be {words}, not `{}`", text.chars().take(60).collect::<String>()))
        })
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let raw = self.raw(name)?;
        match raw.get() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.fault(name, format!("must be true or false, not {}", kind_of(raw)));
                None
            }
        }
    }

    pub(crate) fn whole(&self, name: &str, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let raw = self.raw(name)?;
        let number = raw.get().parse::<u64>().ok().filter(|n| range.contains(n));
        if number.is_none() {
            self.fault(name, format!("must be a whole number from {} to {}", range.start(), range.end()));
        }
        number
    }

    /// `"30s"` or whole milliseconds.
    pub(crate) fn duration(&self, name: &str) -> Option<Millis> {
        let raw = self.raw(name)?;
        if raw.get().starts_with('"') {
            return self.parsed(name, Millis::parse);
        }
        let span = Millis::parse(raw.get());
        span.map_err(|_| self.fault(name, "must be a duration: \"500ms\", \"30s\", \"1m30s\", or whole milliseconds"))
            .ok()
    }

    pub(crate) fn moment(&self, name: &str) -> Option<Timestamp> {
        self.parsed(name, |text| {
            Timestamp::parse(text).ok_or("must be a moment such as 2026-01-01T12:00:00Z, between 1970 and 9999")
        })
    }

    pub(crate) fn object(&self, name: &str) -> Option<Self> {
        Fields::open(self.raw(name)?, self.pointer(name), self.faults)
    }

    pub(crate) fn list(&self, name: &str, most: usize) -> Option<Vec<&'a RawValue>> {
        let raw = self.raw(name)?;
        if !raw.get().starts_with('[') {
            self.fault(name, format!("must be a list, not {}", kind_of(raw)));
            return None;
        }
        let items: Vec<&RawValue> =
            serde_json::from_str(raw.get()).map_err(|error| self.fault(name, unreadable(&error))).ok()?;
        if items.len() > most {
            self.fault(name, format!("has {} items; at most {most} are accepted", items.len()));
            return None;
        }
        Some(items)
    }

    /// A list of texts, each accepted by `parse`.
    pub(crate) fn texts<T, E: Display>(
        &self,
        name: &str,
        most: usize,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let items = self.list(name, most)?;
        let mut texts = Vec::with_capacity(items.len());
        for (index, raw) in items.iter().enumerate() {
            let text = serde_json::from_str::<String>(raw.get()).map_err(|_| "must be a string".to_owned());
            match text.and_then(|text| parse(&text).map_err(|error| error.to_string())) {
                Ok(item) => texts.push(item),
                Err(detail) => self.faults.add(format!("{}/{index}", self.pointer(name)), detail),
            }
        }
        (texts.len() == items.len()).then_some(texts)
    }
}

/// A text in which unpaired surrogates are replaced.
struct LossyText(String);

impl<'de> serde::Deserialize<'de> for LossyText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = LossyText;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<LossyText, E> {
                Ok(LossyText(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        // Read as bytes, because a JSON string may contain escapes that are not characters.
        deserializer.deserialize_bytes(Text)
    }
}

/// The type of a JSON value in words.
pub(crate) fn kind_of(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "a list",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "true or false",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Whether every string in a JSON value is valid text, without unpaired surrogates.
pub(crate) fn is_clean(json: &str) -> bool {
    // Only an escape sequence can contain one.
    !json.contains("\\u") || serde_json::from_str::<Value>(json).is_ok()
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("cannot be read: {error}")
}

/// The members of an object in order. A repeated name is an error.
fn members(text: &str) -> Result<Vec<(String, &RawValue)>, String> {
    struct Members;
    impl<'de> Visitor<'de> for Members {
        type Value = Result<Vec<(String, &'de RawValue)>, String>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members: Vec<(String, &'de RawValue)> = Vec::with_capacity(16);
            while let Some(name) = map.next_key::<String>()? {
                if members.len() == MAX_FIELDS || members.iter().any(|(known, _)| *known == name) {
                    let twice = members.len() < MAX_FIELDS;
                    map.next_value::<IgnoredAny>()?;
                    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                    let name: String = name.chars().take(60).collect();
                    return Ok(Err(if twice {
                        format!("has the field `{name}` twice")
                    } else {
                        format!("has more than {MAX_FIELDS} fields")
                    }));
                }
                members.push((name, map.next_value()?));
            }
            Ok(Ok(members))
        }
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.deserialize_map(Members).map_err(|error| unreadable(&error))?
}
