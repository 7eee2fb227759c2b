//! Unix five-field expressions on top of the `cron` crate, which speaks another dialect: it wants a field for seconds,
//! counts weekdays from 1 = Sunday, asks for day of month *and* weekday, and is left to meet no clock change here: it only
//! ever sees wall-clock times.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use chrono::NaiveDateTime;
use cron::Schedule;

use super::cadence::Wrong;

/// A parsed expression.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// Two when day of month and weekday are both restricted: a day then counts when either names it (crontab(5)).
    schedules: Vec<Schedule>,
    /// The hour field names every hour, or steps through all of them.
    pub(super) any_hour: bool,
}

struct Kind {
    name: &'static str,
    low: u8,
    high: u8,
    /// Words for `low`, `low` + 1, …
    words: &'static [&'static str],
}

const MINUTE: Kind = Kind { name: "minute", low: 0, high: 59, words: &[] };
const HOUR: Kind = Kind { name: "hour", low: 0, high: 23, words: &[] };
const DAY: Kind = Kind { name: "day of month", low: 1, high: 31, words: &[] };
const MONTH: Kind = Kind {
    name: "month",
    low: 1,
    high: 12,
    words: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// Sunday is 0 and 7.
const WEEKDAY: Kind =
    Kind { name: "weekday", low: 0, high: 7, words: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// Longest month, by its number from 1.
const DAYS: [u8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

struct Field {
    values: BTreeSet<u8>,
    /// It is written with `*`: no restriction, as crontab(5) has it.
    star: bool,
}

impl Rule {
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let parts: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = parts.as_slice() else {
            return Err(
                "`every 15m`, `hourly`, `daily 09:00`, or five fields (minute, hour, day of month, month, weekday): `0 9 * * 1-5`"
                    .to_owned(),
            );
        };
        let (minute, hour) = (MINUTE.read(minute)?, HOUR.read(hour)?);
        let (day, month, weekday) = (DAY.read(day)?, MONTH.read(month)?, WEEKDAY.read(weekday)?);
        check_days(&day, &month)?;
        let line = |day: &str, weekday: &str| {
            let (minute, hour, month) = (MINUTE.write(&minute), HOUR.write(&hour), MONTH.write(&month));
            let text = format!("0 {minute} {hour} {day} {month} {weekday}");
            Schedule::from_str(&text).map_err(|error| format!("five fields that can be read ({error})"))
        };
        let (days, weekdays) = (DAY.write(&day), write_weekdays(&weekday));
        let schedules = if day.star || weekday.star {
            vec![line(&days, &weekdays)?]
        } else {
            vec![line(&days, "*")?, line("*", &weekdays)?]
        };
        let any_hour = hour.star || hour.values.len() == 24;
        Ok(Self { schedules, any_hour })
    }

    pub(super) fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        let after = after.and_utc();
        let next = self.schedules.iter().filter_map(|schedule| schedule.after(&after).next());
        next.min().map(|at| at.naive_utc())
    }
}

/// 31 February never comes.
fn check_days(day: &Field, month: &Field) -> Result<(), Wrong> {
    let longest = month.values.iter().filter_map(|month| DAYS.get(usize::from(*month) - 1)).max();
    match (day.values.first(), longest) {
        (Some(first), Some(longest)) if first <= longest => Ok(()),
        _ => Err("a day of month that comes in one of the months named".to_owned()),
    }
}

/// The `cron` crate counts from 1 = Sunday.
fn write_weekdays(field: &Field) -> String {
    let days: BTreeSet<u8> = field.values.iter().map(|day| day % 7).collect();
    if days.len() == 7 {
        return "*".to_owned();
    }
    join(days.iter().map(|day| day + 1))
}

fn join(values: impl Iterator<Item = u8>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

impl Kind {
    fn read(&self, text: &str) -> Result<Field, Wrong> {
        let mut values = BTreeSet::new();
        for part in text.split(',') {
            self.part(part, &mut values)?;
        }
        Ok(Field { values, star: text.starts_with('*') })
    }

    /// `*`, `n`, `n-m`, each of the ranges with `/step`.
    fn part(&self, part: &str, values: &mut BTreeSet<u8>) -> Result<(), Wrong> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (from, to) = if range == "*" {
            // Sunday must not count twice when a step counts on.
            (self.low, if self.words.len() == 7 { 6 } else { self.high })
        } else if let Some((from, to)) = range.split_once('-') {
            let (from, to) = (self.value(from)?, self.value(to)?);
            // A week that ends on Sunday.
            (from, if self.words.len() == 7 && to == 0 && from > 0 { 7 } else { to })
        } else {
            let value = self.value(range)?;
            if step.is_some() {
                return Err(format!("a range or `*` before the step of the {}: `*/15`, `10-40/5`", self.name));
            }
            (value, value)
        };
        if from > to {
            return Err(format!("a range that goes upwards in the {}, or two ranges: `22-23,0-4`", self.name));
        }
        values.extend((from..=to).step_by(usize::from(step.unwrap_or(1))));
        Ok(())
    }

    fn step(&self, text: &str) -> Result<u8, Wrong> {
        let step = number(text).filter(|step| (1..=self.high).contains(step));
        step.ok_or_else(|| format!("a step from 1 to {} in the {}", self.high, self.name))
    }

    fn value(&self, text: &str) -> Result<u8, Wrong> {
        let lower = text.to_ascii_lowercase();
        let word = self.words.iter().position(|word| *word == lower).and_then(|place| u8::try_from(place).ok());
        let value = word.map(|place| place + self.low).or_else(|| number(text));
        value.filter(|value| (self.low..=self.high).contains(value)).ok_or_else(|| {
            let words = match self.words {
                [first, .., last] => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            format!("a {} from {} to {}{words}", self.name, self.low, self.high)
        })
    }

    fn write(&self, field: &Field) -> String {
        if field.values.len() == usize::from(self.high - self.low) + 1 {
            return "*".to_owned();
        }
        join(field.values.iter().copied())
    }
}

fn number(text: &str) -> Option<u8> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}
