//! Policy: the retry rules of a job, complete and checked. `partial` merges levels of partial policies,
//! `preset` has the named ones, and `line` and `object` read and print them.

mod environment;
mod family;
mod field;
mod line;
mod object;
mod partial;
mod preset;

pub use environment::{attempt_variables, attempts_from_environment, usual_attempts};
pub use family::FAMILY_FIELDS;
pub use line::{Names, no_names};
pub use partial::{Bound, Partial, Strategy};
pub use preset::{PRESETS, Preset, Role};

use crate::backoff::Backoff;
use crate::failure::Failure;
use crate::jitter::{Jitter, Window};
use crate::rules::Rule;
use crate::time::Millis;
use std::fmt;

/// The most retries a policy can allow.
pub const MAX_RETRIES: u32 = 1000;
/// The most patterns in `giveUpOn` or `retryOn`.
pub const MAX_PATTERNS: usize = 100;
/// Lost leases in a row before a job is quarantined, unless the policy says otherwise. One crash may be an
/// accident and two may be a deploy, but three suggest that the job is the cause.
pub const DEFAULT_MAX_CRASHES: u32 = 3;
/// The longest Retry-After that is honoured, unless the policy says otherwise.
pub const DEFAULT_MAX_RETRY_AFTER: Millis = Millis::from_secs(3600);

/// The complete retry rules of a job, frozen into it when it is first stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Policy {
    pub backoff: Backoff,
    /// No delay chosen by the policy exceeds this, including jitter.
    pub max_delay: Option<Millis>,
    pub jitter: Jitter,
    pub max_retries: u32,
    /// Give up when the next attempt would start later than the first attempt plus this.
    pub max_elapsed: Option<Millis>,
    pub max_crashes: u32,
    /// Failures that are never retried.
    pub give_up_on: Vec<Pattern>,
    /// If set, only these are retried.
    pub retry_on: Option<Vec<Pattern>>,
    pub max_retry_after: Millis,
    /// What some failures get before the lists apply; the first rule that matches decides.
    pub rules: Vec<Rule>,
}

impl Policy {
    #[must_use]
    pub const fn max_attempts(&self) -> u32 {
        self.max_retries.saturating_add(1)
    }

    /// The cap, or the longest possible span.
    pub(crate) fn cap(&self) -> Millis {
        self.max_delay.unwrap_or(Millis::MAX)
    }

    /// The delay of retry `n` before jitter, capped.
    #[must_use]
    pub fn delay(&self, n: u32) -> Millis {
        self.backoff.delay(n).min(self.cap())
    }

    /// The possible delays of retry `n`, given the previous delay.
    #[must_use]
    pub fn window(&self, n: u32, previous: Millis) -> Window {
        self.jitter.window(self.delay(n), self.cap(), self.backoff.base(), previous)
    }

    /// The same, when a server or handler asked to wait at least `asked`.
    #[must_use]
    pub fn window_after(&self, n: u32, previous: Millis, asked: Millis) -> Window {
        self.window(n, previous).above(asked.min(self.max_retry_after))
    }

    /// Whether the policy gives up at once on a failure of this class and status.
    #[must_use]
    pub fn gives_up_on(&self, failure: &Failure) -> bool {
        self.gives_up(&failure.class, failure.status)
    }

    /// The same, for a class without a status.
    #[must_use]
    pub fn gives_up_on_class(&self, class: &str) -> bool {
        self.gives_up(class, None)
    }

    fn gives_up(&self, class: &str, status: Option<u16>) -> bool {
        let listed = |patterns: &[Pattern]| patterns.iter().any(|p| p.matches(class, status));
        listed(&self.give_up_on) || self.retry_on.as_deref().is_some_and(|only| !listed(only))
    }
}

/// An entry of a policy's lists: an error class, an HTTP status, or a range of a hundred statuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    Class(String),
    Status(u16),
    /// `4xx`
    Hundred(u16),
}

impl Pattern {
    /// Reads `ValidationError`, `404` or `4xx`. `None` if the text has none of these forms.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if is_number(text) {
            return text.parse().ok().filter(|status| (100..=599).contains(status)).map(Self::Status);
        }
        if let Some(hundred) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX"))
            && is_number(hundred)
        {
            return hundred.parse().ok().filter(|h| (1..=5).contains(h)).map(Self::Hundred);
        }
        // `none` is the word for an empty list.
        if text.is_empty() || text == field::NONE {
            return None;
        }
        let is_class = text.len() <= 128 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.:-<>".contains(&b));
        is_class.then(|| Self::Class(text.into()))
    }

    fn matches(&self, class: &str, status: Option<u16>) -> bool {
        matches!(self, Self::Class(name) if name == class) || self.matches_status(status)
    }

    pub(crate) fn matches_status(&self, status: Option<u16>) -> bool {
        match self {
            Self::Class(_) => false,
            Self::Status(code) => status == Some(*code),
            Self::Hundred(h) => status.is_some_and(|s| s / 100 == *h),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(name) => f.write_str(name),
            Self::Status(code) => code.fmt(f),
            Self::Hundred(h) => write!(f, "{h}xx"),
        }
    }
}

/// An invalid policy: which field, where, and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyError {
    /// The field as written in the input, or empty for the policy as a whole.
    pub field: String,
    /// Byte position in a one-line policy.
    pub position: Option<usize>,
    /// What is wrong and what is accepted.
    pub message: String,
}

impl PolicyError {
    pub(crate) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), position: None, message: message.into() }
    }
}

impl std::error::Error for PolicyError {}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(position) = self.position {
            write!(f, "at position {}: ", position + 1)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}
