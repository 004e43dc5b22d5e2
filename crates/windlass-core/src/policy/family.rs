//! The field names of other systems, accepted on input so that their users can keep their settings.
//! If an object with a family's names names no policy or strategy, it starts from that family's preset.

use super::field::Field;
use super::{Partial, PolicyError, Preset, Strategy};
use crate::backoff::Ratio;
use crate::jitter::Jitter;
use serde_json::{Map, Value};

/// All names of the other families. `maxRetries` is a native name too; it is listed because one family
/// writes it together with its own names, at the top level of a job.
pub const FAMILY_FIELDS: &[&str] = &[
    "MaxRetries",
    "RetryBackoffBaseMS",
    "RetryBackoffMaxMS",
    "retryDelay",
    "baseRetryDelay",
    "maxRetryDelay",
    "retryStrategy",
    "jitterEnabled",
    "jitterFactor",
    "useExponentialBackoff",
    "maxRetryCount",
    "maxRetries",
];

/// The system that a name comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// `MaxRetries`, `RetryBackoffBaseMS`, …
    Library,
    /// `retryDelay`, `retryStrategy`, `jitterFactor`, …
    Scheduler,
    /// `maxRetryCount`
    Http,
}

impl Family {
    /// The only family that uses this name.
    pub(super) fn of(name: &str) -> Option<Self> {
        match name {
            "MaxRetries" | "RetryBackoffBaseMS" | "RetryBackoffMaxMS" => Some(Self::Library),
            "retryDelay"
            | "baseRetryDelay"
            | "maxRetryDelay"
            | "retryStrategy"
            | "jitterEnabled"
            | "jitterFactor"
            | "useExponentialBackoff" => Some(Self::Scheduler),
            "maxRetryCount" => Some(Self::Http),
            _ => None,
        }
    }

    pub(super) fn preset(self) -> Partial {
        let name = match self {
            Self::Library => "full-jitter",
            Self::Scheduler => "exponential",
            Self::Http => "http",
        };
        Preset::find(name).expect("the families' presets are in the table").partial()
    }
}

/// The level that the foreign names in an object define, and the family they belong to.
///
/// # Errors
/// The name whose value is wrong, or that contradicts another.
pub(super) fn read(object: &Map<String, Value>) -> Result<Option<(Family, Partial)>, PolicyError> {
    let mut found: Option<(Family, &str)> = None;
    let mut level = Partial::default();
    for (name, value) in object {
        let Some(family) = Family::of(name) else { continue };
        if let Some((first, earlier)) = found.filter(|(first, _)| *first != family) {
            debug_assert_ne!(first, family);
            return Err(PolicyError::new(
                name,
                format!("and `{earlier}` are names of different systems; use only one"),
            ));
        }
        found = Some((family, name));
        let before = level.clone();
        set(&mut level, object, name, value)?;
        if let Some(field) = level.contradicts(&before) {
            return Err(PolicyError::new(name, format!("contradicts another name for `{field}` in the same policy")));
        }
    }
    Ok(found.map(|(family, _)| (family, level)))
}

fn set(level: &mut Partial, object: &Map<String, Value>, name: &str, value: &Value) -> Result<(), PolicyError> {
    let native = match name {
        "MaxRetries" | "maxRetryCount" => Some(Field::MaxRetries),
        "RetryBackoffBaseMS" | "retryDelay" | "baseRetryDelay" => Some(Field::Base),
        "RetryBackoffMaxMS" | "maxRetryDelay" => Some(Field::MaxDelay),
        _ => None,
    };
    if let Some(field) = native {
        return super::object::set(level, field, name, value);
    }
    match name {
        "retryStrategy" => level.strategy = Some(strategy(name, value)?),
        "useExponentialBackoff" => {
            let wanted = flag(name, value)?;
            // A named strategy is more precise than the flag, if the two agree.
            let named = object.get("retryStrategy").map(|v| strategy("retryStrategy", v)).transpose()?;
            if named.is_some_and(|s| (s == Strategy::Exponential) != wanted) {
                return Err(PolicyError::new(name, "contradicts `retryStrategy`; give one of them"));
            }
            let by_flag = if wanted { Strategy::Exponential } else { Strategy::Fixed };
            level.strategy = Some(named.unwrap_or(by_flag));
        }
        // Both fields are read together, in any order: the factor has no effect while jitter is off.
        _ => level.jitter = Some(jitter(object)?),
    }
    Ok(())
}

fn jitter(object: &Map<String, Value>) -> Result<Jitter, PolicyError> {
    let share = match object.get("jitterFactor") {
        None => Ratio::from_millionths(200_000),
        Some(value) => {
            let text = value.as_number().map(ToString::to_string).unwrap_or_default();
            Ratio::parse(&text)
                .filter(|f| *f <= Jitter::MAX_SPREAD)
                .ok_or_else(|| PolicyError::new("jitterFactor", "must be a number from 0 to 1"))?
        }
    };
    let enabled = object.get("jitterEnabled").map_or(Ok(true), |value| flag("jitterEnabled", value))?;
    Ok(if enabled { Jitter::Spread(share) } else { Jitter::None })
}

fn strategy(name: &str, value: &Value) -> Result<Strategy, PolicyError> {
    let word = value.as_str().unwrap_or_default().to_lowercase();
    Strategy::parse(&word)
        .filter(|s| *s != Strategy::Steps)
        .ok_or_else(|| PolicyError::new(name, "must be exponential, linear, fixed or fibonacci"))
}

fn flag(name: &str, value: &Value) -> Result<bool, PolicyError> {
    value.as_bool().ok_or_else(|| PolicyError::new(name, "must be true or false"))
}
