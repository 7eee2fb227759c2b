//! Transitions of one firing. Pure: what the row says now, what happens, and the time, give the next row.
//!
//! A firing is *due* until a node starts it, *started* while it runs, and ends once. Every start has a higher epoch, so an
//! end that a slow node brings late does not count. Every row that has not ended has a moment at which somebody looks at
//! it again (`look_at`).

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::schedule::{Busy, FiringState};

/// A run that has not ended by then was on a node that died; another one starts it again.
const LEASE: TimeDelta = TimeDelta::seconds(60);
/// A request ends within this time in any case: agents have seven days.
const REQUEST: TimeDelta = TimeDelta::days(8);
/// How soon the end of the run before is looked for, when nobody tells.
const WAIT: TimeDelta = TimeDelta::seconds(5);
/// Longest wait before another try, in seconds.
const MAX_BACK_OFF: i64 = 300;
/// Firings of one schedule that wait for their turn; what comes on top is skipped.
pub const MAX_WAITING: i64 = 100;
/// Longest reason kept, in characters; the rest is cut.
const MAX_REASON: usize = 500;

/// What must be known of a firing to decide a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub state: FiringState,
    pub epoch: i64,
    /// Starts so far.
    pub attempt: u32,
    pub attempts: u32,
    pub start_at: DateTime<Utc>,
    pub look_at: DateTime<Utc>,
    /// It lasts as long as what it asked for.
    pub asked: bool,
}

/// The row after the transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub state: FiringState,
    pub epoch: i64,
    pub attempt: u32,
    pub look_at: DateTime<Utc>,
    /// A request is in the queue; the firing ends with it.
    pub asked: bool,
    pub reason: Option<String>,
}

impl Change {
    fn keep(current: &Facts, state: FiringState, reason: Option<String>) -> Self {
        let Facts { epoch, attempt, look_at, .. } = *current;
        Self { state, epoch, attempt, look_at, asked: false, reason }
    }

    fn due(current: &Facts, look_at: DateTime<Utc>, reason: Option<String>) -> Self {
        Self { look_at, ..Self::keep(current, FiringState::Due, reason) }
    }
}

/// The run of the same schedule that has started and not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ahead {
    pub started_at: DateTime<Utc>,
    pub kind: AheadKind,
}

/// Whether it can be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AheadKind {
    /// A node is at it and will be done, or dead, within a minute. What it commits cannot be taken back.
    Operation,
    /// A request that agents work at: it can be canceled.
    Request,
}

/// What a node does with a due firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Begin {
    /// Runs it.
    Start(Change),
    /// Ends the run before as [`FiringState::Replaced`], then runs this one.
    Replace(Change),
    /// Nothing yet.
    Wait(Change),
    Skip(Change),
}

/// Decides about the oldest due firing of a schedule. `None` when it is not due, or not yet.
///
/// Only a run that was going on when this firing's time came makes it one too many. Those that were missed and are made up
/// for wait for each other, whatever the policy for runs that last too long.
pub fn begin(current: &Facts, ahead: Option<Ahead>, busy: Busy, now: DateTime<Utc>) -> Option<Begin> {
    if current.state != FiringState::Due || current.start_at > now || current.look_at > now {
        return None;
    }
    let start = || Change {
        state: FiringState::Started,
        epoch: current.epoch.saturating_add(1),
        attempt: current.attempt.saturating_add(1),
        look_at: now + LEASE,
        asked: false,
        reason: None,
    };
    let wait = || Begin::Wait(Change::due(current, now + WAIT, None));
    Some(match ahead {
        None => Begin::Start(start()),
        Some(ahead) if ahead.started_at > current.start_at => wait(),
        Some(ahead) => match (busy, ahead.kind) {
            // A second try of its own is no new time.
            (Busy::Skip, _) if current.attempt > 0 => wait(),
            (Busy::Skip, _) => {
                let reason = "still_running: the run before had not ended".to_owned();
                Begin::Skip(Change::keep(current, FiringState::Skipped, Some(reason)))
            }
            (Busy::Queue, _) | (Busy::Replace, AheadKind::Operation) => wait(),
            (Busy::Replace, AheadKind::Request) => Begin::Replace(start()),
        },
    })
}

/// How a run came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    Done,
    /// The request is in the queue: the firing lasts as long as that.
    Asked,
    /// A refusal that would come again.
    Failed(String),
    /// Nothing was done, or nobody knows; the same key makes another try safe.
    Again(String),
    /// The one after it took its place.
    Replaced,
}

/// Ends a started firing, or makes it due again. `None` when it was started again since, or has ended: the news is old.
pub fn settle(current: &Facts, epoch: i64, how: Settled, now: DateTime<Utc>) -> Option<Change> {
    if current.state != FiringState::Started || current.epoch != epoch {
        return None;
    }
    Some(match how {
        Settled::Done => Change::keep(current, FiringState::Done, None),
        Settled::Asked => {
            let started = Change::keep(current, FiringState::Started, None);
            Change { look_at: now + REQUEST, asked: true, ..started }
        }
        Settled::Failed(reason) => Change::keep(current, FiringState::Failed, Some(cut(&reason))),
        Settled::Replaced => {
            let reason = "replaced: the next time came before it had ended".to_owned();
            Change::keep(current, FiringState::Replaced, Some(reason))
        }
        Settled::Again(reason) => again(current, &reason, now),
    })
}

/// A started firing whose node is gone. `None` when there is nothing to expire. What it asked for is never asked twice.
pub fn expire(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    if current.state != FiringState::Started || current.look_at > now {
        return None;
    }
    if current.asked {
        let reason = "not_ended: what it asked for did not come to an end".to_owned();
        return Some(Change::keep(current, FiringState::Failed, Some(reason)));
    }
    Some(again(current, "node_lost: the node that ran it went away", now))
}

/// Paused or deleted: what has not started does not start. `None` when it has.
pub fn withdraw(current: &Facts, reason: &str) -> Option<Change> {
    (current.state == FiringState::Due).then(|| Change::keep(current, FiringState::Skipped, Some(cut(reason))))
}

fn again(current: &Facts, reason: &str, now: DateTime<Utc>) -> Change {
    if current.attempt >= current.attempts {
        let reason = cut(&format!("attempts_exhausted: {reason}"));
        return Change::keep(current, FiringState::Failed, Some(reason));
    }
    let wait = TimeDelta::seconds(back_off(current.attempt));
    Change::due(current, now + wait, Some(cut(reason)))
}

/// Seconds before the next try: 2, 4, 8 … 300.
fn back_off(attempt: u32) -> i64 {
    2_i64.checked_pow(attempt).map_or(MAX_BACK_OFF, |seconds| seconds.min(MAX_BACK_OFF))
}

fn cut(reason: &str) -> String {
    if reason.chars().count() <= MAX_REASON {
        return reason.to_owned();
    }
    reason.chars().take(MAX_REASON - 1).chain(['…']).collect()
}
