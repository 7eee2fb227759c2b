//! Snapshots the gateway decides from. Loaded on a cache miss; their epochs are checked again at every commit.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_grants::PublicKey;
use inn_protocol::app::AppSnapshot;
use inn_protocol::caller::{Agent, Via};
use inn_protocol::people::Role;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, GrantId, SessionId, TenantId, UserId};
use serde_json::{Map, Value};

use crate::error::StoreResult;
use crate::files::FileTokenState;

#[derive(Debug, Clone)]
pub struct AgentState {
    pub agent: AgentId,
    /// Ready to verify with, so that no call pays for decoding it.
    pub public_key: PublicKey,
}

#[derive(Debug, Clone)]
pub struct GrantState {
    pub grant: GrantId,
    pub epoch: i64,
    pub agent: AgentId,
    pub user: UserId,
    pub tenant: TenantId,
    pub app: AppId,
    pub scopes: Arc<BTreeSet<Scope>>,
    pub others_requests: bool,
    pub plain_token: bool,
    pub loopback: bool,
    pub app_record: Option<String>,
    pub revoked: bool,
}

impl GrantState {
    /// The agent of this grant as a caller, acting for its person as that person is now.
    pub fn agent(
        &self,
        member: &MemberState,
        scopes: Arc<BTreeSet<Scope>>,
        helper: Option<AgentId>,
        via: Via,
    ) -> Agent {
        Agent {
            agent: self.agent.clone(),
            helper,
            grant: self.grant,
            grant_epoch: self.epoch,
            app: self.app,
            user: self.user,
            tenant: self.tenant,
            role: member.role,
            member_epoch: member.epoch,
            scopes,
            app_record: self.app_record.clone(),
            via,
        }
    }
}

#[derive(Debug, Clone)]
pub struct MemberState {
    pub tenant: TenantId,
    pub user: UserId,
    pub email: Arc<str>,
    pub role: Role,
    pub epoch: i64,
}

#[derive(Debug, Clone)]
pub struct SessionState {
    pub session: SessionId,
    pub user: UserId,
    pub tenant: TenantId,
    /// The session lives on one app's origin only (handed over by one-time code).
    pub app: Option<AppId>,
    /// When the password was given last.
    pub authenticated_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
}

#[async_trait]
pub trait Directory: Send + Sync {
    async fn app_by_slug(&self, slug: &str) -> StoreResult<Option<Arc<AppSnapshot>>>;
    async fn app_by_id(&self, app: AppId) -> StoreResult<Option<Arc<AppSnapshot>>>;
    async fn agent(&self, agent: &AgentId) -> StoreResult<Option<Arc<AgentState>>>;
    async fn grant(&self, grant: GrantId) -> StoreResult<Option<Arc<GrantState>>>;
    /// The loopback grant whose agent token file has this digest.
    async fn loopback_grant(&self, token: Digest) -> StoreResult<Option<Arc<GrantState>>>;
    /// Live grants of an agent that carry `queue:` scopes.
    async fn queue_grants(&self, agent: &AgentId) -> StoreResult<Vec<Arc<GrantState>>>;
    async fn member(&self, tenant: TenantId, user: UserId) -> StoreResult<Option<Arc<MemberState>>>;
    /// A session that has neither ended nor expired, by the digest of its token.
    async fn session(&self, token: Digest) -> StoreResult<Option<Arc<SessionState>>>;
    /// What a token for files stands for, by its digest; `None` when it has run out or what it stood for has ended.
    async fn file_token(&self, token: Digest) -> StoreResult<Option<FileTokenState>>;
    /// The record of the app's own auth collection a grant is linked to.
    async fn app_record(&self, app: &AppSnapshot, id: &str) -> StoreResult<Option<Map<String, Value>>>;
    /// Database time, for the clock offset.
    async fn database_now(&self) -> StoreResult<DateTime<Utc>>;
}
