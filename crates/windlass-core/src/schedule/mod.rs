//! Cadence: when a schedule fires. Pure: it computes the next firing after a given moment.
//!
//! A cron line has 5 fields (minute, hour, day of month, month, day of week) or 6 (seconds first), with names
//! (`MON`, `jan`), lists, ranges and steps; if both days are restricted, either is enough. `@hourly`, `@daily`,
//! `@weekly`, `@monthly` and `@yearly` are short for the usual lines. A line uses the wall clock of its time zone.
//!
//! When that clock is put forward or back:
//! - A line whose seconds, minutes and hours are plain numbers or lists of them names **times of day**. Each fires
//!   once a day. A skipped time fires at the first moment after the gap (several skipped times fire once). A time
//!   that occurs twice fires the first time.
//! - Any other line (a `*`, range or step in one of them) is **recurring** and follows the clock: skipped times
//!   do not fire, repeated ones fire both times, so that `*/10 * * * *` keeps its pace.
//!
//! Time zone data is built in, so that all nodes agree. An interval counts from its anchor and ignores the wall clock.

mod text;
mod timing;

use crate::time::{Millis, Timestamp};
use croner::Cron;
use croner::parser::{CronParser, Year};
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone, TimeZoneDatabase};
use std::fmt;

pub use timing::{NextFiring, Timing};

/// The shortest interval.
pub const MIN_INTERVAL: Millis = Millis::from_secs(1);
/// The most firings that one call lists.
pub const MAX_FIRINGS: usize = 1000;
/// The longest accepted cron line.
const MAX_LINE: usize = 256;

/// When a schedule fires. Built by [`Cadence::cron`] and [`Cadence::every`], which refuse one that never fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cadence {
    Cron(CronLine),
    Every(Every),
}

/// A cron line in its time zone.
#[derive(Clone, PartialEq, Eq)]
pub struct CronLine {
    text: String,
    cron: Box<Cron>,
    zone: TimeZone,
    zone_name: String,
    kind: Kind,
}

/// A fixed interval from an anchor: `anchor`, `anchor + interval`, ….
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    interval: Millis,
    anchor: Timestamp,
}

/// How a line reacts to a change of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    TimesOfDay,
    Recurring,
}

/// An invalid cadence: which part is wrong, and what is accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CadenceError {
    #[error(
        "`{line}` is not a cron line: {why}; write 5 fields (minute hour day month weekday) or 6 (seconds first), such as `*/10 * * * *` or `0 30 9 * * MON-FRI`"
    )]
    Cron { line: String, why: String },
    #[error("`{0}` never fires: no such date exists")]
    Never(String),
    #[error("`{0}` is not a time zone; write an IANA name such as Europe/Berlin, or UTC")]
    Zone(String),
    #[error("an interval must be at least 1s, not {0}")]
    Interval(Millis),
}

impl Cadence {
    /// A cron line in a time zone given by its IANA name (`UTC` if absent).
    ///
    /// ```
    /// use windlass_core::{Cadence, Timestamp};
    ///
    /// let daily = Cadence::cron("30 2 * * *", Some("Europe/Berlin"))?;
    /// let eve = Timestamp::parse("2026-03-28T12:00:00Z").unwrap();
    /// // 02:30 is skipped that night; the schedule fires when the gap ends, at 03:00 summer time.
    /// assert_eq!(daily.next_after(eve).unwrap().to_string(), "2026-03-29T01:00:00Z");
    /// # Ok::<(), windlass_core::CadenceError>(())
    /// ```
    ///
    /// # Errors
    /// Not a cron line, one that never fires, or not a time zone.
    pub fn cron(line: &str, zone: Option<&str>) -> Result<Self, CadenceError> {
        CronLine::new(line, zone.unwrap_or("UTC")).map(Self::Cron)
    }

    /// A fixed interval, counted from `anchor`.
    ///
    /// # Errors
    /// Shorter than [`MIN_INTERVAL`].
    pub fn every(interval: Millis, anchor: Timestamp) -> Result<Self, CadenceError> {
        if interval < MIN_INTERVAL {
            return Err(CadenceError::Interval(interval));
        }
        Ok(Self::Every(Every { interval, anchor }))
    }

    /// The first firing later than `moment`; none if it would be after the last possible time.
    #[must_use]
    pub fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Cron(line) => line.next_after(moment),
            Self::Every(every) => every.next_after(moment),
        }
    }

    /// Where to go on if the clock was set back: the first firing after `now`, if two or more would be left out until
    /// `next_at`. A clock that is corrected by less repeats no firing: a daily job runs once a day.
    #[must_use]
    pub fn after_set_back(&self, next_at: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let first = self.next_after(now)?;
        let second = self.next_after(first)?;
        (second < next_at).then_some(first)
    }

    /// The next `n` firings (at most [`MAX_FIRINGS`]) later than `moment`.
    #[must_use]
    pub fn next_n(&self, moment: Timestamp, n: usize) -> Vec<Timestamp> {
        let first = self.next_after(moment);
        std::iter::successors(first, |t| self.next_after(*t)).take(n.min(MAX_FIRINGS)).collect()
    }
}

/// A moment on the wall clock of a time zone, such as `Sun 2026-03-29 03:00:00 +02:00`. `None` if there is no such
/// zone.
#[must_use]
pub fn local_text(moment: Timestamp, zone: &str) -> Option<String> {
    let zone = TimeZoneDatabase::bundled().get(zone).ok()?;
    let local = moment.to_jiff().to_zoned(zone);
    Some(local.strftime("%a %Y-%m-%d %H:%M:%S %:z").to_string())
}

