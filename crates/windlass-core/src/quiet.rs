//! Quiet hours: a span of every day, on the wall clock of a time zone, in which alerts disturb nobody.

use crate::Timestamp;
use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::fmt;

/// `22:00-07:00 Europe/Berlin`. The beginning belongs to it, the end does not; it may pass midnight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuietHours {
    from: Time,
    to: Time,
    zone: TimeZone,
    zone_name: String,
}

/// What is accepted.
const FORM: &str = "must be two times of day and a time zone, such as 22:00-07:00 Europe/Berlin";

impl QuietHours {
    /// Reads them; without a zone they are in UTC.
    ///
    /// # Errors
    /// What is accepted.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = || FORM.to_owned();
        let (span, zone) = text.trim().split_once(' ').unwrap_or((text.trim(), "UTC"));
        let (from, to) = span.split_once('-').ok_or_else(refuse)?;
        let (from, to) = (time(from).ok_or_else(refuse)?, time(to).ok_or_else(refuse)?);
        if from == to {
            return Err("must not begin and end at the same time: alerts would never be sent".into());
        }
        let zone = zone.trim();
        let found = TimeZoneDatabase::bundled().get(zone);
        let zone = found.map_err(|_| format!("names no time zone: `{}`", zone.chars().take(80).collect::<String>()))?;
        let zone_name = zone.iana_name().unwrap_or("UTC").to_owned();
        Ok(Self { from, to, zone, zone_name })
    }

    /// Whether a moment is in them. In an hour that a clock change skips or repeats, the wall clock decides.
    #[must_use]
    pub fn contains(&self, moment: Timestamp) -> bool {
        let time = moment.to_jiff().to_zoned(self.zone.clone()).time();
        if self.from < self.to { self.from <= time && time < self.to } else { time >= self.from || time < self.to }
    }
}

/// `HH:MM`, nothing else.
fn time(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    let is_pair = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_pair(hour) || !is_pair(minute) {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from, self.to);
        write!(f, "{:02}:{:02}-{:02}:{:02} {}", from.hour(), from.minute(), to.hour(), to.minute(), self.zone_name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn the_wall_clock_of_the_zone_decides_and_midnight_may_be_passed() {
        let night = QuietHours::parse("22:00-07:00 Europe/Berlin").unwrap();
        // Berlin is an hour ahead of UTC in winter and two in summer.
        for (moment, is_quiet) in [
            ("2026-01-15T20:59:59Z", false),
            ("2026-01-15T21:00:00Z", true),
            ("2026-01-16T05:59:59Z", true),
            ("2026-01-16T06:00:00Z", false),
            ("2026-07-15T20:00:00Z", true),
            ("2026-07-16T05:00:00Z", false),
        ] {
            assert_eq!(night.contains(at(moment)), is_quiet, "{moment}");
        }
        let lunch = QuietHours::parse("12:00-13:00").unwrap();
        assert!(lunch.contains(at("2026-01-15T12:30:00Z")) && !lunch.contains(at("2026-01-15T13:00:00Z")));
    }

    #[test]
    fn they_read_back_and_wrong_ones_say_what_is_accepted() {
        for text in ["22:00-07:00 Europe/Berlin", "00:00-23:59 America/New_York", "12:00-13:00 UTC"] {
            assert_eq!(QuietHours::parse(text).unwrap().to_string(), text);
        }
        for wrong in
            ["", "22-7", "22:00", "24:00-07:00", "22:60-07:00", "2:00-3:00", "22:00-07:00 Mars/Base", "+1:00-02:00"]
        {
            let shown = QuietHours::parse(wrong).unwrap_err();
            assert!(shown.contains("22:00-07:00 Europe/Berlin") || shown.contains("Mars/Base"), "{wrong}: {shown}");
        }
        assert!(QuietHours::parse("07:00-07:00").is_err());
    }
}
