//! Partial policies: what one level (job, named policy, kind, queue, server) sets, and how levels merge.

use super::{DEFAULT_MAX_CRASHES, DEFAULT_MAX_RETRY_AFTER, MAX_PATTERNS, MAX_RETRIES, Pattern, Policy, PolicyError};
use crate::backoff::{Backoff, Ratio};
use crate::jitter::Jitter;
use crate::rules::Rule;
use crate::time::Millis;

/// How delays grow: a [`Backoff`] without its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    Exponential,
    Linear,
    Fixed,
    Fibonacci,
    Steps,
}

impl Strategy {
    pub const ALL: [Self; 5] = [Self::Exponential, Self::Linear, Self::Fixed, Self::Fibonacci, Self::Steps];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Linear => "linear",
            Self::Fixed => "fixed",
            Self::Fibonacci => "fibonacci",
            Self::Steps => "steps",
        }
    }

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == word)
    }
}

/// An optional limit that a level can also remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Bound {
    None,
    At(Millis),
}

impl Bound {
    pub(crate) const fn get(self) -> Option<Millis> {
        match self {
            Self::None => None,
            Self::At(span) => Some(span),
        }
    }
}

impl From<Option<Millis>> for Bound {
    fn from(limit: Option<Millis>) -> Self {
        limit.map_or(Self::None, Self::At)
    }
}

/// What one level sets about retries. `None` means: the next level decides.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Partial {
    pub strategy: Option<Strategy>,
    pub base: Option<Millis>,
    pub factor: Option<Ratio>,
    pub steps: Option<Vec<Millis>>,
    pub max_delay: Option<Bound>,
    pub jitter: Option<Jitter>,
    pub max_retries: Option<u32>,
    pub max_elapsed: Option<Bound>,
    pub max_crashes: Option<u32>,
    pub give_up_on: Option<Vec<Pattern>>,
    pub retry_on: Option<Vec<Pattern>>,
    pub max_retry_after: Option<Millis>,
    pub rules: Option<Vec<Rule>>,
}

impl Partial {
    /// The fields of this level, and those of `below` where this level sets none.
    #[must_use]
    pub fn over(self, below: &Self) -> Self {
        Self {
            strategy: self.strategy.or(below.strategy),
            base: self.base.or(below.base),
            factor: self.factor.or(below.factor),
            steps: self.steps.or_else(|| below.steps.clone()),
            max_delay: self.max_delay.or(below.max_delay),
            jitter: self.jitter.or(below.jitter),
            max_retries: self.max_retries.or(below.max_retries),
            max_elapsed: self.max_elapsed.or(below.max_elapsed),
            max_crashes: self.max_crashes.or(below.max_crashes),
            give_up_on: self.give_up_on.or_else(|| below.give_up_on.clone()),
            retry_on: self.retry_on.or_else(|| below.retry_on.clone()),
            max_retry_after: self.max_retry_after.or(below.max_retry_after),
            rules: self.rules.or_else(|| below.rules.clone()),
        }
    }

    /// Merges levels, nearest first, into a complete policy. `give_up_by_default` is the `giveUpOn` list if
    /// no level has set one; a `retryOn` list replaces that default, because it says what to retry.
    ///
    /// # Errors
    /// The field that is missing, out of range, or without effect on the strategy.
    pub fn resolve(levels: &[Self], give_up_by_default: &[Pattern]) -> Result<Policy, PolicyError> {
        refuse_numbers_without_effect(levels)?;
        let all = levels.iter().fold(Self::default(), Partial::over);
        let give_up_on = match (all.give_up_on.clone(), &all.retry_on) {
            (Some(listed), _) => listed,
            (None, Some(_)) => Vec::new(),
            (None, None) => give_up_by_default.to_vec(),
        };
        let policy = Policy {
            backoff: all.backoff()?,
            max_delay: all.max_delay.and_then(Bound::get),
            jitter: all.jitter.unwrap_or(Jitter::None),
            max_retries: all.max_retries.unwrap_or(3),
            max_elapsed: all.max_elapsed.and_then(Bound::get),
            max_crashes: all.max_crashes.unwrap_or(DEFAULT_MAX_CRASHES),
            give_up_on,
            retry_on: all.retry_on,
            max_retry_after: all.max_retry_after.unwrap_or(DEFAULT_MAX_RETRY_AFTER),
            rules: all.rules.unwrap_or_default(),
        };
        check(&policy).map(|()| policy)
    }

