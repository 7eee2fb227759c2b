//! Agents, grant requests, grants, tokens.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_protocol::app::AppSnapshot;
use inn_protocol::grant::{AgentRecord, Grant, GrantRequest, Revocation};
use inn_protocol::register::CallRecord;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, GrantId, GrantRequestId, TenantId, UserId};

use crate::error::StoreResult;

#[derive(Debug, Clone)]
pub struct NewAgent {
    pub id: AgentId,
    pub public_key: [u8; 32],
    pub name: String,
}

#[derive(Debug, Clone)]
pub struct NewGrantRequest {
    pub id: GrantRequestId,
    pub app: AppId,
    pub tenant: TenantId,
    pub agent: AgentId,
    pub code: String,
    pub scopes: BTreeSet<Scope>,
    pub reason: String,
    pub lifetime: chrono::Duration,
}

/// A person's yes, to all or part of what was asked.
#[derive(Debug, Clone)]
pub struct Consent {
    pub grant: GrantId,
    pub user: UserId,
    /// Subset of the request's scopes.
    pub scopes: BTreeSet<Scope>,
    pub others_requests: bool,
    pub plain_token: bool,
    pub app_record: Option<String>,
    /// The person has shown a token of that record: it is theirs.
    pub record_proved: bool,
}

#[async_trait]
pub trait Grants: Send + Sync {
    /// Registering a key again changes its name only.
    async fn register_agent(&self, call: &CallRecord, agent: &NewAgent) -> StoreResult<AgentRecord>;
    async fn agents(&self, tenant: TenantId) -> StoreResult<Vec<AgentRecord>>;
    /// At most 20 pending requests per agent and app.
    async fn request_grant(&self, call: &CallRecord, request: &NewGrantRequest) -> StoreResult<GrantRequest>;
    async fn grant_request(&self, id: GrantRequestId) -> StoreResult<Option<GrantRequest>>;
    async fn grant_requests(&self, tenant: TenantId) -> StoreResult<Vec<GrantRequest>>;
    async fn approve(&self, call: &CallRecord, request: GrantRequestId, consent: &Consent) -> StoreResult<Grant>;
    async fn refuse(&self, call: &CallRecord, request: GrantRequestId) -> StoreResult<GrantRequest>;
    /// Creates (or finds) the loopback grant of an app for its owner and sets the digest of its token.
    async fn loopback_grant_for(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        user: UserId,
        token: Digest,
    ) -> StoreResult<Grant>;
    async fn grants(&self, tenant: TenantId, user: Option<UserId>, agent: Option<&AgentId>) -> StoreResult<Vec<Grant>>;
    async fn grant_view(&self, id: GrantId) -> StoreResult<Option<Grant>>;
    /// Revokes, fences its claims (the requests go back to the queue) and counts what it stopped.
    async fn revoke(&self, call: &CallRecord, tenant: TenantId, grant: GrantId) -> StoreResult<Revocation>;
    /// Remembers that a token was minted, so that revocation can count and list it.
    async fn token_minted(
        &self,
        call: &CallRecord,
        grant: GrantId,
        token: Digest,
        expires: DateTime<Utc>,
    ) -> StoreResult<()>;
}
