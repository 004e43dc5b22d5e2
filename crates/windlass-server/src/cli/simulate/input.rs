//! Reads the flags of `simulate`. Every error says what is accepted; the caller adds the flag's name.

use std::fmt;
use windlass_core::Millis;
use windlass_core::simulate::MAX_SPAN;

/// The longest accepted call.
const MAX_LATENCY: Millis = Millis::from_secs(3600);
/// Longer names leave no space for the figures.
const MAX_LABEL: usize = 32;

/// A policy as it was given, and its label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) label: String,
    pub(super) line: String,
}

impl Subject {
    pub(super) fn plain(line: &str) -> Self {
        Self { label: line.trim().to_owned(), line: line.to_owned() }
    }
}

/// `full-jitter`, `fixed:base=30s`, `herd=fixed:base=30s`. A line has no `=` before its `:`, so an `=` there ends a
/// name.
pub(super) fn subject(text: &str) -> Result<Subject, String> {
    let head = text.split(':').next().unwrap_or_default();
    let Some((label, _)) = head.split_once('=') else { return Ok(Subject::plain(text)) };
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if label.is_empty() || label.len() > MAX_LABEL || !label.chars().all(is_name) {
        return Err(format!("a name before `=` has 1 to {MAX_LABEL} letters, digits, `.`, `_` or `-`"));
    }
    Ok(Subject { label: label.to_owned(), line: text[label.len() + 1..].to_owned() })
}

/// How jobs arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    Over(Millis),
    Rate { jobs: u64, per: Unit },
}

/// The unit of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Second,
    Minute,
    Hour,
}

impl Unit {
    const fn millis(self) -> u64 {
        match self {
            Self::Second => 1000,
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    const fn letter(self) -> char {
        match self {
            Self::Second => 's',
            Self::Minute => 'm',
            Self::Hour => 'h',
        }
    }
}

/// `0s`, `10m`, `100/s`.
pub(super) fn arrival(text: &str) -> Result<Arrival, String> {
    let Some((number, unit)) = text.split_once('/') else {
        return bounded(text, MAX_SPAN)
            .map(Arrival::Over)
            .map_err(|error| format!("{error}; or a rate: 100/s, 6000/m, 50/h"));
    };
    let per = [Unit::Second, Unit::Minute, Unit::Hour].into_iter().find(|u| unit == u.letter().to_string());
    let jobs = number.parse().ok().filter(|jobs| (1..=10_000_000_u64).contains(jobs));
    match (jobs, per) {
        (Some(jobs), Some(per)) => Ok(Arrival::Rate { jobs, per }),
        (None, _) | (_, None) => {
            Err("a rate is a whole number from 1 to 10000000 by second, minute or hour: 100/s, 6000/m, 50/h".to_owned())
        }
    }
}

impl Arrival {
    /// Over how long this many jobs arrive.
    pub(super) fn span(self, count: u32) -> Result<Millis, String> {
        match self {
            Self::Over(span) => Ok(span),
            Self::Rate { jobs, per } => {
                let span = Millis::new(u64::from(count) * per.millis() / jobs);
                if span <= MAX_SPAN {
                    return Ok(span);
                }
                Err(format!("--arrival: {count} jobs at {jobs}/{} take {span}; at most {MAX_SPAN}", per.letter()))
            }
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Over(span) if span.is_zero() => f.write_str("all at once"),
            Self::Over(span) => write!(f, "evenly over {span}"),
            Self::Rate { jobs, per } => write!(f, "{jobs}/{}", per.letter()),
        }
    }
}

/// When the target is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outage {
    pub(super) at: Millis,
    pub(super) lasts: Millis,
}

/// `2m`, `2m@30s`.
pub(super) fn outage(text: &str) -> Result<Outage, String> {
    let (lasts, at) = text.split_once('@').unwrap_or((text, "0s"));
    let form = |error| format!("{error}; with a start: 2m@30s");
    let (lasts, at) = (bounded(lasts, MAX_SPAN).map_err(form)?, bounded(at, MAX_SPAN).map_err(form)?);
    if at + lasts > MAX_SPAN {
        return Err(format!("the outage must end within {MAX_SPAN}"));
    }
    Ok(Outage { at, lasts })
}

pub(super) fn latency(text: &str) -> Result<Millis, String> {
    bounded(text, MAX_LATENCY)
}

pub(super) fn span(text: &str) -> Result<Millis, String> {
    bounded(text, MAX_SPAN)
}

fn bounded(text: &str, most: Millis) -> Result<Millis, String> {
    let span = Millis::parse(text).map_err(|error| error.to_string())?;
    if span > most { Err(format!("{span} is too long; at most {most}")) } else { Ok(span) }
}
