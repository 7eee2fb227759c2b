//! Dates as PocketBase keeps them: text `YYYY-MM-DD HH:MM:SS.mmmZ` in UTC, `''` when unset.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, Utc};

/// The stored text of a date the A2App guard admits; `None` when it is not one or cannot be kept.
///
/// Admitted (A2App guard, datetime): `YYYY-MM-DD`, optionally a blank or `T` and `HH:MM[:SS[.f…]]`, blanks, and `Z` or
/// an offset. The hour range is checked too, because `25:00` could only be lost later. A time without seconds is kept,
/// where PocketBase drops the whole date: the guard said yes to it.
pub(crate) fn stored_iso(text: &str) -> Option<String> {
    parse_iso(text).and_then(stored)
}

/// As [`stored_iso`], and the other layouts PocketBase reads (section C.1 of the notes).
pub(super) fn stored_any(text: &str) -> Option<String> {
    if text.len() > MAX_TEXT {
        return None;
    }
    parse_iso(text).or_else(|| parse_iso(without_zone_name(text)?)).or_else(|| parse_mail(text)).and_then(stored)
}

/// Exactly `YYYY-MM-DD`, a day of the calendar.
pub(crate) fn is_day_key(text: &str) -> bool {
    text.len() == 10 && day(text.as_bytes()).is_some()
}

/// The day of a stored date or day key.
pub(crate) fn stored_day(text: &str) -> Option<NaiveDate> {
    day(text.as_bytes().get(..10)?)
}

const MAX_TEXT: usize = 64;

/// Year 1, January 1st is Go's zero time, which PocketBase stores as unset.
fn stored(at: DateTime<Utc>) -> Option<String> {
    let zero = at.year() == 1 && at.ordinal() == 1;
    ((1..=9999).contains(&at.year()) && !zero).then(|| at.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string())
}

fn parse_iso(text: &str) -> Option<DateTime<Utc>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let mut rest = Scan(text.as_bytes());
    let day = day(rest.take(10)?)?;
    if rest.0.is_empty() {
        return Some(day.and_hms_opt(0, 0, 0)?.and_utc());
    }
    rest.one_of(b" T")?;
    let hour = rest.two_digits()?;
    rest.one_of(b":")?;
    let minute = rest.two_digits()?;
    let (mut second, mut millis) = (0, 0);
    if rest.one_of(b":").is_some() {
        second = rest.two_digits()?;
        if rest.one_of(b".").is_some() {
            millis = rest.millis()?;
        }
    }
    let local = day.and_hms_milli_opt(hour, minute, second, millis)?;
    while rest.one_of(b" ").is_some() {}
    offset(rest).and_then(|east| local.checked_sub_signed(east)).map(|utc: NaiveDateTime| utc.and_utc())
}

fn offset(mut rest: Scan<'_>) -> Option<TimeDelta> {
    if rest.0.is_empty() || rest.0 == b"Z" {
        return Some(TimeDelta::zero());
    }
    let sign = if rest.one_of(b"+").is_some() { 1 } else { rest.one_of(b"-").map(|_| -1)? };
    let hours = rest.two_digits().filter(|hours| *hours < 24)?;
    let _colon = rest.one_of(b":");
    let minutes = rest.two_digits().filter(|minutes| *minutes < 60)?;
    rest.0.is_empty().then(|| TimeDelta::minutes(sign * i64::from(hours * 60 + minutes)))
}

fn day(text: &[u8]) -> Option<NaiveDate> {
    let mut scan = Scan(text);
    let century = scan.two_digits()?;
    let year = century * 100 + scan.two_digits()?;
    scan.one_of(b"-")?;
    let month = scan.two_digits()?;
    scan.one_of(b"-")?;
    let day = scan.two_digits()?;
    if !scan.0.is_empty() {
        return None;
    }
    NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)
}

