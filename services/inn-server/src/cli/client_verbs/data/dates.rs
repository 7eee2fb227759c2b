//! Dates in words. What is not understood is refused, never guessed.

use chrono::{Datelike as _, Days, Local, NaiveDate, Utc, Weekday};

/// Longest way from today, in days.
const MOST_DAYS: i64 = 36_500;

/// The day it is where the person sits: "tomorrow" is meant by their calendar, which decides nothing but this word.
pub(super) fn today() -> NaiveDate {
    Utc::now().with_timezone(&Local).date_naive()
}

/// The day meant, by the rules of the A2App command lines (reference notes, D.1): today, tomorrow, yesterday,
/// `in 3 days`, `-2 weeks`, `next month` (30 days), `friday` (the next one, never today).
pub(super) fn day(text: &str, today: NaiveDate) -> Option<NaiveDate> {
    let words: Vec<String> = text.split_whitespace().map(str::to_ascii_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["today" | "now"] => Some(today),
        ["tomorrow"] => moved(today, 1),
        ["yesterday"] => moved(today, -1),
        ["next", "week"] => moved(today, 7),
        ["next", "month"] => moved(today, 30),
        ["next" | "this" | "on", name] | [name] if weekday(name).is_some() => {
            weekday(name).and_then(|day| next(today, day))
        }
        ["in", rest @ ..] => amount(rest).and_then(|days| moved(today, days)),
        rest => amount(rest).and_then(|days| moved(today, days)),
    }
}

/// `3 days`, `+3d`, `-2 w`, in days.
fn amount(words: &[&str]) -> Option<i64> {
    let joined;
    let (number, unit) = match words {
        [number, unit] => (*number, *unit),
        [one] => {
            joined = one;
            let digits = joined.find(|c: char| c.is_ascii_alphabetic())?;
            joined.split_at_checked(digits)?
        }
        _ => return None,
    };
    let days = match unit {
        "d" | "day" | "days" => 1,
        "w" | "week" | "weeks" => 7,
        "m" | "month" | "months" => 30,
        _ => return None,
    };
    let number: i64 = number.parse().ok()?;
    number.checked_mul(days).filter(|days| days.abs() <= MOST_DAYS)
}

fn moved(day: NaiveDate, days: i64) -> Option<NaiveDate> {
    let step = Days::new(days.unsigned_abs());
    if days < 0 { day.checked_sub_days(step) } else { day.checked_add_days(step) }
}

fn next(today: NaiveDate, wanted: Weekday) -> Option<NaiveDate> {
    let ahead = i64::from(wanted.days_since(today.weekday()));
    moved(today, if ahead == 0 { 7 } else { ahead })
}

/// Full names only: `mar` could be a month.
fn weekday(name: &str) -> Option<Weekday> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let place = names.iter().position(|known| *known == name)?;
    Weekday::try_from(u8::try_from(place).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    #[test]
    fn words_become_days() {
        let thursday = date("2026-07-30");
        for (text, day_text) in [
            ("today", "2026-07-30"),
            ("Now", "2026-07-30"),
            ("tomorrow", "2026-07-31"),
            ("yesterday", "2026-07-29"),
            ("in 3 days", "2026-08-02"),
            ("+3d", "2026-08-02"),
            ("3 d", "2026-08-02"),
            ("-2 weeks", "2026-07-16"),
            ("in 1 month", "2026-08-29"),
            ("next week", "2026-08-06"),
            ("next month", "2026-08-29"),
            ("friday", "2026-07-31"),
            ("on Friday", "2026-07-31"),
            ("thursday", "2026-08-06"),
            ("next thursday", "2026-08-06"),
        ] {
            assert_eq!(day(text, thursday), Some(date(day_text)), "{text}");
        }
    }

    #[test]
    fn what_could_mean_two_things_is_not_understood() {
        for text in [
            "",
            "soon",
            "fri",
            "this week",
            "in a while",
            "3",
            "days",
            "in",
            "next",
            "31.7.",
            "in 3 years",
            "99999999999999999999 d",
            "9999999 weeks",
        ] {
            assert_eq!(day(text, date("2026-07-30")), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,40}") {
            let _ = day(&text, date("2026-07-30"));
        }
    }
}
