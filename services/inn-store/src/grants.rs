//! Agents, what they ask for, what people granted, tokens.

mod agents;
mod asking;
mod carry;
mod consent;
mod linked;
mod list;
mod loopback;
pub(crate) mod revocation;
mod rows;
#[cfg(test)]
mod tests;
mod tokens;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_ports::{Consent, Grants, NewAgent, NewGrantRequest, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::grant::{AgentRecord, Grant, GrantRequest, Revocation};
use inn_protocol::register::CallRecord;
use inn_protocol::{AgentId, Digest, GrantId, GrantRequestId, TenantId, UserId};

use crate::PgStore;
pub(crate) use carry::carry;
pub(crate) use rows::agent_id;

#[async_trait]
impl Grants for PgStore {
    async fn register_agent(&self, call: &CallRecord, agent: &NewAgent) -> StoreResult<AgentRecord> {
        agents::register(self, call, agent).await
    }

    async fn agents(&self, tenant: TenantId) -> StoreResult<Vec<AgentRecord>> {
        agents::list(self, tenant).await
    }

    async fn request_grant(&self, call: &CallRecord, request: &NewGrantRequest) -> StoreResult<GrantRequest> {
        asking::ask(self, call, request).await
    }

    async fn grant_request(&self, id: GrantRequestId) -> StoreResult<Option<GrantRequest>> {
        let client = self.client().await?;
        asking::find(&client, id).await
    }

    async fn grant_requests(&self, tenant: TenantId) -> StoreResult<Vec<GrantRequest>> {
        asking::list(self, tenant).await
    }

    async fn approve(&self, call: &CallRecord, request: GrantRequestId, consent: &Consent) -> StoreResult<Grant> {
        consent::approve(self, call, request, consent).await
    }

    async fn refuse(&self, call: &CallRecord, request: GrantRequestId) -> StoreResult<GrantRequest> {
        consent::refuse(self, call, request).await
    }

    async fn loopback_grant_for(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        user: UserId,
        token: Digest,
    ) -> StoreResult<Grant> {
        loopback::grant_for(self, call, app, user, token).await
    }

    async fn grants(&self, tenant: TenantId, user: Option<UserId>, agent: Option<&AgentId>) -> StoreResult<Vec<Grant>> {
        list::grants(self, tenant, user, agent).await
    }

    async fn grant_view(&self, id: GrantId) -> StoreResult<Option<Grant>> {
        let client = self.client().await?;
        list::find(&client, id).await
    }

    async fn revoke(&self, call: &CallRecord, tenant: TenantId, grant: GrantId) -> StoreResult<Revocation> {
        revocation::revoke(self, call, tenant, grant).await
    }

    async fn token_minted(
        &self,
        call: &CallRecord,
        grant: GrantId,
        token: Digest,
        expires: DateTime<Utc>,
    ) -> StoreResult<()> {
        tokens::minted(self, call, grant, token, expires).await
    }
}
