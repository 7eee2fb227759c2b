//! What will happen, for people who want to see it before they believe it.

use chrono::{
    DateTime, NaiveDate, NaiveDateTime, NaiveTime, Offset as _, SecondsFormat, TimeDelta, TimeZone as _, Utc,
};
use chrono_tz::Tz;
use serde::Serialize;

use super::occurrences::Note;
use super::timing::Timing;

/// Most times of one preview.
pub const PREVIEW_MOST: usize = 100;
/// From the noon of a day, past both of its ends, in seconds.
const AROUND: i64 = 14 * 3_600;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Previewed {
    pub at: DateTime<Utc>,
    /// With the offset that counts there then: `2027-03-28T03:00:00+02:00`.
    pub local: String,
    /// The clock of the zone changes on that day.
    pub clock_change: bool,
    /// `false` for a time that is named but falls to a clock change.
    pub fires: bool,
    /// What the change does to it, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The next `count` times after a moment (at most [`PREVIEW_MOST`]).
pub fn preview(timing: &Timing, after: DateTime<Utc>, count: usize) -> Vec<Previewed> {
    let show = |time: NaiveDateTime| time.format("%H:%M").to_string();
    let times = timing.occurrences(after).take(count.min(PREVIEW_MOST)).map(|occurrence| {
        let local = occurrence.at.with_timezone(&timing.zone);
        let note = match occurrence.note {
            Note::Plain => None,
            Note::Shifted(from) => Some(format!("the clock jumps over {}: it fires right after", show(from))),
            Note::Dropped(from) => Some(format!("the clock jumps over {}: it does not fire", show(from))),
            Note::First => Some("the clock shows this time twice: the first of both".to_owned()),
            Note::Last => Some("the clock shows this time twice: the second of both".to_owned()),
        };
        Previewed {
            at: occurrence.at,
            local: local.to_rfc3339_opts(SecondsFormat::Secs, false),
            clock_change: changes(timing.zone, local.date_naive()),
            fires: occurrence.fires(),
            note,
        }
    });
    times.collect()
}

/// The clock of the zone is put forward or back on this day.
fn changes(zone: Tz, day: NaiveDate) -> bool {
    let offset =
        |at: i64| DateTime::from_timestamp(at, 0).map(|at| zone.offset_from_utc_datetime(&at.naive_utc()).fix());
    let noon = day.and_time(NaiveTime::MIN) + TimeDelta::hours(12);
    let noon =
        zone.from_local_datetime(&noon).earliest().map_or_else(|| noon.and_utc(), |noon| noon.to_utc()).timestamp();
    let (mut before, mut after) = (noon - AROUND, noon + AROUND);
    if offset(before) == offset(after) {
        return false;
    }
    while after - before > 1 {
        let middle = before.midpoint(after);
        if offset(middle) == offset(before) {
            before = middle;
        } else {
            after = middle;
        }
    }
    // The first second of the new time says which day it is: a change at midnight belongs to the day that begins with it.
    DateTime::from_timestamp(after, 0).is_some_and(|at| at.with_timezone(&zone).date_naive() == day)
}
