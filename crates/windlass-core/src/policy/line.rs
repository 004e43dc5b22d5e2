//! The one-line form: `full-jitter`, `exponential:base=1s,cap=5m,retries=5`, `steps:30s/60s/120s,retries=3`.
//! A policy prints as its canonical line, which names every field, so that its meaning never changes:
//! stores keep the line, and a later change of a preset does not affect jobs already stored.

use super::field::{Field, NONE};
use super::{PRESETS, Partial, Pattern, Policy, PolicyError, Preset, Strategy};
use crate::backoff::Backoff;
use crate::nearest::hint;
use crate::rules::Rule;
use std::fmt;

/// Finds a policy that was defined under a name, in addition to the presets.
pub type Names<'a> = &'a dyn Fn(&str) -> Option<Partial>;

/// No named policies except the presets.
#[must_use]
pub fn no_names(_: &str) -> Option<Partial> {
    None
}

/// The accepted forms of a line; the second half of an error message.
const FORMS: &str = "write a preset (stepped, full-jitter, exponential, linear, fixed, fibonacci, http, queue-worker, \
     financial, low-latency, once) or a line such as `exponential:base=1s,factor=2,cap=5m,jitter=full,retries=5`, \
     `steps:30s/60s/120s,retries=3`, `full-jitter:retries=5`";

/// The fields a line can set, in the order they are printed.
const KEYS: [Field; 12] = [
    Field::Base,
    Field::Factor,
    Field::Steps,
    Field::MaxDelay,
    Field::Jitter,
    Field::MaxRetries,
    Field::MaxAttempts,
    Field::MaxElapsed,
    Field::MaxCrashes,
    Field::GiveUpOn,
    Field::RetryOn,
    Field::MaxRetryAfter,
];

impl Partial {
    /// Reads a preset's name or a line. Omitted fields come from the preset of that name; `steps` has no
    /// jitter, no cap, and as many retries as steps.
    ///
    /// ```
    /// use windlass_core::policy::Partial;
    ///
    /// let level = Partial::parse_line("exponential:base=1s,cap=5m,jitter=full,retries=5")?;
    /// assert_eq!(level.max_retries, Some(5));
    /// let error = Partial::parse_line("exponential:base=soon").unwrap_err();
    /// assert_eq!((error.position, error.field.as_str()), (Some(17), "base"));
    /// # Ok::<(), windlass_core::PolicyError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong, at which byte, and what is accepted.
    pub fn parse_line(text: &str) -> Result<Self, PolicyError> {
        Self::parse_line_with(text, &no_names)
    }

    /// The same, where the part before the colon may also be a policy that `names` knows.
    ///
    /// # Errors
    /// What is wrong, at which byte, and what is accepted.
    pub fn parse_line_with(text: &str, names: Names<'_>) -> Result<Self, PolicyError> {
        let (text, rules) = split_rules(text);
        let (head, items) = match text.find(':') {
            Some(colon) => (Piece::cut(text, 0, colon), Some(Piece::cut(text, colon + 1, text.len()))),
            None => (Piece::cut(text, 0, text.len()), None),
        };
        let mut level = if head.text == Strategy::Steps.as_str() {
            read_steps(head, items)?
        } else {
            let start = Preset::find(head.text).map(Preset::partial).or_else(|| names(head.text));
            let start = start.ok_or_else(|| unknown_policy(head))?;
            match items {
                Some(items) => Items::new(start).read_all(items.split(','))?,
                None => start,
            }
        };
        if let Some(rules) = rules {
            level.rules = Some(rules.read_rules(names)?);
        }
        Ok(level)
    }
}

impl Policy {
    /// Reads a policy back from its canonical line.
    ///
    /// # Errors
    /// What is wrong, at which byte, and what is accepted.
    pub fn parse_canonical(text: &str) -> Result<Self, PolicyError> {
        Partial::resolve(&[Partial::parse_line(text)?], &[])
    }
}

/// The canonical line.
impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.backoff {
            Backoff::Exponential { base, factor } => write!(f, "exponential:base={base},factor={factor}")?,
            Backoff::Linear { base } => write!(f, "linear:base={base}")?,
            Backoff::Fixed { base } => write!(f, "fixed:base={base}")?,
            Backoff::Fibonacci { base } => write!(f, "fibonacci:base={base}")?,
            Backoff::Steps(steps) => write!(f, "steps:{}", join(steps, '/'))?,
        }
        let or_none = |limit: Option<crate::Millis>| limit.map_or_else(|| NONE.to_owned(), |span| span.to_string());
        write!(f, ",cap={},jitter={},retries={}", or_none(self.max_delay), self.jitter, self.max_retries)?;
        write!(f, ",maxElapsed={},maxCrashes={}", or_none(self.max_elapsed), self.max_crashes)?;
        write!(f, ",giveUpOn={}", list(&self.give_up_on))?;
        if let Some(only) = &self.retry_on {
            write!(f, ",retryOn={}", list(only))?;
        }
        write!(f, ",maxRetryAfter={}", self.max_retry_after)?;
        if self.rules.is_empty() { Ok(()) } else { write!(f, ",rules={}", Rule::list_to_value(&self.rules)) }
    }
}

