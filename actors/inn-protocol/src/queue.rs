//! How the queue is shared out: weights and caps, set by people, in force at once.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::AppId;

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

/// One weight or cap, as it is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QueueLimit {
    pub kind: LimitKind,
    /// Of an app or a capability.
    pub app: Option<AppId>,
    pub app_slug: Option<String>,
    /// The capability, the requester's lane or the agent; empty for a tenant or an app.
    pub subject: String,
    /// The subject for people: an e-mail address, a name, the tenant's slug.
    pub name: Option<String>,
    /// 1 to 100: how often it is served among its like.
    pub weight: u32,
    /// Requests held at one time; `None` for any number, 0 for none at all.
    pub most: Option<u32>,
    pub updated_at: DateTime<Utc>,
}

/// A weight or cap to be set. Weight 1 and no cap is what everything has from the beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLimit {
    pub kind: LimitKind,
    /// Of an app or a capability.
    pub app: Option<AppId>,
    /// A tenant's slug, a capability's name, a person's e-mail address or name, an agent's id; empty for an app.
    pub subject: String,
    pub weight: u32,
    pub most: Option<u32>,
}

impl NewLimit {
    /// Highest weight.
    pub const MOST_WEIGHT: u32 = 100;
    /// Highest cap.
    pub const HIGHEST_CAP: u32 = 100_000;

    pub fn is_default(&self) -> bool {
        self.weight == 1 && self.most.is_none()
    }
}
