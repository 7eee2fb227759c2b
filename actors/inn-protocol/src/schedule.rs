//! Schedules: what recurs, in whose name, and what becomes of each of its times (DESIGN section 7).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AppId, GrantId, ScheduleId, TenantId, UserId};

/// What happens to a time the clock jumps over in spring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gap {
    /// It fires at the first moment after the jump.
    #[default]
    Shift,
    /// It does not fire that day.
    Skip,
}

/// What happens to a time the clock shows twice in autumn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    #[default]
    First,
    Last,
    Both,
}

/// What is made up for after the platform was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missed {
    None,
    /// The newest time that was missed, once.
    #[default]
    Last,
    /// Up to [`Policies::missed_most`] of them, oldest first.
    All,
}

/// What happens when a time comes and the run before is still going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Busy {
    #[default]
    Skip,
    /// It waits for the end of the run before.
    Queue,
    /// The run before is taken back. What is committed by then stays.
    Replace,
}

/// How a schedule takes clock changes, outages and runs that last longer than the time between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Policies {
    pub gap: Gap,
    pub overlap: Overlap,
    pub missed: Missed,
    /// With [`Missed::All`]: how many times are made up for, 1 to [`MISSED_MOST`].
    pub missed_most: u32,
    /// What was missed longer ago than this is not made up for; 60 to [`WINDOW_MOST`] seconds.
    pub missed_window_seconds: u32,
    pub busy: Busy,
    /// Starts are spread over so many seconds, always the same one for the same time; 0 to [`JITTER_MOST`].
    pub jitter_seconds: u32,
    /// Tries of one firing, when what failed may pass by itself; 1 to [`ATTEMPTS_MOST`].
    pub attempts: u32,
}

/// Most missed times that are made up for.
pub const MISSED_MOST: u32 = 100;
/// Seven days.
pub const WINDOW_MOST: u32 = 604_800;
/// An hour.
pub const JITTER_MOST: u32 = 3_600;
pub const ATTEMPTS_MOST: u32 = 10;

impl Default for Policies {
    fn default() -> Self {
        Self {
            gap: Gap::default(),
            overlap: Overlap::default(),
            missed: Missed::default(),
            missed_most: 10,
            missed_window_seconds: 86_400,
            busy: Busy::default(),
            jitter_seconds: 0,
            attempts: 3,
        }
    }
}

/// What a schedule does each time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Errand {
    /// Runs an operation of the app.
    Operation {
        operation: String,
        #[serde(default)]
        params: serde_json::Map<String, Value>,
    },
    /// Asks an agent for work: the firing lasts until the request has ended.
    Ask {
        capability: String,
        #[serde(default)]
        payload: Value,
    },
}

impl Errand {
    /// The operation or capability.
    pub fn target(&self) -> &str {
        match self {
            Self::Operation { operation, .. } => operation,
            Self::Ask { capability, .. } => capability,
        }
    }
}

/// Who made a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The app's release declares it; it ends with the release that no longer does.
    Manifest,
    Owner,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Owner => "owner",
        }
    }
}

/// A schedule to be made by an owner; checked by `inn_rules::schedules`.
#[derive(Debug, Clone)]
pub struct NewSchedule {
    pub id: ScheduleId,
    pub name: String,
    pub errand: Errand,
    /// Whose permission it runs under.
    pub person: UserId,
    /// It runs within this grant of that person as well.
    pub grant: Option<GrantId>,
    pub cadence: String,
    /// IANA name.
    pub zone: String,
    pub policies: Policies,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    pub id: ScheduleId,
    pub tenant: TenantId,
    pub app: AppId,
    pub app_slug: String,
    pub name: String,
    pub source: Source,
    pub errand: Errand,
    pub person: UserId,
    pub person_email: String,
    pub grant: Option<GrantId>,
    pub cadence: String,
    pub zone: String,
    pub policies: Policies,
    /// `None` while it is paused, and when it has no time left.
    pub next_at: Option<DateTime<Utc>>,
    pub paused_at: Option<DateTime<Utc>>,
    /// Why the newest run failed; `None` when it did not.
    pub problem: Option<String>,
    /// The newest time that came to an end.
    pub last_at: Option<DateTime<Utc>>,
    pub last_state: Option<FiringState>,
    /// Moves on with every change.
    pub revision: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Where one firing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FiringState {
    /// Its time has come; it waits for a node, its jitter, another try or the run before.
    Due,
    Started,
    Done,
    Failed,
    /// Nothing was run, and the reason says why.
    Skipped,
    /// Taken back for the one after it.
    Replaced,
}

impl FiringState {
    pub const ALL: [Self; 6] = [Self::Due, Self::Started, Self::Done, Self::Failed, Self::Skipped, Self::Replaced];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Started => "started",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Replaced => "replaced",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Due | Self::Started)
    }
}

/// One time of a schedule and what became of it. There is at most one for each (schedule, nominal time).
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Firing {
    /// The time the schedule says, without jitter.
    pub nominal_at: DateTime<Utc>,
    /// Not before this.
    pub start_at: DateTime<Utc>,
    /// Times from this one up to `nominal_at` were passed over: nothing ran then.
    pub missed_from: Option<DateTime<Utc>>,
    pub state: FiringState,
    pub attempt: u32,
    pub reason: Option<String>,
    /// The request it asked with; the call's id for an operation.
    pub run: uuid::Uuid,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}
