//! From what the wall clock shows to moments, in order.

use chrono::{DateTime, NaiveDateTime, TimeDelta, TimeZone as _, Timelike as _, Utc};
use chrono_tz::{GapInfo, Tz};
use inn_protocol::schedule::{Gap, Overlap};

use super::cadence::{Cadence, ClockRule};
use super::timing::Timing;

/// No zone ever jumped by more than a day.
const REACH: TimeDelta = TimeDelta::hours(26);

/// One time of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occurrence {
    pub at: DateTime<Utc>,
    pub note: Note,
}

/// What a clock change did to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    Plain,
    /// The clock jumps over this time; it fires right after the jump.
    Shifted(NaiveDateTime),
    /// The clock jumps over this time; it does not fire. `at` is the end of the jump.
    Dropped(NaiveDateTime),
    /// The clock shows this time twice: the first of both.
    First,
    Last,
}

impl Occurrence {
    pub fn fires(&self) -> bool {
        !matches!(self.note, Note::Dropped(_))
    }
}

/// Times after a moment, strictly in order.
pub struct Occurrences<'t> {
    timing: &'t Timing,
    after: DateTime<Utc>,
    /// The wall-clock time the rule was asked about last.
    cursor: NaiveDateTime,
    /// What the newest wall-clock time means, not given out yet.
    ready: Option<Occurrence>,
    /// Second moments of times that come twice: later than what is ready, earlier than what comes after the change.
    seconds: std::collections::VecDeque<Occurrence>,
    exhausted: bool,
}

impl<'t> Occurrences<'t> {
    pub(super) fn new(timing: &'t Timing, after: DateTime<Utc>) -> Self {
        let cursor = start(timing.zone, after);
        Self { timing, after, cursor, ready: None, seconds: std::collections::VecDeque::new(), exhausted: false }
    }

    fn every(&mut self, seconds: i64) -> Option<Occurrence> {
        let next = self.after.timestamp().div_euclid(seconds).checked_add(1)?.checked_mul(seconds)?;
        self.after = DateTime::from_timestamp(next, 0)?;
        Some(Occurrence { at: self.after, note: Note::Plain })
    }

    /// The next wall-clock times, until one of them means a moment.
    fn fill(&mut self, rule: &ClockRule) {
        while self.ready.is_none() && !self.exhausted {
            let Some(local) = rule.next_local(self.cursor) else {
                self.exhausted = true;
                return;
            };
            self.cursor = local;
            self.ready = self.meaning(local);
        }
    }

    fn meaning(&mut self, local: NaiveDateTime) -> Option<Occurrence> {
        let Timing { zone, policies, cadence } = self.timing;
        let any_hour = cadence.any_hour();
        let moments = zone.from_local_datetime(&local);
        match (moments.earliest(), moments.latest()) {
            (Some(first), Some(last)) if first != last => {
                let first = Occurrence { at: first.to_utc(), note: Note::First };
                let last = Occurrence { at: last.to_utc(), note: Note::Last };
                match policies.overlap {
                    // An hour that is left open is meant each time it comes.
                    _ if any_hour => Some(self.both(first, last)),
                    Overlap::Both => Some(self.both(first, last)),
                    Overlap::First => Some(first),
                    Overlap::Last => Some(last),
                }
            }
            (Some(at), _) => Some(Occurrence { at: at.to_utc(), note: Note::Plain }),
            _ => {
                let end = GapInfo::new(&local, zone)?.end?;
                let shown = end.naive_local();
                // Where the hour is left open nothing is lost with an hour that is not there. One that is there in part
                // (Lord Howe Island moves by 30 minutes) gets its turn at its first minute.
                let there = shown.date() == local.date() && shown.hour() == local.hour();
                let note = match policies.gap {
                    _ if any_hour && !there => return None,
                    Gap::Shift => Note::Shifted(local),
                    Gap::Skip => Note::Dropped(local),
                };
                Some(Occurrence { at: end.to_utc(), note })
            }
        }
    }

    fn both(&mut self, first: Occurrence, last: Occurrence) -> Occurrence {
        self.seconds.push_back(last);
        first
    }

    fn earliest(&mut self) -> Option<Occurrence> {
        match (self.ready, self.seconds.front().copied()) {
            (Some(ready), Some(second)) if second.at < ready.at => self.seconds.pop_front(),
            (Some(_), _) => self.ready.take(),
            (None, _) => self.seconds.pop_front(),
        }
    }
}

impl Iterator for Occurrences<'_> {
    type Item = Occurrence;

    fn next(&mut self) -> Option<Occurrence> {
        let rule = match &self.timing.cadence {
            Cadence::Every { seconds } => return self.every(*seconds),
            Cadence::Clock(rule) => rule,
        };
        loop {
            self.fill(rule);
            let next = self.earliest()?;
            // Before the start, or a time that another one was shifted to.
            if next.at <= self.after {
                continue;
            }
            if next.fires() {
                self.after = next.at;
            }
            return Some(next);
        }
    }
}

/// Where to begin on the wall clock, so that no time after `after` is missed: near a change of the clock a day earlier,
/// since the clock then shows what it showed before.
fn start(zone: Tz, after: DateTime<Utc>) -> NaiveDateTime {
    let offset = |at: DateTime<Utc>| {
        use chrono::Offset as _;
        zone.offset_from_utc_datetime(&at.naive_utc()).fix().local_minus_utc()
    };
    let here = after.with_timezone(&zone).naive_local();
    let here = here.with_nanosecond(0).unwrap_or(here);
    let around = [after.checked_sub_signed(REACH), after.checked_add_signed(REACH)];
    let steady = around.into_iter().flatten().all(|at| offset(at) == offset(after));
    if steady { here } else { here.checked_sub_signed(REACH).unwrap_or(here) }
}
