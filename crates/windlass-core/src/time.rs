//! Moments and spans, in whole milliseconds. Arithmetic saturates: no input can overflow or panic.

use std::fmt;
use std::ops::{Add, Sub};

/// A moment: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// A span of time in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(u64);

impl Timestamp {
    /// The latest moment. RFC 3339 can express it in every time zone, so every stored time can be shown.
    pub const MAX: Self = Self(253_402_207_200_000);
    /// The earliest moment Windlass uses.
    pub const EPOCH: Self = Self(0);

    /// A moment from milliseconds since the epoch, clamped to the range that can be shown.
    #[must_use]
    pub const fn from_millis(ms: i64) -> Self {
        if ms < 0 {
            Self::EPOCH
        } else if ms > Self::MAX.0 {
            Self::MAX
        } else {
            Self(ms)
        }
    }

    /// Milliseconds since the epoch.
    #[must_use]
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// How long after `earlier` this moment is; zero if it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Millis {
        let gap = self.0 - earlier.0;
        Millis(if gap < 0 { 0 } else { gap as u64 })
    }

    /// Reads an RFC 3339 moment such as `2026-01-01T12:00:00Z`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        (moment.as_millisecond() >= 0).then(|| Self::from_millis(moment.as_millisecond()))
    }

    pub(crate) fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).expect("a Timestamp lies between 1970 and 9999")
    }
}

/// RFC 3339 in UTC, with milliseconds only if they are not zero.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = self.to_jiff();
        if self.0 % 1000 == 0 { write!(f, "{moment:.0}") } else { write!(f, "{moment:.3}") }
    }
}

/// Clamped to what can be shown: a time before 1970 is 1970.
impl From<std::time::SystemTime> for Timestamp {
    fn from(time: std::time::SystemTime) -> Self {
        match time.duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Self::EPOCH + Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            Err(_) => Self::EPOCH,
        }
    }
}

impl From<Timestamp> for std::time::SystemTime {
    fn from(moment: Timestamp) -> Self {
        Self::UNIX_EPOCH + std::time::Duration::from_millis(moment.0.unsigned_abs())
    }
}

impl Add<Millis> for Timestamp {
    type Output = Self;
    fn add(self, span: Millis) -> Self {
        let ms = i64::try_from(span.0).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_add(ms))
    }
}

impl Sub<Millis> for Timestamp {
    type Output = Self;
    fn sub(self, span: Millis) -> Self {
        let ms = i64::try_from(span.0).unwrap_or(i64::MAX);
        Self::from_millis(self.0.saturating_sub(ms))
    }
}

impl Millis {
    pub const ZERO: Self = Self(0);
    /// The longest span: a hundred years of 365 days. Longer ones mean "never" and are refused or clamped.
    pub const MAX: Self = Self(100 * 365 * 86_400_000);

    /// A span of `ms` milliseconds, clamped to [`Millis::MAX`].
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        if ms > Self::MAX.0 { Self::MAX } else { Self(ms) }
    }

    /// A span of `s` seconds, clamped to [`Millis::MAX`].
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self::new(s.saturating_mul(1000))
    }

    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        std::time::Duration::from_millis(self.0)
    }

    /// Reads `500ms`, `30s`, `1m30s`, `2h`, `1d`, or a bare number of milliseconds.
    ///
    /// # Errors
    /// Names the accepted forms.
    pub fn parse(text: &str) -> Result<Self, DurationError> {
        parse_duration(text.trim()).ok_or_else(|| DurationError(text.chars().take(40).collect()))
    }
}

/// Not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration; write 500ms, 30s, 1m30s, 2h, 1d, or whole milliseconds (at most 100 years)")]
pub struct DurationError(String);

impl From<std::time::Duration> for Millis {
    fn from(span: std::time::Duration) -> Self {
        Self::new(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl From<Millis> for std::time::Duration {
    fn from(span: Millis) -> Self {
        span.to_std()
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.0.saturating_add(other.0))
    }
}

impl Sub for Millis {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

fn parse_duration(text: &str) -> Option<Millis> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return within_bounds(text.parse().ok()?);
    }
    let mut total: u64 = 0;
    let mut rest = text;
    let mut finest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, tail) = tail.split_at(letters);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        // Units go from large to small, each once: `30s1m` is more likely a mistake than intended.
        if *size >= finest {
            return None;
        }
        finest = *size;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*size)?)?;
        rest = tail;
    }
    if finest == u64::MAX { None } else { within_bounds(total) }
}

fn within_bounds(ms: u64) -> Option<Millis> {
    (ms <= Millis::MAX.0).then_some(Millis(ms))
}

/// The shortest exact form: `1m30s`, `500ms`, `0s`. [`Millis::parse`] reads it back.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        for (name, size) in UNITS {
            if rest >= size {
                write!(f, "{}{name}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_back() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("2h", 7_200_000),
            ("1d", 86_400_000),
            ("250", 250),
            ("0s", 0),
            ("0", 0),
            ("90s", 90_000),
        ] {
            let span = Millis::parse(text).expect(text);
            assert_eq!(span.get(), ms, "{text}");
            assert_eq!(Millis::parse(&span.to_string()), Ok(span), "{text}");
        }
    }

    #[test]
    fn nonsense_is_not_a_duration() {
        for text in ["", "s", "1x", "-1s", "1.5s", "30s1m", "1m1m", "99999999999999999999", "40000d", "1 s"] {
            assert!(Millis::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_print_as_rfc_3339_and_read_back() {
        let noon = Timestamp::from_millis(1_767_268_800_000);
        assert_eq!(noon.to_string(), "2026-01-01T12:00:00Z");
        assert_eq!((noon + Millis::new(1)).to_string(), "2026-01-01T12:00:00.001Z");
        assert_eq!(Timestamp::parse("2026-01-01T13:00:00+01:00"), Some(noon));
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00Z");
        assert_eq!(Timestamp::parse("1960-01-01T00:00:00Z"), None);
    }

    #[test]
    fn times_of_the_standard_library_are_taken_to_the_millisecond() {
        use std::time::{Duration, SystemTime, UNIX_EPOCH};
        let time = UNIX_EPOCH + Duration::from_micros(1_767_268_800_000_999);
        assert_eq!(Timestamp::from(time), Timestamp::from_millis(1_767_268_800_000));
        assert_eq!(SystemTime::from(Timestamp::from(time)), UNIX_EPOCH + Duration::from_millis(1_767_268_800_000));
        assert_eq!(Timestamp::from(UNIX_EPOCH - Duration::from_secs(1)), Timestamp::EPOCH);
        assert_eq!(Timestamp::from(UNIX_EPOCH + Duration::from_secs(1 << 40)), Timestamp::MAX);
    }

    #[test]
    fn time_saturates_at_both_ends() {
        assert_eq!(Timestamp::MAX + Millis::MAX, Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH - Millis::MAX, Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Millis::ZERO);
    }
}
