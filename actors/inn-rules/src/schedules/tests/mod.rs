mod changes;
mod due;
mod machine;
mod oracle;
mod parsing;
mod previews;

use chrono::{DateTime, Utc};
use inn_protocol::schedule::{Gap, Overlap, Policies};

use super::Timing;

pub(super) fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

pub(super) fn timing(cadence: &str, zone: &str) -> Timing {
    with(cadence, zone, Policies::default())
}

pub(super) fn with(cadence: &str, zone: &str, policies: Policies) -> Timing {
    Timing::parse(cadence, zone, policies).unwrap()
}

pub(super) fn clock(gap: Gap, overlap: Overlap) -> Policies {
    Policies { gap, overlap, ..Policies::default() }
}

/// The next firings as the wall clock of the zone shows them, with the offset.
pub(super) fn shown(timing: &Timing, after: &str, count: usize) -> Vec<String> {
    let show = |at: DateTime<Utc>| at.with_timezone(&timing.zone).format("%m-%d %H:%M%z").to_string();
    timing.firings(at(after)).take(count).map(show).collect()
}
