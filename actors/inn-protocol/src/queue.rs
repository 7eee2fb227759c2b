//! How the queue is shared out: weights and caps, set by people, in force at once.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{AppId, TenantId};

/// What a limit is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// The tenant among tenants.
    Tenant,
    App,
    Capability,
    /// Who asked: a member, or a visitor or app user by name.
    Person,
    Agent,
}

impl LimitKind {
    pub const ALL: [Self; 5] = [Self::Tenant, Self::App, Self::Capability, Self::Person, Self::Agent];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::App => "app",
            Self::Capability => "capability",
            Self::Person => "person",
            Self::Agent => "agent",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// One weight or cap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueLimit {
    pub tenant: TenantId,
    pub kind: LimitKind,
    /// Of an app or a capability.
    pub app: Option<AppId>,
    /// The capability, the person's lane or the agent; empty for a tenant or an app.
    pub subject: String,
    /// 1 to 100: how often it is served among its like.
    pub weight: u32,
    /// Requests held at one time; `None` for any number, 0 for none at all.
    pub most: Option<u32>,
    pub updated_at: DateTime<Utc>,
}

impl QueueLimit {
    pub const MOST_WEIGHT: u32 = 100;
    /// Highest cap that can be set.
    pub const MOST: u32 = 100_000;
}
