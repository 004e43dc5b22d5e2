//! Firings across changes of the clock in several zones, compared with a search that checks every minute.

use super::*;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap_or_else(|| panic!("{text}"))
}

/// Line, zone, moment, and the firings expected after it.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

fn check(rows: &[Row]) {
    for (line, zone, after, expected) in rows {
        let cadence = Cadence::cron(line, Some(zone)).unwrap();
        let fired: Vec<String> = cadence.next_n(at(after), expected.len()).iter().map(ToString::to_string).collect();
        assert_eq!(fired, *expected, "`{line}` in {zone} after {after}");
    }
}

#[test]
fn plain_lines_fire_at_their_times() {
    check(&[
        ("*/10 * * * * *", "UTC", "2026-01-01T00:00:05Z", &["2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"]),
        ("*/10 * * * *", "UTC", "2026-01-01T00:10:00Z", &["2026-01-01T00:20:00Z"]),
        ("30 9 * * MON-FRI", "UTC", "2026-01-02T09:30:00Z", &["2026-01-05T09:30:00Z", "2026-01-06T09:30:00Z"]),
        ("0 0 1 jan,jul *", "UTC", "2026-01-01T00:00:00Z", &["2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z"]),
        (
            "0 0 13 * 5",
            "UTC",
            "2026-01-01T00:00:00Z",
            &["2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"],
        ),
        ("0 0 * * 7", "UTC", "2026-01-01T00:00:00Z", &["2026-01-04T00:00:00Z"]),
        ("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("@hourly", "UTC", "2026-01-01T00:00:00.001Z", &["2026-01-01T01:00:00Z"]),
        ("@daily", "UTC", "2025-12-31T23:59:59.999Z", &["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]),
        ("30 9 * * *", "Asia/Kolkata", "2026-06-01T00:00:00Z", &["2026-06-01T04:00:00Z", "2026-06-02T04:00:00Z"]),
    ]);
}

#[test]
fn a_skipped_time_of_day_fires_when_the_gap_ends() {
    check(&[
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]),
        ("0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"]),
        ("30 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]),
        ("30 2 8 3 *", "America/New_York", "2026-01-01T00:00:00Z", &["2026-03-08T07:00:00Z", "2027-03-08T07:30:00Z"]),
        (
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T00:00:00Z",
            &["2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"],
        ),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", &["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"]),
        // Samoa skipped all of 30 December 2011.
        ("0 12 * * *", "Pacific/Apia", "2011-12-29T23:00:00Z", &["2011-12-30T10:00:00Z", "2011-12-30T22:00:00Z"]),
    ]);
}

#[test]
fn a_repeated_time_of_day_fires_the_first_time_only() {
    check(&[
        ("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", &["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]),
        // During the repeated hour, the firing of that day is already over.
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", &["2026-10-26T01:30:00Z"]),
        ("0 30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        (
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-04T00:00:00Z",
            &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
        ),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-17T12:00:00Z", &["2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"]),
    ]);
}

#[test]
fn recurring_lines_follow_the_clock() {
    check(&[
        ("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:45:00Z", &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z"]),
        ("*/30 2 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", &["2026-03-30T00:00:00Z"]),
        (
            "*/30 2 * * *",
            "Europe/Berlin",
            "2026-10-24T23:50:00Z",
            &["2026-10-25T00:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z"],
        ),
        (
            "*/15 * * * *",
            "Australia/Lord_Howe",
            "2026-04-04T14:44:00Z",
            &["2026-04-04T14:45:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:15:00Z"],
        ),
        (
            "0 * * * *",
            "America/New_York",
            "2026-11-01T04:30:00Z",
            &["2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"],
        ),
        ("0 */6 * * *", "America/Sao_Paulo", "2018-11-04T00:00:00Z", &["2018-11-04T08:00:00Z"]),
    ]);
}

#[test]
fn wrong_lines_are_refused_with_the_accepted_form() {
    for line in [
        "",
        " ",
        "* * * *",
        "* * * * * * *",
        "60 * * * *",
        "* 24 * * *",
        "a b c d e",
        "@never",
        "*/0 * * * *",
        "é * * * *",
    ] {
        let error = Cadence::cron(line, None).expect_err(line);
        assert!(matches!(error, CadenceError::Cron { .. }), "{line}: {error:?}");
        assert!(error.to_string().contains("0 30 9 * * MON-FRI"), "{error}");
    }
    assert!(Cadence::cron(&"1,".repeat(200), None).is_err());
}

#[test]
fn a_date_that_does_not_exist_is_refused_at_once() {
    for line in ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 0 30 2 *"] {
        assert_eq!(Cadence::cron(line, None), Err(CadenceError::Never(line.into())));
    }
}

#[test]
fn an_unknown_time_zone_is_refused() {
    assert_eq!(Cadence::cron("* * * * *", Some("Mars/Base")), Err(CadenceError::Zone("Mars/Base".into())));
    let Cadence::Cron(line) = Cadence::cron(" 0  9 * * * ", Some("Europe/Berlin")).unwrap() else { panic!() };
    assert_eq!((line.text(), line.zone()), ("0 9 * * *", "Europe/Berlin"));
}

#[test]
fn an_interval_counts_from_its_anchor() {
    let cadence = Cadence::every(Millis::from_secs(30), at("2026-01-01T00:00:07Z")).unwrap();
    for (after, next) in [
        ("2025-01-01T00:00:00Z", "2026-01-01T00:00:07Z"),
        ("2026-01-01T00:00:07Z", "2026-01-01T00:00:37Z"),
        ("2026-01-01T00:00:36.999Z", "2026-01-01T00:00:37Z"),
        ("2026-01-01T00:00:37Z", "2026-01-01T00:01:07Z"),
    ] {
        assert_eq!(cadence.next_after(at(after)), Some(at(next)), "{after}");
    }
    let too_short = Millis::new(999);
    assert_eq!(Cadence::every(too_short, Timestamp::EPOCH), Err(CadenceError::Interval(too_short)));
}

#[test]
fn time_ends() {
    let every = Cadence::every(Millis::MAX, Timestamp::MAX - Millis::new(1)).unwrap();
    assert_eq!(every.next_after(Timestamp::MAX), None);
    assert_eq!(Cadence::cron("* * * * *", None).unwrap().next_after(Timestamp::MAX), None);
    assert_eq!(Cadence::cron("0 0 29 2 *", Some("Europe/Berlin")).unwrap().next_n(Timestamp::MAX, 3), vec![]);
    assert_eq!(Cadence::cron("* * * * *", None).unwrap().next_n(Timestamp::EPOCH, usize::MAX).len(), MAX_FIRINGS);
}

const ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kolkata",
    "America/Sao_Paulo",
    "Europe/Dublin",
    "Africa/Casablanca",
    "UTC",
];

/// Minutes, hours, weekdays: the fields of a line, as sets and as text.
#[derive(Debug, Clone)]
struct Fields {
    minutes: Vec<i8>,
    hours: Vec<i8>,
    weekdays: Vec<i8>,
    recurring: bool,
}

impl Fields {
    fn line(&self) -> String {
        let list = |set: &[i8]| set.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        // A range of one value is the same set, but not a plain number.
        let minutes = if self.recurring {
            format!("{0}-{0},{1}", self.minutes[0], list(&self.minutes))
        } else {
            list(&self.minutes)
        };
        format!("{minutes} {} * * {}", list(&self.hours), list(&self.weekdays))
    }

    fn match_date(&self, clock: DateTime) -> bool {
        self.weekdays.contains(&clock.weekday().to_sunday_zero_offset())
    }

    fn matches(&self, clock: DateTime) -> bool {
        self.minutes.contains(&clock.minute()) && self.hours.contains(&clock.hour()) && self.match_date(clock)
    }

    /// Checks every minute. A time of day fires in the first minute at which the clock shows it or a later time.
    fn next_by_search(&self, zone: &TimeZone, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let minute = jiff::SignedDuration::from_mins(1);
        let start = after.as_second().div_euclid(60) * 60;
        if self.recurring {
            let mut t = jiff::Timestamp::from_second(start).unwrap();
            for _ in 0..MINUTES {
                t += minute;
                if self.matches(zone.to_datetime(t)) {
                    return Some(t);
                }
            }
            return None;
        }
        let mut t = jiff::Timestamp::from_second(start - 2 * 86_400).unwrap();
        let mut shown = zone.to_datetime(t);
        for _ in 0..MINUTES {
            t += minute;
            let clock = zone.to_datetime(t);
            let mut newly_shown = false;
            while shown < clock {
                shown += minute;
                newly_shown |= self.matches(shown);
            }
            if newly_shown && t > after {
                return Some(t);
            }
        }
        None
    }
}

const MINUTES: usize = 12 * 1440;

fn fields() -> impl Strategy<Value = Fields> {
    let set = |range: std::ops::Range<i8>, most: usize| {
        prop::collection::btree_set(range, 1..=most).prop_map(|s| s.into_iter().collect::<Vec<_>>())
    };
    (set(0..60, 4), set(0..24, 6), set(0..7, 7), any::<bool>())
        .prop_map(|(minutes, hours, weekdays, recurring)| Fields { minutes, hours, weekdays, recurring })
}

/// Moments near changes of the clock, where bugs are likely.
fn moment_near_a_change(zone: &TimeZone, pick: u64, offset: i64) -> jiff::Timestamp {
    let from: jiff::Timestamp = "2005-01-01T00:00:00Z".parse().unwrap();
    let change = zone.following(from).nth((pick % 30) as usize).map_or(from, |t| t.timestamp());
    change + jiff::SignedDuration::from_secs(offset)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_next_firing_matches_a_search_of_every_minute(
        fields in fields(), zone in 0..ZONES.len(), pick: u64, offset in -200_000_i64..100_000,
    ) {
        let cadence = Cadence::cron(&fields.line(), Some(ZONES[zone])).unwrap();
        let zone = TimeZoneDatabase::bundled().get(ZONES[zone]).unwrap();
        let after = moment_near_a_change(&zone, pick, offset);
        let expected = fields.next_by_search(&zone, after).map(|t| Timestamp::from_millis(t.as_millisecond()));
        prop_assert_eq!(cadence.next_after(Timestamp::from_millis(after.as_millisecond())), expected, "{}", fields.line());
    }

    #[test]
    fn firings_grow_and_no_line_panics(line in "[0-9*/,LW#-]{1,5}( [0-9*/,LW#?-]{1,5}){4,5}", ms in 0_i64..253_402_207_200_000) {
        if let Ok(cadence) = Cadence::cron(&line, Some("Europe/Berlin")) {
            let mut last = Timestamp::from_millis(ms);
            for next in cadence.next_n(last, 5) {
                prop_assert!(next > last);
                last = next;
            }
        }
    }

    #[test]
    fn any_text_is_a_line_or_an_error(line in ".{0,40}", zone in ".{0,20}") {
        let _ = Cadence::cron(&line, Some(&zone));
        let _ = Cadence::cron(&line, None);
    }
}

#[test]
fn after_a_clock_was_set_back_frequent_schedules_go_on_and_rare_ones_do_not_repeat() {
    let (now, hour) = (at("2026-01-01T11:00:05Z"), Millis::from_secs(3600));
    let every = Cadence::every(Millis::from_secs(10), now).unwrap();
    assert_eq!(every.after_set_back(now + hour, now), Some(now + Millis::from_secs(10)));
    let cron = Cadence::cron("*/10 * * * * *", None).unwrap();
    assert_eq!(cron.after_set_back(at("2026-01-01T12:00:10Z"), now), Some(at("2026-01-01T11:00:10Z")));
    assert_eq!(cron.after_set_back(at("2026-01-01T11:00:10Z"), now), None, "nothing was set back");
    assert_eq!(cron.after_set_back(at("2026-01-01T11:00:20Z"), now), None, "one firing, which has happened");
    let daily = Cadence::cron("0 12 * * *", None).unwrap();
    assert_eq!(daily.after_set_back(at("2026-01-02T12:00:00Z"), now), None, "today's firing has happened");
}

proptest! {
    #[test]
    fn a_schedule_that_is_on_time_is_left_alone(now in 0i64..4_000_000_000_000, seconds in 1u64..100_000) {
        let now = Timestamp::from_millis(now);
        let every = Cadence::every(Millis::from_secs(seconds), now).unwrap();
        prop_assert_eq!(every.after_set_back(every.next_after(now).unwrap(), now), None);
    }
}
