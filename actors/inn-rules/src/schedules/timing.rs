//! A cadence in a zone under policies, checked as a whole.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use inn_protocol::schedule::{ATTEMPTS_MOST, JITTER_MOST, MISSED_MOST, Policies, WINDOW_MOST};
use inn_protocol::{Code, Refusal, Violation};
use serde_json::json;

use super::cadence::Cadence;
use super::occurrences::{Occurrence, Occurrences};
use super::zone;

/// Longest name, in characters.
const MAX_NAME: usize = 64;

/// When a schedule fires.
#[derive(Debug, Clone)]
pub struct Timing {
    pub cadence: Cadence,
    pub zone: Tz,
    pub policies: Policies,
}

impl Timing {
    /// Reads what an owner wrote or a release declares. Everything wrong is told at once.
    pub fn parse(cadence: &str, zone: &str, policies: Policies) -> Result<Self, Refusal> {
        let mut violations = Vec::new();
        let mut wrong = |field: &str, expected: String, got: serde_json::Value| {
            violations.push(Violation::new(Code::InvalidValue, field, expected).got(&got));
        };
        let read = Cadence::parse(cadence).map_err(|expected| wrong("cadence", expected, json!(cadence))).ok();
        let place = zone::parse(zone).map_err(|expected| wrong("zone", expected, json!(zone))).ok();
        let ranges = [
            ("missedMost", policies.missed_most, 1, MISSED_MOST),
            ("missedWindowSeconds", policies.missed_window_seconds, 60, WINDOW_MOST),
            ("jitterSeconds", policies.jitter_seconds, 0, JITTER_MOST),
            ("attempts", policies.attempts, 1, ATTEMPTS_MOST),
        ];
        for (field, value, low, high) in ranges {
            if !(low..=high).contains(&value) {
                wrong(field, format!("a whole number from {low} to {high}"), json!(value));
            }
        }
        match (read, place, violations.is_empty()) {
            (Some(cadence), Some(zone), true) => Ok(Self { cadence, zone, policies }),
            _ => Err(Refusal::violations("The schedule is not usable.", violations)),
        }
    }

    /// Times after this moment, in order, those included that a clock change lets fall.
    pub fn occurrences(&self, after: DateTime<Utc>) -> Occurrences<'_> {
        Occurrences::new(self, after)
    }

    /// The moments it fires after this one, in order and each once.
    pub fn firings(&self, after: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> + '_ {
        self.occurrences(after).filter(Occurrence::fires).map(|occurrence| occurrence.at)
    }

    /// The first of them; `None` when there is none left.
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.firings(after).next()
    }
}

/// A name an owner gives: it stands in paths, logs and the command line. Names of releases have a `:` and never meet it.
pub fn check_name(name: &str) -> Result<(), Violation> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if starts && name.len() <= MAX_NAME && name.chars().all(allowed) {
        return Ok(());
    }
    let expected =
        format!("1 to {MAX_NAME} characters of a-z, 0-9, `-`, `_` and `.`, beginning with a letter or digit");
    Err(Violation::new(Code::InvalidValue, "name", expected).got(&json!(name)))
}
