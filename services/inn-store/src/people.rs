//! Users, tenants, members, sessions, hand-offs. Secrets arrive here as digests or password hashes only.

#[cfg(test)]
pub(crate) mod fixture;
mod handoffs;
mod members;
mod passwords;
mod rows;
mod sessions;
pub(crate) mod sql;
mod tenants;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_ports::{NewSession, People, StoreResult, UserSecret};
use inn_protocol::people::{Member, Role, Session, Tenant};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, SessionId, TenantId, UserId};

use crate::PgStore;
pub(crate) use rows::role;

#[async_trait]
impl People for PgStore {
    async fn found(&self, tenant: &Tenant, user: UserId, email: &str, password: &str) -> StoreResult<bool> {
        tenants::found(self, tenant, user, email, password).await
    }

    async fn user_secret(&self, email: &str) -> StoreResult<Option<UserSecret>> {
        passwords::secret(self, passwords::Who::Email(email)).await
    }

    async fn user_secret_by_id(&self, user: UserId) -> StoreResult<Option<UserSecret>> {
        passwords::secret(self, passwords::Who::Id(user)).await
    }

    async fn open_session(&self, call: &CallRecord, session: &NewSession) -> StoreResult<Session> {
        sessions::open(self, call, session).await
    }

    async fn end_session(&self, call: &CallRecord, session: SessionId) -> StoreResult<Receipt> {
        sessions::end(self, call, session).await
    }

    async fn end_sessions(&self, call: &CallRecord, user: UserId) -> StoreResult<u64> {
        sessions::end_all(self, call, user).await
    }

    async fn session_view(&self, session: SessionId) -> StoreResult<Option<Session>> {
        let client = self.client().await?;
        sessions::live(&client, session).await
    }

    async fn switch_tenant(&self, call: &CallRecord, session: SessionId, tenant: TenantId) -> StoreResult<Session> {
        sessions::switch(self, call, session, tenant).await
    }

    async fn refresh_session(&self, call: &CallRecord, session: SessionId) -> StoreResult<()> {
        sessions::refresh(self, call, session).await
    }

    async fn open_handoff(&self, call: &CallRecord, code: Digest, session: SessionId, app: AppId) -> StoreResult<()> {
        handoffs::open(self, call, code, session, app).await
    }

    async fn take_handoff(
        &self,
        call: &CallRecord,
        code: Digest,
        app: AppId,
        session: SessionId,
        token: Digest,
    ) -> StoreResult<Option<Session>> {
        handoffs::take(self, call, code, app, session, token).await
    }

    async fn create_tenant(&self, call: &CallRecord, tenant: &Tenant, owner: UserId) -> StoreResult<Receipt> {
        tenants::create(self, call, tenant, owner).await
    }

    async fn tenants_of(&self, user: UserId) -> StoreResult<Vec<(Tenant, Role)>> {
        let client = self.client().await?;
        tenants::of(&client, user).await
    }

    async fn members(&self, tenant: TenantId) -> StoreResult<Vec<Member>> {
        members::list(self, tenant).await
    }

    async fn set_member(
        &self,
        call: &CallRecord,
        tenant: TenantId,
        email: &str,
        password: Option<&str>,
        role: Role,
    ) -> StoreResult<Receipt> {
        members::set(self, call, tenant, email, password, role).await
    }

    async fn remove_member(&self, call: &CallRecord, tenant: TenantId, user: UserId) -> StoreResult<Receipt> {
        members::remove(self, call, tenant, user).await
    }

    async fn set_password(
        &self,
        call: &CallRecord,
        user: UserId,
        password: &str,
        keep: Option<SessionId>,
    ) -> StoreResult<()> {
        passwords::set(self, call, user, password, keep).await
    }

    async fn password_changed_at(&self, user: UserId) -> StoreResult<Option<DateTime<Utc>>> {
        passwords::changed_at(self, user).await
    }
}
