//! The fields of a policy as users write them: their names, and how the text of a value is read.
//! `line` and `object` share this, so both accept the same values and report the same errors.

use super::{Bound, MAX_RETRIES, Partial, Pattern, Strategy};
use crate::backoff::Ratio;
use crate::jitter::Jitter;
use crate::time::Millis;

/// One field of a [`Partial`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Strategy,
    Base,
    Factor,
    Steps,
    MaxDelay,
    Jitter,
    MaxRetries,
    MaxAttempts,
    MaxElapsed,
    MaxCrashes,
    GiveUpOn,
    RetryOn,
    MaxRetryAfter,
}

/// The word that removes a limit or empties a list.
pub(super) const NONE: &str = "none";

impl Field {
    pub(super) const ALL: [Self; 13] = [
        Self::Strategy,
        Self::Base,
        Self::Factor,
        Self::Steps,
        Self::MaxDelay,
        Self::Jitter,
        Self::MaxRetries,
        Self::MaxAttempts,
        Self::MaxElapsed,
        Self::MaxCrashes,
        Self::GiveUpOn,
        Self::RetryOn,
        Self::MaxRetryAfter,
    ];

    /// The name in the object form.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Strategy => "strategy",
            Self::Base => "base",
            Self::Factor => "factor",
            Self::Steps => "steps",
            Self::MaxDelay => "maxDelay",
            Self::Jitter => "jitter",
            Self::MaxRetries => "maxRetries",
            Self::MaxAttempts => "maxAttempts",
            Self::MaxElapsed => "maxElapsed",
            Self::MaxCrashes => "maxCrashes",
            Self::GiveUpOn => "giveUpOn",
            Self::RetryOn => "retryOn",
            Self::MaxRetryAfter => "maxRetryAfter",
        }
    }

    /// The name in the one-line form, which is short for the most common fields.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::MaxDelay => "cap",
            Self::MaxRetries => "retries",
            Self::MaxAttempts => "attempts",
            Self::Strategy | Self::Base | Self::Factor | Self::Steps | Self::Jitter => self.name(),
            Self::MaxElapsed | Self::MaxCrashes | Self::GiveUpOn | Self::RetryOn | Self::MaxRetryAfter => self.name(),
        }
    }

    /// The accepted form of a value; the second half of every error message.
    pub(super) const fn form(self) -> &'static str {
        match self {
            Self::Strategy => "exponential, linear, fixed, fibonacci or steps",
            Self::Base => "a duration: 500ms, 30s, 1m30s, 2h, or whole milliseconds",
            Self::Factor => "a number from 1 to 1000 with at most six decimals, such as 2 or 1.5",
            Self::Steps => "1 to 1000 durations, such as 30s/60s/120s",
            Self::MaxDelay | Self::MaxElapsed => "a duration (500ms, 30s, 1m30s, 2h, or whole milliseconds) or none",
            Self::Jitter => {
                "none, full, equal, decorrelated, spread(f) with f from 0 to 1, or additive(f) with f from 0 to 10"
            }
            Self::MaxRetries => "a whole number from 0 to 1000",
            Self::MaxAttempts => "a whole number from 1 to 1001",
            Self::MaxCrashes => "a whole number from 1 to 1000",
            Self::GiveUpOn | Self::RetryOn => {
                "at most 100 error classes and HTTP statuses, such as ValidationError, 404 and 4xx, or none"
            }
            Self::MaxRetryAfter => "a duration: 0s, 90s, 1h, or whole milliseconds",
        }
    }

    /// The separator of list items in one text; none for a single value.
    pub(super) const fn separator(self) -> Option<char> {
        if matches!(self, Self::Steps) {
            Some('/')
        } else if matches!(self, Self::GiveUpOn | Self::RetryOn) {
            Some('|')
        } else {
            None
        }
    }

    /// The other field that sets the same thing.
    pub(super) const fn twin(self) -> Option<Self> {
        if matches!(self, Self::MaxRetries) {
            Some(Self::MaxAttempts)
        } else if matches!(self, Self::MaxAttempts) {
            Some(Self::MaxRetries)
        } else {
            None
        }
    }

    /// Whether the field has an effect on a strategy.
    pub(super) const fn matters_to(self, strategy: Strategy) -> bool {
        let is_steps = matches!(strategy, Strategy::Steps);
        !(matches!(self, Self::Base) && is_steps
            || matches!(self, Self::Steps) && !is_steps
            || matches!(self, Self::Factor) && !matches!(strategy, Strategy::Exponential))
    }

    /// Reads the value and sets it. `items` is one text, or several for a list.
    /// The error names the accepted form.
    pub(super) fn set(self, partial: &mut Partial, items: &[&str]) -> Result<(), String> {
        self.read(partial, items).ok_or_else(|| {
            let shown: String = items.join(&self.separator().unwrap_or(',').to_string()).chars().take(60).collect();
            format!("`{shown}` is not accepted; write {}", self.form())
        })
    }

    fn read(self, partial: &mut Partial, items: &[&str]) -> Option<()> {
        match self {
            Self::Strategy => partial.strategy = Some(Strategy::parse(one(items)?)?),
            Self::Base => partial.base = Some(duration(one(items)?)?),
            Self::Factor => {
                let limits = Ratio::ONE..=Ratio::from_millionths(1_000_000_000);
                partial.factor = Some(Ratio::parse(one(items)?).filter(|f| limits.contains(f))?);
            }
            Self::Steps => {
                let steps: Option<Vec<_>> = items.iter().map(|item| duration(item)).collect();
                partial.steps = Some(steps.filter(|s| (1..=MAX_RETRIES as usize).contains(&s.len()))?);
            }
            Self::MaxDelay => partial.max_delay = Some(bound(one(items)?)?),
            Self::Jitter => partial.jitter = Some(Jitter::parse(one(items)?)?),
            Self::MaxRetries => partial.max_retries = Some(count(one(items)?, 0, MAX_RETRIES)?),
            Self::MaxAttempts => partial.max_retries = Some(count(one(items)?, 1, MAX_RETRIES + 1)? - 1),
            Self::MaxElapsed => partial.max_elapsed = Some(bound(one(items)?)?),
            Self::MaxCrashes => partial.max_crashes = Some(count(one(items)?, 1, MAX_RETRIES)?),
            Self::GiveUpOn => partial.give_up_on = Some(patterns(items)?),
            Self::RetryOn => partial.retry_on = Some(patterns(items)?),
            Self::MaxRetryAfter => partial.max_retry_after = Some(duration(one(items)?)?),
        }
        Some(())
    }
}

fn one<'a>(items: &[&'a str]) -> Option<&'a str> {
    match items {
        [only] => Some(only),
        [] | [_, _, ..] => None,
    }
}

fn duration(text: &str) -> Option<Millis> {
    Millis::parse(text).ok()
}

fn bound(text: &str) -> Option<Bound> {
    if text == NONE { Some(Bound::None) } else { duration(text).map(Bound::At) }
}

fn count(text: &str, least: u32, most: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| digits && (least..=most).contains(n))
}

fn patterns(items: &[&str]) -> Option<Vec<Pattern>> {
    if items == [NONE] {
        return Some(Vec::new());
    }
    let listed: Option<Vec<_>> = items.iter().map(|item| Pattern::parse(item)).collect();
    listed.filter(|l| l.len() <= super::MAX_PATTERNS)
}
