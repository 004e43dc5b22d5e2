//! The presets: built-in named policies.

use super::{Bound, DEFAULT_MAX_CRASHES, DEFAULT_MAX_RETRY_AFTER, Partial, Pattern, Strategy};
use crate::backoff::Ratio;
use crate::jitter::Jitter;
use crate::time::Millis;

/// A named policy and what it is for.
#[derive(Debug)]
pub struct Preset {
    pub name: &'static str,
    pub purpose: &'static str,
    strategy: Strategy,
    base: Millis,
    steps: &'static [Millis],
    max_delay: Bound,
    jitter: Jitter,
    max_retries: u32,
}

const SPREAD: Jitter = Jitter::Spread(Ratio::from_millionths(200_000));
const ADDITIVE: Jitter = Jitter::Additive(Ratio::from_millionths(300_000));
const MINUTE: Millis = Millis::from_secs(60);
const HOUR: Bound = Bound::At(Millis::from_secs(3600));

const fn cap(seconds: u64) -> Bound {
    Bound::At(Millis::from_secs(seconds))
}

const fn preset(
    name: &'static str,
    purpose: &'static str,
    strategy: Strategy,
    base: Millis,
    max_delay: Bound,
    jitter: Jitter,
    max_retries: u32,
) -> Preset {
    Preset { name, purpose, strategy, base, steps: &[], max_delay, jitter, max_retries }
}

/// All presets, in the order of the reference table.
pub const PRESETS: &[Preset] = &[
    Preset {
        steps: &[Millis::from_secs(30), Millis::from_secs(60), Millis::from_secs(120)],
        ..preset("stepped", "webhooks: 30 s, 1 min, 2 min", Strategy::Steps, Millis::ZERO, Bound::None, Jitter::None, 3)
    },
    preset("full-jitter", "busy in-process queues", Strategy::Exponential, Millis::new(500), cap(30), Jitter::Full, 3),
    preset("exponential", "the default for handlers", Strategy::Exponential, MINUTE, HOUR, SPREAD, 3),
    preset("linear", "steady growth", Strategy::Linear, MINUTE, HOUR, SPREAD, 3),
    preset("fixed", "the same wait each time", Strategy::Fixed, MINUTE, HOUR, SPREAD, 3),
    preset("fibonacci", "gentle growth", Strategy::Fibonacci, MINUTE, HOUR, SPREAD, 3),
    preset("http", "calls to URLs", Strategy::Exponential, Millis::from_secs(1), cap(300), Jitter::None, 3),
    preset(
        "queue-worker",
        "message queues, 5 attempts",
        Strategy::Exponential,
        Millis::from_secs(1),
        cap(60),
        ADDITIVE,
        4,
    ),
    preset(
        "financial",
        "payments: 5 retries in 31 s, spread",
        Strategy::Exponential,
        Millis::from_secs(1),
        cap(60),
        Jitter::Full,
        5,
    ),
    preset("low-latency", "quick or not at all", Strategy::Exponential, Millis::new(100), cap(5), Jitter::Full, 2),
    preset("once", "one attempt, no retry", Strategy::Fixed, Millis::ZERO, Bound::None, Jitter::None, 0),
];

impl Preset {
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        PRESETS.iter().find(|p| p.name == name)
    }

    /// The preset as a level: it sets every field except the lists of classes, which depend on the executor.
    #[must_use]
    pub fn partial(&self) -> Partial {
        let is_steps = self.strategy == Strategy::Steps;
        Partial {
            strategy: Some(self.strategy),
            base: (!is_steps).then_some(self.base),
            factor: (self.strategy == Strategy::Exponential).then_some(Ratio::TWO),
            steps: is_steps.then(|| self.steps.to_vec()),
            max_delay: Some(self.max_delay),
            jitter: Some(self.jitter),
            max_retries: Some(self.max_retries),
            max_elapsed: Some(Bound::None),
            max_crashes: Some(DEFAULT_MAX_CRASHES),
            give_up_on: None,
            retry_on: None,
            max_retry_after: Some(DEFAULT_MAX_RETRY_AFTER),
            rules: None,
        }
    }
}

/// The role of a job. Each role has its own default policy and `giveUpOn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Run by an in-process handler or a remote worker.
    Handler,
    /// A call to a URL.
    Http,
    /// A completion webhook or an alert notice.
    Delivery,
}

impl Role {
    /// The preset of a job for which no level names one.
    #[must_use]
    pub fn default_policy(self) -> Partial {
        let name = match self {
            Self::Handler => "exponential",
            Self::Http => "http",
            Self::Delivery => "stepped",
        };
        Preset::find(name).expect("the default presets are in the table").partial()
    }

    /// The default of `giveUpOn`. Handlers know their own errors, a URL's status may be a temporary fault of
    /// the service, and 410 asks a webhook's sender to stop.
    #[must_use]
    pub fn default_give_up_on(self) -> Vec<Pattern> {
        match self {
            Self::Handler => ["ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError"]
                .map(|c| Pattern::Class(c.into()))
                .to_vec(),
            Self::Http => Vec::new(),
            Self::Delivery => vec![Pattern::Status(410)],
        }
    }
}