/// The line without its rules, and the rules. They are JSON, which has commas and colons, so they come last. No other
/// value can contain `=`.
fn split_rules(line: &str) -> (&str, Option<Piece<'_>>) {
    let starts = |at: &usize| line[..*at].trim_end().ends_with([',', ':']);
    match line.match_indices("rules=").map(|(at, _)| at).find(starts) {
        Some(at) => {
            let before = line[..at].trim_end();
            (&before[..before.len() - 1], Some(Piece::cut(line, at + "rules=".len(), line.len())))
        }
        None => (line, None),
    }
}

fn list(patterns: &[Pattern]) -> String {
    if patterns.is_empty() { NONE.into() } else { join(patterns, '|') }
}

fn join(items: &[impl fmt::Display], separator: char) -> String {
    let texts: Vec<String> = items.iter().map(ToString::to_string).collect();
    texts.join(&separator.to_string())
}

/// A part of the line without surrounding blanks, and the byte it starts at.
#[derive(Debug, Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Piece<'a> {
    fn cut(line: &'a str, from: usize, to: usize) -> Self {
        Self { text: &line[from..to], at: from }.trim()
    }

    fn trim(self) -> Self {
        let without_left = self.text.trim_start();
        Self { text: without_left.trim_end(), at: self.at + self.text.len() - without_left.len() }
    }

    fn split(self, separator: char) -> impl Iterator<Item = Self> {
        let mut next = self.at;
        self.text.split(separator).map(move |text| {
            let at = next;
            next += text.len() + separator.len_utf8();
            Self { text, at }.trim()
        })
    }

    fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let (left, right) = self.text.split_once(separator)?;
        let at = self.at + left.len() + separator.len_utf8();
        Some((Self { text: left, at: self.at }.trim(), Self { text: right, at }.trim()))
    }

    fn error(self, field: &str, message: impl Into<String>) -> PolicyError {
        PolicyError { position: Some(self.at), ..PolicyError::new(field, message) }
    }

    fn read_rules(self, names: Names<'_>) -> Result<Vec<Rule>, PolicyError> {
        let value = serde_json::from_str(self.text).map_err(|error| {
            self.error("rules", format!("must be a list of rules in JSON, and the last of the line: {error}"))
        })?;
        super::object::read_rules(&value, names).map_err(|error| self.error(&error.field, error.message))
    }

    fn shown(self) -> String {
        self.text.chars().take(60).collect()
    }
}

fn unknown_policy(head: Piece<'_>) -> PolicyError {
    if head.text.is_empty() {
        return head.error("", format!("a policy is missing; {FORMS}"));
    }
    let mut known: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
    known.push(Strategy::Steps.as_str());
    head.error("", format!("`{}` is not a policy{}; {FORMS}", head.shown(), hint(head.text, &known)))
}

fn read_steps(head: Piece<'_>, items: Option<Piece<'_>>) -> Result<Partial, PolicyError> {
    let missing = "needs its delays first, such as `steps:30s/60s/120s,retries=3`";
    let items = items.ok_or_else(|| head.error("steps", missing))?;
    let mut pieces = items.split(',');
    let first = pieces.next().filter(|p| !p.text.is_empty() && !p.text.contains('='));
    let first = first.ok_or_else(|| items.error("steps", missing))?;

    let once = Preset::find("once").expect("the presets include `once`").partial();
    let start = Partial { strategy: Some(Strategy::Steps), base: None, ..once };
    let mut read = Items::new(start);
    read.set(Field::Steps, first, first)?;
    let count = read.partial.steps.as_ref().map_or(0, Vec::len);
    read.partial.max_retries = u32::try_from(count).ok();
    read.read_all(pieces)
}

/// The `key=value` part of a line while it is read.
struct Items {
    partial: Partial,
    seen: Vec<Field>,
}

impl Items {
    fn new(partial: Partial) -> Self {
        Self { partial, seen: Vec::new() }
    }

    fn read_all<'a>(mut self, pieces: impl Iterator<Item = Piece<'a>>) -> Result<Partial, PolicyError> {
        for piece in pieces {
            let accepted = || KEYS.map(Field::key).join(", ");
            let (key, value) = piece.split_once('=').ok_or_else(|| {
                piece.error("", format!("`{}` is not `key=value`; keys are {}", piece.shown(), accepted()))
            })?;
            let field = KEYS.into_iter().find(|k| k.key() == key.text || k.name() == key.text).ok_or_else(|| {
                let slip = hint(key.text, &KEYS.map(Field::key));
                key.error(key.text, format!("is not a key{slip}; keys are {}", accepted()))
            })?;
            self.set(field, key, value)?;
        }
        Ok(self.partial)
    }

    fn set(&mut self, field: Field, key: Piece<'_>, value: Piece<'_>) -> Result<(), PolicyError> {
        if self.seen.contains(&field) {
            return Err(key.error(key.text, "is given twice"));
        }
        if let Some(strategy) = self.partial.strategy.filter(|s| !field.matters_to(*s)) {
            return Err(key.error(key.text, format!("has no effect on {}", strategy.as_str())));
        }
        let before = self.partial.max_retries;
        let items: Vec<&str> = match field.separator() {
            Some(separator) => value.split(separator).map(|p| p.text).collect(),
            None => vec![value.text],
        };
        field.set(&mut self.partial, &items).map_err(|message| value.error(field.key(), message))?;
        if field.twin().is_some_and(|t| self.seen.contains(&t)) && before != self.partial.max_retries {
            return Err(key.error(key.text, "contradicts the other: attempts are retries + 1; give one of them"));
        }
        self.seen.push(field);
        Ok(())
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
