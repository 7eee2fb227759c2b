//! Requests: work an app asks of an agent (DESIGN sections 1 and 7; A2App 0.1 task words on the wire).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, AppId, Digest, GrantId, RequestId, TenantId, UserId};
use crate::job::NewJob;

/// Where a request stands. The wire words are those of the A2App task shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestState {
    /// Waiting for a claim.
    Submitted,
    /// Held by an agent under a lease.
    Working,
    /// Held by an agent that has asked its requester something and waits for the answer.
    InputRequired,
    Completed,
    /// Ended without a result, a dead letter: the reason says why, and it can be replayed.
    Failed,
    Canceled,
}

impl RequestState {
    pub const ALL: [Self; 6] =
        [Self::Submitted, Self::Working, Self::InputRequired, Self::Completed, Self::Failed, Self::Canceled];
    /// The words of [`Self::ALL`], for people who named another one.
    pub const WORDS: &str = "submitted, working, input-required, completed, failed, canceled";

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::InputRequired => "input-required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// Some agent has it.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Working | Self::InputRequired)
    }
}

/// A request to be put into the queue.
#[derive(Debug, Clone)]
pub struct NewRequest {
    pub id: RequestId,
    pub capability: String,
    pub payload: Value,
    /// The member who asked; `None` for a visitor or a user of the app's own.
    pub requester: Option<UserId>,
    /// Who asked, in words shown to the agent's owner.
    pub requester_label: String,
    pub lease_seconds: u32,
    pub attempts: u32,
    /// Seconds one attempt may take, however often its lease is renewed.
    pub hard_seconds: u32,
    /// 1 (first) to 5 (last), among the requests of one requester.
    pub priority: u8,
    /// The ended request this one does again.
    pub replay_of: Option<RequestId>,
    /// Of several with the same key only one waits, or is worked on.
    pub unique: Option<Unique>,
    /// The job that this request carries out, made together with it. Such a request never joins another one.
    pub job: Option<NewJob>,
    /// Refused above this many open requests of the app.
    pub max_open: u32,
}

/// What identical requests do to each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unique {
    pub mode: UniqueMode,
    /// The same for identical requests of one capability.
    pub key: Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UniqueMode {
    /// At most one waits: another one joins it.
    Queued,
    /// At most one is worked on: the others wait for it.
    Running,
    /// At most one waits while at most one is worked on.
    Both,
}

impl UniqueMode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Both => "both",
        }
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueRequest {
    pub id: RequestId,
    pub tenant: TenantId,
    pub app: AppId,
    pub app_slug: String,
    pub capability: String,
    pub payload: Value,
    pub state: RequestState,
    pub requester: Option<UserId>,
    pub requester_label: String,
    /// Claims so far.
    pub attempt: u32,
    pub attempts: u32,
    /// Fences late answers: every claim has a higher one.
    pub epoch: i64,
    pub holder: Option<AgentId>,
    /// Whether the holder has spoken since it claimed. Until then its lease is a short one.
    pub acknowledged: bool,
    pub lease_seconds: u32,
    /// The holder must have spoken by then; while the request waits for an answer, when it is given up.
    pub lease_until: Option<DateTime<Utc>>,
    /// The attempt ends here, however often its lease is renewed.
    pub hard_until: Option<DateTime<Utc>>,
    pub hard_seconds: u32,
    pub priority: u8,
    pub progress: Option<Progress>,
    pub result: Option<Value>,
    /// Why it failed, was released last, or was canceled.
    pub reason: Option<String>,
    /// What holders asked and what they were told, oldest first.
    pub questions: Vec<Question>,
    /// Attempts that ended without a result, oldest first; the last [`QueueRequest::MOST_PAST`].
    pub past_attempts: Vec<PastAttempt>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay_of: Option<RequestId>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl QueueRequest {
    /// Past attempts that are kept.
    pub const MOST_PAST: usize = 32;
    /// Questions one request may have.
    pub const MOST_QUESTIONS: usize = 20;
}

/// Asked of the requester by a holder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// At most 2,000 characters.
    pub question: String,
    pub asked_at: DateTime<Utc>,
    /// JSON, at most 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Who answered, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at: Option<DateTime<Utc>>,
}

/// An attempt that ended without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastAttempt {
    pub attempt: u32,
    pub epoch: i64,
    pub agent: AgentId,
    pub ended_at: DateTime<Utc>,
    pub how: AttemptEnd,
    /// In the words of whoever ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How an attempt ended that brought no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptEnd {
    /// The holder said so.
    Failed,
    /// The holder gave it back undone.
    Released,
    /// The holder never spoke after it had claimed.
    NotAcknowledged,
    /// The holder fell silent.
    LeaseLost,
    /// It took longer than one attempt may.
    OutOfTime,
    /// Nobody answered the holder's question in time.
    NotAnswered,
    GrantRevoked,
    /// A member of the tenant took it away from its holder.
    TakenBack,
}

impl AttemptEnd {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Released => "released",
            Self::NotAcknowledged => "not_acknowledged",
            Self::LeaseLost => "lease_lost",
            Self::OutOfTime => "out_of_time",
            Self::NotAnswered => "not_answered",
            Self::GrantRevoked => "grant_revoked",
            Self::TakenBack => "taken_back",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// One line for people, at most 200 characters.
    pub step: String,
    /// 0 to 100.
    pub percent: u8,
}

/// What an agent may claim: its live grants with `queue:` scopes, narrowed by what it asked for.
#[derive(Debug, Clone)]
pub struct ClaimOffer {
    pub tenant: TenantId,
    pub app: AppId,
    pub capability: String,
    pub grant: GrantId,
    pub grant_epoch: i64,
    /// Only requests of this person, unless `others` was consented to.
    pub user: UserId,
    pub others: bool,
}

/// What the holder of a claim does with it.
#[derive(Debug, Clone)]
pub enum HoldCommand {
    Heartbeat,
    Progress(Progress),
    /// The result has been checked against the capability's schema.
    Complete(Value),
    /// Another attempt, or the end when attempts ran out.
    Fail {
        reason: String,
    },
    /// Back to the queue without counting the attempt.
    Release {
        reason: String,
    },
    /// A question to the requester. The claim stays with its holder until the answer comes.
    Ask {
        question: String,
    },
}

/// One result of many.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    pub request: RequestId,
    pub epoch: i64,
    pub result: Value,
}

impl Completion {
    /// Results of one call.
    pub const MOST: usize = 100;
}

/// What a member of the tenant does with a request, over its holder's head or for it.
#[derive(Debug, Clone)]
pub enum OperateCommand {
    /// Back to the queue at once; the attempt does not count.
    Release { reason: String },
    /// The end, as a dead letter.
    Fail { reason: String },
    /// The answer to the holder's question. By whoever asked for the work.
    Answer { answer: Value, by: String },
}

/// Which open requests of an app are canceled at once. `None` is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CancelFilter {
    pub capability: Option<String>,
    pub state: Option<RequestState>,
    /// Asked at least so many seconds ago.
    pub older_than_seconds: Option<u32>,
}
