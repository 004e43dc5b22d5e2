//! A cadence as text: a cron line, or `every 30s`. Schedules are stored and shown in this form.

use super::{Cadence, CadenceError};
use crate::time::{Millis, Timestamp};

/// Marks an interval: `every 30s`.
const EVERY: &str = "every ";
/// The time zone of an interval, which needs none.
const UTC: &str = "UTC";

impl Cadence {
    /// Reads a cadence: a cron line in `zone`, or an interval such as `every 30s` counted from `anchor`.
    ///
    /// ```
    /// use windlass_core::{Cadence, Timestamp};
    ///
    /// let made_at = Timestamp::parse("2026-01-01T12:00:00Z").unwrap();
    /// let cadence = Cadence::read("every 30s", "UTC", made_at)?;
    /// assert_eq!(cadence.next_after(made_at).unwrap().to_string(), "2026-01-01T12:00:30Z");
    /// # Ok::<(), windlass_core::CadenceError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the text or the time zone, and what is accepted.
    pub fn read(text: &str, zone: &str, anchor: Timestamp) -> Result<Self, CadenceError> {
        match text.strip_prefix(EVERY).map(Millis::parse) {
            Some(Ok(interval)) => Self::every(interval, anchor),
            Some(Err(error)) => Err(CadenceError::Cron { line: text.to_owned(), why: error.to_string() }),
            None => Self::cron(text, Some(zone)),
        }
    }

    /// The text that [`Cadence::read`] reads, with single blanks.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Cron(line) => line.text().to_owned(),
            Self::Every(every) => Self::interval_text(every.interval()),
        }
    }

    /// The IANA name of the time zone; `UTC` for an interval, which has none.
    #[must_use]
    pub fn zone(&self) -> &str {
        match self {
            Self::Cron(line) => line.zone(),
            Self::Every(_) => UTC,
        }
    }

    /// The interval in a text, if it is one.
    #[must_use]
    pub fn interval_in(text: &str) -> Option<Millis> {
        text.strip_prefix(EVERY).and_then(|span| Millis::parse(span).ok())
    }

    /// The text of an interval.
    #[must_use]
    pub fn interval_text(span: Millis) -> String {
        format!("{EVERY}{span}")
    }
}
