//! How a caller says what a retry policy is.

use crate::client::catalogue::Catalogue;
use std::borrow::Cow;
use windlass_core::policy::Partial;
use windlass_core::{Policy, PolicyError};

/// What can be given as a retry policy: the name or line of one, some fields, or a whole policy.
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
    /// The fields it stands for, with the names that the store has.
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
