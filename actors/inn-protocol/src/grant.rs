//! Agents, grant requests and grants (DESIGN section 5).

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::ids::{AgentId, AppId, GrantId, GrantRequestId, TenantId, UserId};
use crate::scope::Scope;

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentRecord {
    pub id: AgentId,
    /// A name the agent gives itself: shown as claimed.
    pub name: String,
    /// Base64url of the Ed25519 public key.
    pub public_key: String,
    pub registered_at: DateTime<Utc>,
}

/// Somebody's wish to act for somebody on an app. Bound to its link and short code, not to the agent's claimed name.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantRequest {
    pub id: GrantRequestId,
    pub app: AppId,
    pub app_slug: String,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub agent_name: String,
    /// Shown by the agent to its person and compared on the consent page.
    pub code: String,
    pub scopes: BTreeSet<Scope>,
    pub reason: String,
    pub status: GrantRequestStatus,
    pub grant: Option<GrantId>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GrantRequestStatus {
    Pending,
    Approved,
    Refused,
    Expired,
}

/// One agent, one app, one person, scopes.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub id: GrantId,
    pub tenant: TenantId,
    pub app: AppId,
    pub app_slug: String,
    pub agent: AgentId,
    pub agent_name: String,
    pub user: UserId,
    pub user_email: String,
    pub scopes: BTreeSet<Scope>,
    /// May claim requests of other members and app users too (a separate line of the consent).
    pub others_requests: bool,
    /// A token may be used without signature. Shown as less safe.
    pub plain_token: bool,
    /// The app's loopback agent token is this grant's credential.
    pub loopback: bool,
    pub app_record: Option<String>,
    pub epoch: i64,
    pub created_at: DateTime<Utc>,
    pub revoked_at: Option<DateTime<Utc>>,
}

/// What one revocation stopped.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Revocation {
    pub grant: GrantId,
    pub revoked_at: DateTime<Utc>,
    /// Claims that were fenced; the requests went back to the queue.
    pub claims_fenced: i64,
    /// Unexpired tokens that stopped working.
    pub tokens_ended: i64,
}
