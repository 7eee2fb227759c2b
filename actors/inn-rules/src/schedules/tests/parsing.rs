//! What a schedule may say, and what is refused.

use inn_protocol::Code;
use inn_protocol::schedule::Policies;

use super::{at, timing};
use crate::schedules::{Cadence, Timing, check_name};

#[test]
fn the_words_of_an_operation_are_read() {
    for text in ["hourly", "every 5m", "every 30s", "every 24h", "daily 00:00", "daily 23:59", "every 8784h"] {
        assert!(Cadence::parse(text).is_ok(), "{text}");
    }
    assert!(matches!(Cadence::parse("every 15m"), Ok(Cadence::Every { seconds: 900 })));
}

#[test]
fn five_fields_are_read_as_crontab_has_them() {
    let mondays = timing("30 8 * * 1", "UTC");
    assert_eq!(mondays.next(at("2026-12-01T00:00:00Z")), Some(at("2026-12-07T08:30:00Z")), "1 is Monday");
    for sunday in ["0 6 * * 0", "0 6 * * 7", "0 6 * * sun", "0 6 * * SUN", "0 6 * * 7-7"] {
        assert_eq!(
            timing(sunday, "UTC").next(at("2026-12-01T00:00:00Z")),
            Some(at("2026-12-06T06:00:00Z")),
            "{sunday}"
        );
    }
    let cases = [
        ("*/20 * * * *", ["2026-12-01T00:20:00Z", "2026-12-01T00:40:00Z"]),
        ("10-40/15 3 * * *", ["2026-12-01T03:10:00Z", "2026-12-01T03:25:00Z"]),
        ("0 9 * * 1-5", ["2026-12-01T09:00:00Z", "2026-12-02T09:00:00Z"]),
        ("0 9 * * fri-sun", ["2026-12-04T09:00:00Z", "2026-12-05T09:00:00Z"]),
        ("0 0 1 jan,Jul *", ["2027-01-01T00:00:00Z", "2027-07-01T00:00:00Z"]),
        ("0 0 29 2 *", ["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]),
        ("0 12 * * */3", ["2026-12-02T12:00:00Z", "2026-12-05T12:00:00Z"]),
        ("@yearly", ["2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"]),
        ("@weekly", ["2026-12-06T00:00:00Z", "2026-12-13T00:00:00Z"]),
    ];
    for (text, expected) in cases {
        let found: Vec<_> = timing(text, "UTC").firings(at("2026-12-01T00:00:00Z")).take(2).collect();
        assert_eq!(found, expected.map(at), "{text}");
    }
}

#[test]
fn day_of_month_or_weekday_is_enough_when_both_are_restricted() {
    let friday_or_13th = timing("0 0 13 * 5", "UTC");
    let found: Vec<_> = friday_or_13th.firings(at("2026-12-05T00:00:00Z")).take(3).collect();
    assert_eq!(found, ["2026-12-11T00:00:00Z", "2026-12-13T00:00:00Z", "2026-12-18T00:00:00Z"].map(at));
    // A field with `*` restricts nothing, so the other one alone counts… and its step holds as well.
    let odd_mondays = timing("0 0 */2 * 1", "UTC");
    assert_eq!(odd_mondays.next(at("2026-12-01T00:00:00Z")), Some(at("2026-12-07T00:00:00Z")));
    assert_eq!(odd_mondays.next(at("2026-12-07T00:00:00Z")), Some(at("2026-12-21T00:00:00Z")));
}

#[test]
fn nonsense_is_refused_with_what_is_expected() {
    let cases = [
        ("daily 29:00", "23:59"),
        ("daily 9:00", "00:00"),
        ("daily 12:60", "23:59"),
        ("every 0s", "from 1"),
        ("every -5m", "from 1"),
        ("every 5d", "s, m or h"),
        ("every 9999999h", "366 days"),
        ("every 99999999999999999999s", "366 days"),
        ("0 0 31 2 *", "comes in one of the months"),
        ("0 0 30 2 *", "comes in one of the months"),
        ("0 0 31 4,6,9,11 1", "comes in one of the months"),
        ("60 * * * *", "minute from 0 to 59"),
        ("* 24 * * *", "hour from 0 to 23"),
        ("* * 0 * *", "day of month from 1 to 31"),
        ("* * * 13 *", "month from 1 to 12"),
        ("* * * * 8", "weekday from 0 to 7"),
        ("* * * * monday", "sun to sat"),
        ("*/0 * * * *", "step from 1"),
        ("*/99 * * * *", "step from 1"),
        ("5/15 * * * *", "before the step"),
        ("0 22-4 * * *", "upwards"),
        ("* * * *", "five fields"),
        ("0 * * * * *", "five fields"),
        ("@reboot", "five fields"),
        ("0 0 L * *", "day of month"),
        ("0 0 * * 1#2", "weekday"),
        ("0 0 ? * 1", "day of month"),
        ("1,,2 * * * *", "minute"),
        ("+1 * * * *", "minute"),
        ("", "five fields"),
        ("hourly please", "five fields"),
    ];
    for (text, expected) in cases {
        let refusal = Timing::parse(text, "UTC", Policies::default()).unwrap_err();
        let [violation] = refusal.violations.as_slice() else { panic!("{text}: {refusal:?}") };
        assert_eq!((violation.field.as_str(), violation.code), ("cadence", Code::InvalidValue), "{text}");
        assert!(violation.expected.as_ref().unwrap().contains(expected), "{text}: {:?}", violation.expected);
    }
    assert!(Cadence::parse(&"0,".repeat(200)).is_err(), "an endless expression is not even read");
}

#[test]
fn a_zone_is_an_iana_name_and_never_an_offset() {
    for zone in ["Europe/Berlin", "America/Argentina/Buenos_Aires", "UTC", "Asia/Kolkata"] {
        assert!(Timing::parse("hourly", zone, Policies::default()).is_ok(), "{zone}");
    }
    for zone in ["+02:00", "UTC+2", "GMT-3", "CEST", "Europe/Bonn", "", "europe/berlin"] {
        let refusal = Timing::parse("hourly", zone, Policies::default()).unwrap_err();
        assert_eq!(refusal.violations[0].field, "zone", "{zone}");
    }
    let refusal = Timing::parse("hourly", "europe/berlin", Policies::default()).unwrap_err();
    assert!(refusal.violations[0].expected.as_ref().unwrap().contains("Europe/Berlin"));
}

#[test]
fn everything_wrong_is_told_at_once() {
    let policies = Policies { attempts: 0, jitter_seconds: 3_601, missed_most: 101, ..Policies::default() };
    let refusal = Timing::parse("daily 29:00", "Mars", policies).unwrap_err();
    let fields: Vec<&str> = refusal.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["cadence", "zone", "missedMost", "jitterSeconds", "attempts"]);
}

#[test]
fn a_name_is_plain_and_never_one_of_a_release() {
    for good in ["a", "morning-summary", "9.clock_2"] {
        assert!(check_name(good).is_ok(), "{good}");
    }
    for bad in ["", "op:cards.clear", "A", "-x", "a b", "ä", &"a".repeat(65)] {
        assert!(check_name(bad).is_err(), "{bad}");
    }
}
