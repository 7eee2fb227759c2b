//! Requests: work an app asks of an agent (DESIGN sections 1 and 7; A2App 0.1 task words on the wire).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, AppId, GrantId, RequestId, TenantId, UserId};

/// Where a request stands. The wire words are those of the A2App task shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestState {
    /// Waiting for a claim.
    Submitted,
    /// Held by an agent under a lease.
    Working,
    Completed,
    /// Ended without a result; the reason says whether attempts ran out.
    Failed,
    Canceled,
}

impl RequestState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Submitted, Self::Working, Self::Completed, Self::Failed, Self::Canceled]
            .into_iter()
            .find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
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
    /// Refused above this many open requests of the app.
    pub max_open: u32,
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
    pub lease_seconds: u32,
    pub lease_until: Option<DateTime<Utc>>,
    pub progress: Option<Progress>,
    pub result: Option<Value>,
    /// Why it failed, was released last, or was canceled.
    pub reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
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
}
