//! What is due: which times become firings now, and what is made up for after the platform was away.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::schedule::Missed;
use inn_protocol::{Digest, ScheduleId};

use super::cadence::Cadence;
use super::timing::Timing;

/// A time noticed within this long after it came is on time.
const ON_TIME: TimeDelta = TimeDelta::minutes(1);

/// One firing to be written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub nominal_at: DateTime<Utc>,
    /// With jitter.
    pub start_at: DateTime<Utc>,
    /// Times from this one up to `nominal_at` were passed over.
    pub missed_from: Option<DateTime<Utc>>,
    /// `false`: it is only noted that nothing ran.
    pub runs: bool,
}

/// Oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub turns: Vec<Turn>,
    /// `None` when no time is left.
    pub next_at: Option<DateTime<Utc>>,
}

/// What to do about a schedule whose `next_at` is not later than `now`.
///
/// The newest time always counts when it is on time. What else came since `next_at` was missed: the policy says how much
/// of it is made up for, as far back as its window reaches. Whatever is passed over is said by a turn: by `missed_from` of
/// the one after it, or by one that does not run.
pub fn plan(timing: &Timing, schedule: ScheduleId, next_at: DateTime<Utc>, now: DateTime<Utc>) -> Planned {
    let upcoming = timing.next(now);
    let policies = &timing.policies;
    let wanted = match policies.missed {
        Missed::None | Missed::Last => 1,
        Missed::All => usize::try_from(policies.missed_most).unwrap_or(1).max(1),
    };
    let window = now - TimeDelta::seconds(i64::from(policies.missed_window_seconds));
    let mut times = newest(timing, next_at.max(window), now, wanted);
    if policies.missed == Missed::None {
        times.retain(|at| now - *at <= ON_TIME);
    }
    let Some(first) = times.first().copied() else {
        let noted = newest(timing, next_at, now, 1).pop().unwrap_or(next_at);
        let missed_from = Some(next_at);
        let turn = Turn { nominal_at: noted, start_at: noted, missed_from, runs: false };
        return Planned { turns: vec![turn], next_at: upcoming };
    };
    let following = times.iter().skip(1).copied().map(Some).chain([upcoming]);
    let turns = times.iter().zip(following).map(|(nominal, next)| Turn {
        nominal_at: *nominal,
        start_at: *nominal + jitter(timing, schedule, *nominal, next),
        missed_from: (*nominal == first && first > next_at).then_some(next_at),
        runs: true,
    });
    Planned { turns: turns.collect(), next_at: upcoming }
}

/// The newest `most` firings from `since` to `until`, both included, oldest first. Looks back in growing steps, so that
/// the cost follows what is asked for and not how long nobody looked.
fn newest(timing: &Timing, since: DateTime<Utc>, until: DateTime<Utc>, most: usize) -> Vec<DateTime<Utc>> {
    let just_before = |at: DateTime<Utc>| at - TimeDelta::milliseconds(1);
    let mut reach = match timing.cadence {
        Cadence::Every { seconds } => {
            TimeDelta::seconds(seconds.saturating_mul(i64::try_from(most).unwrap_or(1).saturating_add(1)))
        }
        Cadence::Clock(_) => TimeDelta::minutes(2),
    };
    loop {
        let back = until.checked_sub_signed(reach).unwrap_or(since).max(since);
        let found: Vec<_> = timing.firings(just_before(back)).take_while(|at| *at <= until).collect();
        if found.len() >= most || back <= since {
            let extra = found.len().saturating_sub(most);
            return found.into_iter().skip(extra).collect();
        }
        reach = reach.checked_mul(8).unwrap_or(TimeDelta::MAX);
    }
}

/// The same for the same time on every node, and never as far as the next time: starts keep the order of their times.
fn jitter(timing: &Timing, schedule: ScheduleId, nominal: DateTime<Utc>, next: Option<DateTime<Utc>>) -> TimeDelta {
    let most = i64::from(timing.policies.jitter_seconds) * 1_000;
    let room = next.map_or(most, |next| (next - nominal).num_milliseconds() - 1_000).clamp(0, most);
    let digest = Digest::of(format!("{schedule} {}", nominal.timestamp()).as_bytes());
    let number = digest.0.iter().take(6).fold(0, |number, byte| number << 8 | i64::from(*byte));
    TimeDelta::milliseconds(number % (room + 1))
}
