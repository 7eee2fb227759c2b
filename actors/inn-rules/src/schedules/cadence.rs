//! How often: the words of an operation's `schedule` (A2App notes, A.4), or a Unix cron expression.

use chrono::NaiveDateTime;

use super::fields::Rule;

/// Longest pause of an `every …`: a leap year.
pub const EVERY_MOST_SECONDS: i64 = 366 * 86_400;
/// Longest expression, in bytes.
const MAX_TEXT: usize = 200;

/// What was wrong with a cadence: what was expected instead.
pub(super) type Wrong = String;

#[derive(Debug, Clone)]
pub enum Cadence {
    /// Every so many seconds of elapsed time, counted from 1970-01-01T00:00Z: no clock change touches it, and every node
    /// and every redeploy means the same moments.
    Every { seconds: i64 },
    /// Times on the wall clock of a zone.
    Clock(ClockRule),
}

/// Minutes the wall clock shows.
#[derive(Debug, Clone)]
pub struct ClockRule(pub(super) Rule);

impl Cadence {
    /// Reads `every <n>s|m|h`, `hourly`, `daily HH:MM`, five cron fields, or `@hourly` to `@yearly`.
    ///
    /// # Errors
    /// What is expected instead, when the text is none of them or names times that never come.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.len() > MAX_TEXT {
            return Err(format!("at most {MAX_TEXT} characters"));
        }
        if let Some(rest) = text.strip_prefix("every ") {
            return every(rest);
        }
        if let Some(rest) = text.strip_prefix("daily ") {
            return daily(rest);
        }
        let fields = match text {
            "hourly" | "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        Rule::parse(fields).map(|rule| Self::Clock(ClockRule(rule)))
    }

    /// The hour is left open, so that the firings follow elapsed hours and not times of the day.
    pub fn any_hour(&self) -> bool {
        match self {
            Self::Every { .. } => true,
            Self::Clock(rule) => rule.0.any_hour,
        }
    }
}

impl ClockRule {
    /// The next wall-clock time after this one that the rule names, whether it exists in a zone or not.
    pub(super) fn next_local(&self, after: NaiveDateTime) -> Option<NaiveDateTime> {
        self.0.next_local(after)
    }
}

fn every(rest: &str) -> Result<Cadence, Wrong> {
    let wrong =
        || "`every` with a whole number from 1 and s, m or h, at most 366 days together: `every 15m`".to_owned();
    let unit = match rest.chars().last() {
        Some('s') => 1,
        Some('m') => 60,
        Some('h') => 3_600,
        _ => return Err(wrong()),
    };
    let count = rest.strip_suffix(['s', 'm', 'h']).unwrap_or_default();
    let digits = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    let count = count.parse::<i64>().ok().filter(|count| digits && *count > 0).ok_or_else(wrong)?;
    let seconds = count.checked_mul(unit).filter(|seconds| *seconds <= EVERY_MOST_SECONDS).ok_or_else(wrong)?;
    Ok(Cadence::Every { seconds })
}

fn daily(rest: &str) -> Result<Cadence, Wrong> {
    let wrong = || "`daily` with a time from 00:00 to 23:59: `daily 09:00`".to_owned();
    let two = |text: &str, below: u32| {
        let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<u32>().ok().filter(|number| digits && *number < below)
    };
    let (hour, minute) = rest.split_once(':').ok_or_else(wrong)?;
    let (hour, minute) = (two(hour, 24).ok_or_else(wrong)?, two(minute, 60).ok_or_else(wrong)?);
    Rule::parse(&format!("{minute} {hour} * * *")).map(|rule| Cadence::Clock(ClockRule(rule)))
}
