//! Error rules: what one failure gets, before the policy's lists. An ordered list; the first rule that matches decides.

mod pattern;
mod read;

pub use pattern::{ClassGlob, MessagePattern};
pub use read::{MAX_RULES, MAX_RULES_TEXT};

use crate::failure::Failure;
use crate::job::words;
use crate::policy::{Pattern, Policy};
use crate::time::Millis;
use std::fmt;
use std::sync::Arc;

words! {
    /// What a rule does with the failures it matches.
    Then {
        /// Retries, although the policy's lists would give up.
        Retry = "retry",
        /// Ends the job as failed.
        GiveUp = "giveUp",
        /// Waits and counts no failure.
        Snooze = "snooze",
        /// Holds the key of the job, and snoozes the job.
        Hold = "hold",
        /// Ends the job as failed and already discarded.
        Discard = "discard",
    }
}

words! {
    /// Where a rule stands.
    RuleSource {
        /// In the job's policy, frozen with it.
        Policy = "policy",
        /// In the settings of its kind.
        Kind = "kind",
        /// In the settings of its queue.
        Queue = "queue",
    }
}

/// One error rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Rule {
    pub matching: Match,
    pub then: Then,
    /// How long to wait; `snooze` and `hold` always have it.
    pub span: Option<Millis>,
    /// The delays of `retry`, in place of those of the job's own policy.
    pub policy: Option<Arc<Policy>>,
}

/// Which failures a rule matches: those that have all of this. At least one is given.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Match {
    pub class: Option<ClassGlob>,
    /// An HTTP status, or a hundred of them.
    pub status: Option<Pattern>,
    pub message: Option<MessagePattern>,
}

/// A rule by its place: `rule 2 of the policy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleName {
    pub source: RuleSource,
    /// From 1.
    pub number: u32,
}

impl fmt::Display for RuleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rule {} of the {}", self.number, self.source)
    }
}

/// The rules that apply when an attempt ends, besides those of the job's policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct LiveRules<'a> {
    pub kind: &'a [Rule],
    pub queue: &'a [Rule],
}

impl Match {
    /// Whether a failure has all that is asked for.
    #[must_use]
    pub fn matches(&self, failure: &Failure) -> bool {
        self.class.as_ref().is_none_or(|class| class.matches(&failure.class))
            && self.status.as_ref().is_none_or(|status| status.matches_status(failure.status))
            && self.message.as_ref().is_none_or(|message| message.matches(&failure.message))
    }
}

/// The first rule that matches, nearest source first: policy, kind, queue.
pub(crate) fn first_match<'a>(
    policy: &'a [Rule],
    live: LiveRules<'a>,
    failure: &Failure,
) -> Option<(RuleName, &'a Rule)> {
    let lists = [(RuleSource::Policy, policy), (RuleSource::Kind, live.kind), (RuleSource::Queue, live.queue)];
    lists.into_iter().find_map(|(source, rules)| {
        let at = rules.iter().position(|rule| rule.matching.matches(failure))?;
        let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
        Some((RuleName { source, number }, &rules[at]))
    })
}

#[cfg(test)]
mod tests;