/// `2024-01-10 10:00:00 +0200 EET` without its last word.
fn without_zone_name(text: &str) -> Option<&str> {
    let (head, name) = text.rsplit_once(' ')?;
    ((2..=5).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_uppercase())).then_some(head)
}

/// `10 Jan 2024` and the mail form `Wed, 10 Jan 2024 10:00:00 GMT`.
fn parse_mail(text: &str) -> Option<DateTime<Utc>> {
    if text.len() == 11 && text.is_ascii() {
        return Some(NaiveDate::parse_from_str(text, "%d %b %Y").ok()?.and_hms_opt(0, 0, 0)?.and_utc());
    }
    text.as_bytes().get(3).filter(|b| **b == b',')?;
    DateTime::parse_from_rfc2822(text).ok().map(|at| at.with_timezone(&Utc))
}

/// The bytes not read yet.
struct Scan<'a>(&'a [u8]);

impl<'a> Scan<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.0.split_at_checked(count)?;
        self.0 = tail;
        Some(head)
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, tail) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = tail;
            *first
        })
    }

    fn two_digits(&mut self) -> Option<u32> {
        let head = self.0.get(..2)?;
        let value = head.iter().try_fold(0, |value, b| b.is_ascii_digit().then(|| value * 10 + u32::from(b - b'0')))?;
        self.take(2).map(|_| value)
    }

    /// One or more digits of a fraction, cut to milliseconds.
    fn millis(&mut self) -> Option<u32> {
        let digits = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        let fraction = self.take(digits).filter(|fraction| !fraction.is_empty())?;
        let digit = |index: usize| fraction.get(index).map_or(0, |b| u32::from(b - b'0'));
        Some(digit(0) * 100 + digit(1) * 10 + digit(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_stored_in_utc_with_milliseconds_cut() {
        for (text, stored) in [
            ("2024-01-10", "2024-01-10 00:00:00.000Z"),
            ("2024-01-10T10:00:00", "2024-01-10 10:00:00.000Z"),
            ("2024-01-10T10:00:00Z", "2024-01-10 10:00:00.000Z"),
            ("2024-01-10T10:00:00+02:00", "2024-01-10 08:00:00.000Z"),
            ("2024-01-10 10:00:00.1239Z", "2024-01-10 10:00:00.123Z"),
            ("2024-01-10 10:00:00 +0200", "2024-01-10 08:00:00.000Z"),
            ("2024-01-10 10:00:00 +0200 EET", "2024-01-10 08:00:00.000Z"),
            ("2024-01-10 10:00Z", "2024-01-10 10:00:00.000Z"),
            ("10 Jan 2024", "2024-01-10 00:00:00.000Z"),
            ("Wed, 10 Jan 2024 10:00:00 GMT", "2024-01-10 10:00:00.000Z"),
            ("9999-12-31", "9999-12-31 00:00:00.000Z"),
            ("2024-02-29", "2024-02-29 00:00:00.000Z"),
        ] {
            assert_eq!(stored_any(text).as_deref(), Some(stored), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_not_stored() {
        for text in [
            "tomorrow",
            "2024-02-30",
            "2023-02-29",
            "2024-1-5",
            "2024-01",
            "2024",
            "20240110",
            "01/10/2024",
            "Jan 10 2024",
            " 2024-01-10",
            "2024-01-10 ",
            "2024-01-10T25:00:00Z",
            "2024-01-10T10:00:00.Z",
            "2024-01-10T10:00:00+2:00",
            "0001-01-01",
            "0000-01-01",
            "9999-12-31T23:00:00-05:00",
            "2024-01-10\u{661}",
        ] {
            assert_eq!(stored_any(text), None, "{text}");
        }
    }

    #[test]
    fn a_day_key_is_a_calendar_day_and_nothing_more() {
        assert!(is_day_key("2026-07-31"));
        for text in ["2026-07-32", "2026-7-31", "2026-07-31 ", "2026-07-31T00:00", "today", "二〇二六-1"] {
            assert!(!is_day_key(text), "{text}");
        }
    }
}
