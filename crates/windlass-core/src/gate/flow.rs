//! The flow settings of a queue: what its gates enforce, and which key a job has.

use super::{BreakerRule, BudgetRule, GateRule};
use crate::decide::Outcome;
use crate::failure::Advice;
use crate::job::{Executor, words};
use crate::rules::Rule;
use crate::time::Millis;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The longest limit key, in characters.
pub const MAX_LIMIT_KEY: usize = 128;
/// How long an automatic hold lasts at most, unless the queue says otherwise.
pub const DEFAULT_MAX_HOLD: Millis = Millis::from_secs(300);

words! {
    /// What the key of a job is.
    KeyBy {
        /// The job's own `limitKey`; for jobs that call a URL and have none, the destination.
        LimitKey = "limitKey",
        Tenant = "tenant",
        Destination = "destination",
    }
}

words! {
    /// Over what a queue's limits count.
    Across {
        /// Each tenant's queue of that name has its own.
        Tenant = "tenant",
        /// One limit for the queue's name over all tenants.
        All = "all",
    }
}

words! {
    /// Who waits when an answer has `Retry-After`.
    Honor {
        /// Everything with the same key.
        Key = "key",
        /// Only the job that received the answer.
        Job = "job",
    }
}

/// A queue's flow settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// What the gate of the queue enforces: its limits and its retry budget.
    pub queue: GateRule,
    /// What the gate of each key enforces: the limits per key and the breaker.
    pub per_key: GateRule,
    pub key_by: KeyBy,
    pub across: Across,
    /// Unset: `key` for jobs that call URLs, else `job`.
    pub honor_retry_after: Option<Honor>,
    /// The longest automatic hold.
    pub max_hold: Millis,
    /// What some failures of the queue's jobs get.
    pub rules: Arc<[Rule]>,
}

impl Default for Flow {
    fn default() -> Self {
        Self {
            queue: GateRule::default(),
            per_key: GateRule::default(),
            key_by: KeyBy::LimitKey,
            across: Across::Tenant,
            honor_retry_after: None,
            max_hold: DEFAULT_MAX_HOLD,
            rules: Arc::default(),
        }
    }
}

impl Flow {
    /// Whether any gate enforces anything.
    #[must_use]
    pub const fn is_gated(&self) -> bool {
        !self.queue.is_none() || !self.per_key.is_none()
    }

    /// What the gate of jobs without a key enforces: the breaker, and no limit.
    #[must_use]
    pub fn keyless(&self) -> GateRule {
        GateRule { breaker: self.breaker(), ..GateRule::default() }
    }

    #[must_use]
    pub const fn breaker(&self) -> Option<BreakerRule> {
        self.per_key.breaker
    }

    #[must_use]
    pub const fn budget(&self) -> Option<BudgetRule> {
        self.queue.budget
    }

    /// How long the key of a job is held after this outcome: a 429 or 503 with `Retry-After`, or a handler's failure
    /// that asks to wait, if the queue honors that for the whole key.
    #[must_use]
    pub fn hold_after(&self, executor: Executor, outcome: &Outcome) -> Option<Millis> {
        let Outcome::Failed(failure) = outcome else { return None };
        let Advice::RetryAfter(asked) = failure.advice else { return None };
        let default = match executor {
            Executor::Http => Honor::Key,
            Executor::Worker => Honor::Job,
        };
        let is_asked = failure.status.is_none_or(|status| status == 429 || status == 503);
        let is_held = is_asked && self.honor_retry_after.unwrap_or(default) == Honor::Key && !asked.is_zero();
        is_held.then(|| asked.min(self.max_hold))
    }

    /// The key of a job. `destination` is that of a job that calls a URL.
    #[must_use]
    pub fn key_of<'a>(
        &self,
        tenant: &'a str,
        limit_key: Option<&'a str>,
        destination: Option<&'a str>,
    ) -> Option<Cow<'a, str>> {
        match self.key_by {
            KeyBy::LimitKey => limit_key.or(destination).map(Cow::Borrowed),
            KeyBy::Tenant => Some(Cow::Borrowed(tenant)),
            KeyBy::Destination => destination.map(Cow::Borrowed),
        }
    }
}

/// The destination of a URL: scheme, host and port, with the scheme's own port written out. `None` for anything but
/// `http` and `https`.
#[must_use]
pub fn destination(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let default_port = match scheme.as_str() {
        "http" => "80",
        "https" => "443",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let host_and_port = authority.rsplit('@').next()?;
    // The colons of an IPv6 address are inside brackets.
    let after_host = host_and_port.rfind(']').map_or(0, |i| i + 1);
    let (host, port) = match host_and_port[after_host..].find(':') {
        Some(colon) => (&host_and_port[..after_host + colon], &host_and_port[after_host + colon + 1..]),
        None => (host_and_port, ""),
    };
    let port = if port.is_empty() { default_port } else { port };
    let is_port = port.bytes().all(|b| b.is_ascii_digit());
    (!host.is_empty() && is_port).then(|| format!("{scheme}://{}:{port}", host.to_ascii_lowercase()))
}
