//! Date macros (section A.5), all in UTC.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveTime, TimeDelta, Timelike, Utc};

/// What a macro stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MacroValue {
    Text(String),
    Integer(u32),
}

/// The layout of every stored date: `YYYY-MM-DD HH:MM:SS.mmmZ`.
fn layout(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3fZ").to_string()
}

fn day_start(day: Option<NaiveDate>) -> Option<String> {
    Some(layout(day?.and_time(NaiveTime::MIN).and_utc()))
}

/// The last millisecond before a day starts.
fn before(day: Option<NaiveDate>) -> Option<String> {
    let start = day?.and_time(NaiveTime::MIN).and_utc();
    Some(layout(start.checked_sub_signed(TimeDelta::milliseconds(1))?))
}

/// The value of a macro, `None` when the name is not one (or lies outside the calendar).
pub(super) fn value(name: &str, now: DateTime<Utc>) -> Option<MacroValue> {
    let today = now.date_naive();
    let month = today.with_day(1);
    let next_month = month.and_then(|day| day.checked_add_months(chrono::Months::new(1)));
    let year = NaiveDate::from_ymd_opt(today.year(), 1, 1);
    let next_year = NaiveDate::from_ymd_opt(today.year().saturating_add(1), 1, 1);
    let text = match name {
        "@now" => Some(layout(now)),
        "@yesterday" => now.checked_sub_days(Days::new(1)).map(layout),
        "@tomorrow" => now.checked_add_days(Days::new(1)).map(layout),
        "@todayStart" => day_start(Some(today)),
        "@todayEnd" => before(today.succ_opt()),
        "@monthStart" => day_start(month),
        "@monthEnd" => before(next_month),
        "@yearStart" => day_start(year),
        "@yearEnd" => before(next_year),
        _ => None,
    };
    let integer = match name {
        "@second" => Some(now.second()),
        "@minute" => Some(now.minute()),
        "@hour" => Some(now.hour()),
        "@day" => Some(today.day()),
        "@month" => Some(today.month()),
        "@weekday" => Some(today.weekday().num_days_from_sunday()),
        "@year" => u32::try_from(today.year()).ok(),
        _ => None,
    };
    text.map(MacroValue::Text).or(integer.map(MacroValue::Integer))
}
