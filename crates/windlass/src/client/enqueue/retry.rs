//! How a caller specifies a retry policy.

use crate::client::policies::catalogue::Catalogue;
use std::borrow::Cow;
use windlass_core::policy::Partial;
use windlass_core::{Policy, PolicyError};

/// A value that can be used as a retry policy: a name, a line, some fields, or a complete policy.
pub trait IntoRetry {
    /// The same as a value.
    fn into_retry(self) -> Retry;
}

/// A job's own part of its retry policy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retry {
    /// A preset or named policy (`"full-jitter"`), or a line (`"steps:30s/60s/120s"`), read with the store's names.
    Line(Cow<'static, str>),
    /// Fields over the levels below.
    Fields(Box<Partial>),
}

impl Retry {
    /// Its fields, with the store's named policies resolved.
    pub(crate) fn read(&self, catalogue: &Catalogue) -> Result<Partial, PolicyError> {
        match self {
            Self::Line(line) => catalogue.read(&serde_json::Value::String(line.clone().into_owned())),
            Self::Fields(fields) => Ok((**fields).clone()),
        }
    }
}

impl IntoRetry for Retry {
    fn into_retry(self) -> Retry {
        self
    }
}

impl IntoRetry for &str {
    fn into_retry(self) -> Retry {
        Retry::Line(self.to_owned().into())
    }
}

impl IntoRetry for String {
    fn into_retry(self) -> Retry {
        Retry::Line(self.into())
    }
}

impl IntoRetry for Partial {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(self))
    }
}

impl IntoRetry for Policy {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(Partial::from(&self)))
    }
}

impl IntoRetry for &Policy {
    fn into_retry(self) -> Retry {
        Retry::Fields(Box::new(Partial::from(self)))
    }
}
