//! People, tenants and roles (DESIGN section 5).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{SessionId, TenantId, UserId};

/// What a member may do in a tenant; each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Also writes records and runs operations.
    Editor,
    /// Also deploys, grants, revokes and manages members.
    Owner,
}

impl Role {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Editor => "editor",
            Self::Owner => "owner",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "viewer" => Some(Self::Viewer),
            "editor" => Some(Self::Editor),
            "owner" => Some(Self::Owner),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Tenant {
    pub id: TenantId,
    pub slug: String,
    pub name: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    pub user: UserId,
    pub email: String,
    pub role: Role,
    pub since: DateTime<Utc>,
}

/// A signed-in session, as the person sees it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: SessionId,
    pub user: UserId,
    pub email: String,
    pub tenant: Tenant,
    pub role: Role,
    pub expires_at: DateTime<Utc>,
}
