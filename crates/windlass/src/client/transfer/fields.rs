//! Reads the fields of a record. A fault names the field and what is accepted.

use crate::store::StoreError;
use serde_json::{Map, Value};
use std::sync::Arc;
use windlass_core::{JobId, Millis, Timestamp};

/// The greatest counter: databases keep them as 32-bit numbers.
const MAX_COUNT: u64 = i32::MAX as u64;

/// What is wrong with a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// Where: `job.kind`.
    pub field: String,
    pub why: String,
}

pub(super) type Result<T> = std::result::Result<T, Fault>;

/// The fields of one object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    path: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(path: &'a str, value: &'a Value) -> Result<Self> {
        match value.as_object() {
            Some(map) => Ok(Self { path, map }),
            None => Err(Fault { field: path.into(), why: "it must be an object".into() }),
        }
    }

    pub(super) fn fault<T>(&self, name: &str, why: impl Into<String>) -> Result<T> {
        Err(Fault { field: format!("{}.{name}", self.path), why: why.into() })
    }

    /// A value that a parser refuses, with the parser's own words.
    pub(super) fn checked<T, E: std::fmt::Display>(&self, name: &str, read: std::result::Result<T, E>) -> Result<T> {
        read.or_else(|error| self.fault(name, error.to_string()))
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    fn must(&self, name: &str) -> Result<&'a Value> {
        self.value(name).map_or_else(|| self.fault(name, "it is missing"), Ok)
    }

    pub(super) fn text(&self, name: &str) -> Result<&'a str> {
        let Some(text) = self.must(name)?.as_str() else { return self.fault(name, "it must be a text") };
        if text.contains('\0') {
            return self.fault(name, "it contains a NUL character, which no database holds");
        }
        Ok(text)
    }

    pub(super) fn text_if(&self, name: &str) -> Result<Option<&'a str>> {
        self.value(name).map(|_| self.text(name)).transpose()
    }

    pub(super) fn owned_if(&self, name: &str) -> Result<Option<String>> {
        Ok(self.text_if(name)?.map(str::to_owned))
    }

    pub(super) fn shared_if(&self, name: &str) -> Result<Option<Arc<str>>> {
        Ok(self.text_if(name)?.map(Into::into))
    }

    pub(super) fn word<T>(&self, name: &str, parse: impl Fn(&str) -> Option<T>, accepted: &str) -> Result<T> {
        let word = self.text(name)?;
        parse(word).map_or_else(|| self.fault(name, format!("`{}` is not one of {accepted}", short(word))), Ok)
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.value(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => self.fault(name, "it must be true or false"),
        }
    }

    /// A whole number, 0 if it is absent.
    fn number(&self, name: &str, most: u64) -> Result<u64> {
        let Some(value) = self.value(name) else { return Ok(0) };
        let number = value.as_u64().filter(|number| *number <= most);
        number.map_or_else(|| self.fault(name, format!("it must be a whole number from 0 to {most}")), Ok)
    }

    pub(super) fn large(&self, name: &str) -> Result<u64> {
        self.number(name, i64::MAX as u64)
    }

    pub(super) fn count(&self, name: &str) -> Result<u32> {
        self.number(name, MAX_COUNT).map(|number| number as u32)
    }

    pub(super) fn span(&self, name: &str) -> Result<Millis> {
        self.number(name, Millis::MAX.get()).map(Millis::new)
    }

    pub(super) fn span_if(&self, name: &str) -> Result<Option<Millis>> {
        self.value(name).map(|_| self.span(name)).transpose()
    }

    pub(super) fn moment(&self, name: &str) -> Result<Timestamp> {
        self.must(name)?;
        let most = Timestamp::MAX.as_millis() as u64;
        self.number(name, most).map(|ms| Timestamp::from_millis(ms as i64))
    }

    pub(super) fn moment_if(&self, name: &str) -> Result<Option<Timestamp>> {
        self.value(name).map(|_| self.moment(name)).transpose()
    }

    pub(super) fn id_if(&self, name: &str) -> Result<Option<JobId>> {
        match self.value(name) {
            None => Ok(None),
            Some(_) => match self.large(name)? {
                0 => self.fault(name, "ids are greater than 0"),
                id => Ok(Some(JobId(id as i64))),
            },
        }
    }

    pub(super) fn id(&self, name: &str) -> Result<JobId> {
        self.must(name)?;
        self.id_if(name)?.map_or_else(|| self.fault(name, "it is missing"), Ok)
    }

    /// An object as the columns of stores have it.
    pub(super) fn stored_if<T>(
        &self,
        name: &str,
        read: impl Fn(&str) -> std::result::Result<T, StoreError>,
    ) -> Result<Option<T>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let text = value.to_string();
        if text.contains("\\u0000") {
            return self.fault(name, "it contains a NUL character, which no database holds");
        }
        match read(&text) {
            Ok(read) => Ok(Some(read)),
            Err(_) => self.fault(name, "it is not in the form that an export writes"),
        }
    }

    pub(super) fn texts_if(&self, name: &str) -> Result<Option<Vec<String>>> {
        let Some(value) = self.value(name) else { return Ok(None) };
        let texts = value.as_array().and_then(|all| {
            all.iter().map(|one| one.as_str().filter(|text| !text.contains('\0')).map(str::to_owned)).collect()
        });
        texts.map_or_else(|| self.fault(name, "it must be a list of texts"), |texts| Ok(Some(texts)))
    }
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

/// The object without its nulls, and without numbers and flags at their default.
pub(super) fn slim(value: Value) -> Value {
    let Value::Object(fields) = value else { return value };
    let is_usual = |value: &Value| value.is_null() || *value == Value::Bool(false);
    Value::Object(fields.into_iter().filter(|(_, value)| !is_usual(value)).collect())
}
