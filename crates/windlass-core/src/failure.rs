//! Failure: why an attempt failed, and what it requests from the retry policy.

use crate::time::Millis;

/// Class of an attempt whose lease ran out.
pub const WORKER_LOST: &str = "WorkerLost";
/// Class of a handler that panicked.
pub const PANIC: &str = "Panic";
/// Class of an attempt that took longer than its timeout, locally or on the other side of the network.
pub const TIMEOUT: &str = "Timeout";
/// Class of a job for whose kind this worker has no handler; retried, because a rolling deploy may add one.
pub const UNKNOWN_KIND: &str = "UnknownKind";
/// Class of a payload its handler cannot decode; permanent.
pub const BAD_PAYLOAD: &str = "BadPayload";

/// Classes that say nothing about the destination.
const OWN_FAULTS: [&str; 4] = [PANIC, WORKER_LOST, UNKNOWN_KIND, BAD_PAYLOAD];

/// Why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A name such as `Timeout` or `ValidationError`; policies match on it.
    pub class: String,
    /// What happened, as text for the operator.
    pub message: String,
    /// The HTTP status, if there was one; policies match on it too.
    pub status: Option<u16>,
    /// What the failure requests from the policy.
    pub advice: Advice,
    /// The stack trace, if there is one.
    pub trace: Option<String>,
}

/// `class: message`, so that a failure can be used with `?` like any other error.
impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Failure {}

/// What a failure requests from the retry policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Advice {
    /// No request: the policy alone decides.
    #[default]
    None,
    /// Never try again.
    Permanent,
    /// Wait at least this long (limited by the policy's `maxRetryAfter`).
    RetryAfter(Millis),
    /// Wait exactly this long.
    RetryIn(Millis),
}

/// The default class of a failure.
pub const ERROR: &str = "Error";

impl Failure {
    /// A retryable failure of class `Error`.
    pub fn new(message: impl Into<String>) -> Self {
        Self { class: ERROR.into(), message: message.into(), status: None, advice: Advice::None, trace: None }
    }

    /// A failure that is never retried.
    pub fn permanent(message: impl Into<String>) -> Self {
        Self { advice: Advice::Permanent, ..Self::new(message) }
    }

    /// Sets its class, which the policy's `giveUpOn` and `retryOn` match on.
    #[must_use]
    pub fn class(mut self, class: impl Into<String>) -> Self {
        self.class = class.into();
        self
    }

    /// Whether it shows that the destination is in trouble. An answer does if its status is 5xx, 408 or 429; without an
    /// answer, everything does that is not a fault of the job or its worker.
    #[must_use]
    pub fn speaks_of_the_destination(&self) -> bool {
        match self.status {
            Some(status) => status >= 500 || status == 408 || status == 429,
            None => self.advice != Advice::Permanent && !OWN_FAULTS.contains(&self.class.as_str()),
        }
    }

    /// Adds a stack trace, which is kept with the attempt.
    #[must_use]
    pub fn trace(mut self, trace: impl Into<String>) -> Self {
        self.trace = Some(trace.into());
        self
    }

    /// Asks to wait at least `span` before the next attempt.
    #[must_use]
    pub fn retry_after(mut self, span: impl Into<Millis>) -> Self {
        self.advice = Advice::RetryAfter(span.into());
        self
    }

    /// Asks to wait exactly `span` before the next attempt.
    #[must_use]
    pub fn retry_in(mut self, span: impl Into<Millis>) -> Self {
        self.advice = Advice::RetryIn(span.into());
        self
    }
}