impl Every {
    #[must_use]
    pub const fn interval(&self) -> Millis {
        self.interval
    }

    #[must_use]
    pub const fn anchor(&self) -> Timestamp {
        self.anchor
    }

    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        if moment < self.anchor {
            return Some(self.anchor);
        }
        let passed = moment.since(self.anchor).get() / self.interval.get();
        let next = (passed + 1).checked_mul(self.interval.get())?;
        let next = i64::try_from(next).ok()?.checked_add(self.anchor.as_millis())?;
        (next <= Timestamp::MAX.as_millis()).then(|| Timestamp::from_millis(next))
    }
}

impl CronLine {
    fn new(line: &str, zone: &str) -> Result<Self, CadenceError> {
        let shown = || line.chars().take(80).collect::<String>();
        let refuse = |why: &str| CadenceError::Cron { line: shown(), why: why.into() };
        if line.len() > MAX_LINE {
            return Err(refuse("it is too long"));
        }
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let fields: Vec<&str> = spelled_out(&text).split(' ').collect();
        if !(5..=6).contains(&fields.len()) || text.is_empty() {
            return Err(refuse("it has the wrong number of fields"));
        }
        let parser = CronParser::builder().year(Year::Disallowed).build();
        let cron = parser.parse(&fields.join(" ")).map(Box::new).map_err(|e| refuse(&e.to_string()))?;
        let zone =
            TimeZoneDatabase::bundled().get(zone).map_err(|_| CadenceError::Zone(zone.chars().take(80).collect()))?;
        // Only a date that does not exist has no firing in the three thousand years that are searched.
        let some_day = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
        cron.find_next_occurrence(&some_day, true).map_err(|_| CadenceError::Never(shown()))?;
        let zone_name = zone.iana_name().unwrap_or("UTC").to_owned();
        let kind = Kind::of(&fields);
        Ok(Self { text, cron, zone, zone_name, kind })
    }

    /// The line as written, with single blanks.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The IANA name of its time zone.
    #[must_use]
    pub fn zone(&self) -> &str {
        &self.zone_name
    }

    fn next_after(&self, moment: Timestamp) -> Option<Timestamp> {
        let found = match self.kind {
            Kind::TimesOfDay => self.next_time_of_day(moment.to_jiff()),
            Kind::Recurring => self.next_recurring(moment.to_jiff()),
        }?;
        Some(Timestamp::from_millis(found.as_millisecond())).filter(|t| *t > moment)
    }

    /// Later wall clock times are later moments here (a skipped time maps to the end of its gap, a repeated
    /// time to its first occurrence). So the first time whose moment is later than `moment` is the answer.
    fn next_time_of_day(&self, moment: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut clock = self.zone.to_datetime(moment);
        loop {
            clock = self.cron.find_next_occurrence(&clock, false).ok()?;
            let candidate = self.moment_of(clock)?;
            if candidate > moment {
                return Some(candidate);
            }
        }
    }

    fn moment_of(&self, clock: DateTime) -> Option<jiff::Timestamp> {
        let ambiguous = self.zone.to_ambiguous_timestamp(clock);
        match ambiguous.offset() {
            jiff::tz::AmbiguousOffset::Unambiguous { .. } => ambiguous.unambiguous().ok(),
            jiff::tz::AmbiguousOffset::Fold { .. } => ambiguous.earlier().ok(),
            // With the offset from before the gap, a skipped time is after the change. So the change is the last
            // one up to that moment.
            jiff::tz::AmbiguousOffset::Gap { before, .. } => {
                let beyond = before.to_timestamp(clock).ok()?;
                let just_after = beyond.checked_add(jiff::SignedDuration::from_nanos(1)).ok()?;
                self.zone.preceding(just_after).next().map(|change| change.timestamp())
            }
        }
    }

    /// Between two changes the clock runs evenly, so each such period is searched separately.
    fn next_recurring(&self, moment: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut from = moment;
        let mut inclusive = false;
        loop {
            let offset = self.zone.to_offset(from);
            let end = self.next_change(from, offset);
            let clock = self.cron.find_next_occurrence(&offset.to_datetime(from), inclusive).ok()?;
            let found = offset.to_timestamp(clock).ok()?;
            match end {
                Some(end) if found >= end => from = end,
                Some(_) | None => return Some(found),
            }
            inclusive = true;
        }
    }

    /// When the offset next changes; changes of only the name or the rule are ignored.
    fn next_change(&self, after: jiff::Timestamp, offset: Offset) -> Option<jiff::Timestamp> {
        self.zone.following(after).find(|change| change.offset() != offset).map(|change| change.timestamp())
    }
}

impl fmt::Debug for CronLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CronLine({:?}, {})", self.text, self.zone_name)
    }
}

impl Kind {
    fn of(fields: &[&str]) -> Self {
        // Seconds, minutes and hours: all but the last three fields.
        let is_list = |f: &&str| f.bytes().all(|b| b.is_ascii_digit() || b == b',');
        if fields[..fields.len() - 3].iter().all(is_list) { Self::TimesOfDay } else { Self::Recurring }
    }
}

fn spelled_out(text: &str) -> &str {
    match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        other => other,
    }
}

#[cfg(test)]
mod tests;