    fn backoff(&self) -> Result<Backoff, PolicyError> {
        let strategy = self.strategy.unwrap_or(Strategy::Exponential);
        let base = || {
            self.base
                .ok_or_else(|| PolicyError::new("base", format!("{} needs a base, such as 30s", strategy.as_str())))
        };
        Ok(match strategy {
            Strategy::Exponential => Backoff::Exponential { base: base()?, factor: self.factor.unwrap_or(Ratio::TWO) },
            Strategy::Linear => Backoff::Linear { base: base()? },
            Strategy::Fixed => Backoff::Fixed { base: base()? },
            Strategy::Fibonacci => Backoff::Fibonacci { base: base()? },
            Strategy::Steps => Backoff::Steps(
                self.steps
                    .clone()
                    .ok_or_else(|| PolicyError::new("steps", "steps needs delays, such as 30s/60s/120s"))?,
            ),
        })
    }
}

impl From<&Policy> for Partial {
    fn from(policy: &Policy) -> Self {
        let (strategy, base, factor, steps) = match &policy.backoff {
            Backoff::Exponential { base, factor } => (Strategy::Exponential, Some(*base), Some(*factor), None),
            Backoff::Linear { base } => (Strategy::Linear, Some(*base), None, None),
            Backoff::Fixed { base } => (Strategy::Fixed, Some(*base), None, None),
            Backoff::Fibonacci { base } => (Strategy::Fibonacci, Some(*base), None, None),
            Backoff::Steps(steps) => (Strategy::Steps, None, None, Some(steps.clone())),
        };
        Self {
            strategy: Some(strategy),
            base,
            factor,
            steps,
            max_delay: Some(policy.max_delay.into()),
            jitter: Some(policy.jitter),
            max_retries: Some(policy.max_retries),
            max_elapsed: Some(policy.max_elapsed.into()),
            max_crashes: Some(policy.max_crashes),
            give_up_on: Some(policy.give_up_on.clone()),
            retry_on: policy.retry_on.clone(),
            max_retry_after: Some(policy.max_retry_after),
            rules: (!policy.rules.is_empty()).then(|| policy.rules.clone()),
        }
    }
}

/// Refuses a number that has no effect on the strategy although its level is as near or nearer. Otherwise
/// `{"base":"5s"}` on a queue of `steps` would silently change nothing.
fn refuse_numbers_without_effect(levels: &[Partial]) -> Result<(), PolicyError> {
    let Some((depth, strategy)) = levels.iter().enumerate().find_map(|(i, level)| level.strategy.map(|s| (i, s)))
    else {
        return Ok(());
    };
    for level in &levels[..=depth] {
        let stray = match strategy {
            Strategy::Exponential => level.steps.as_ref().map(|_| "steps"),
            Strategy::Steps => level.base.map(|_| "base").or(level.factor.map(|_| "factor")),
            Strategy::Linear | Strategy::Fixed | Strategy::Fibonacci => {
                level.factor.map(|_| "factor").or(level.steps.as_ref().map(|_| "steps"))
            }
        };
        if let Some(field) = stray {
            return Err(PolicyError::new(
                field,
                format!("has no effect on the current strategy, {}; name a `strategy` too", strategy.as_str()),
            ));
        }
    }
    Ok(())
}

fn check(policy: &Policy) -> Result<(), PolicyError> {
    let outside = |field: &str, range: &str| Err(PolicyError::new(field, format!("must be {range}")));
    if policy.max_retries > MAX_RETRIES {
        return outside("maxRetries", "0 to 1000");
    }
    if !(1..=MAX_RETRIES).contains(&policy.max_crashes) {
        return outside("maxCrashes", "1 to 1000");
    }
    if let Backoff::Exponential { factor, .. } = &policy.backoff
        && !(Ratio::ONE..=Ratio::from_millionths(1_000_000_000)).contains(factor)
    {
        return outside("factor", "1 to 1000");
    }
    if let Backoff::Steps(steps) = &policy.backoff
        && (steps.is_empty() || steps.len() > MAX_RETRIES as usize)
    {
        return outside("steps", "1 to 1000 delays");
    }
    if policy.give_up_on.len() > MAX_PATTERNS {
        return outside("giveUpOn", "at most 100 classes and statuses");
    }
    if policy.retry_on.as_ref().is_some_and(|only| only.len() > MAX_PATTERNS) {
        return outside("retryOn", "at most 100 classes and statuses");
    }
    match policy.jitter {
        Jitter::Spread(f) if f > Ratio::ONE => outside("jitter", "spread(0) to spread(1)"),
        Jitter::Additive(f) if f > Ratio::from_millionths(10_000_000) => {
            outside("jitter", "additive(0) to additive(10)")
        }
        Jitter::None
        | Jitter::Full
        | Jitter::Equal
        | Jitter::Decorrelated
        | Jitter::Spread(_)
        | Jitter::Additive(_) => Ok(()),
    }
}
