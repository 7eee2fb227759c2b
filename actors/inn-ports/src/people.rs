//! Users, tenants, members, sessions. Secrets reach the store as digests or password hashes only.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_protocol::people::{Member, Role, Session, Tenant};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, SessionId, TenantId, UserId};

use crate::error::StoreResult;

/// What sign-in needs to compare a password.
#[derive(Debug, Clone)]
pub struct UserSecret {
    pub user: UserId,
    pub email: String,
    /// argon2id, PHC string.
    pub password: String,
    /// Tenants the person is a member of, oldest first.
    pub tenants: Vec<Tenant>,
}

#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    pub user: UserId,
    pub tenant: TenantId,
    pub token: Digest,
    /// Bound to one app's origin.
    pub app: Option<AppId>,
    pub lifetime: chrono::Duration,
}

#[async_trait]
pub trait People: Send + Sync {
    /// Creates tenant, user and ownership when the platform is empty. `false` when it was not.
    async fn found(&self, tenant: &Tenant, user: UserId, email: &str, password: &str) -> StoreResult<bool>;
    /// By email, ignoring ASCII case.
    async fn user_secret(&self, email: &str) -> StoreResult<Option<UserSecret>>;
    async fn user_secret_by_id(&self, user: UserId) -> StoreResult<Option<UserSecret>>;
    async fn open_session(&self, call: &CallRecord, session: &NewSession) -> StoreResult<Session>;
    async fn end_session(&self, call: &CallRecord, session: SessionId) -> StoreResult<Receipt>;
    /// Ends every session of the person; answers how many.
    async fn end_sessions(&self, call: &CallRecord, user: UserId) -> StoreResult<u64>;
    async fn session_view(&self, session: SessionId) -> StoreResult<Option<Session>>;
    /// Another tenant of the same person becomes the session's tenant.
    async fn switch_tenant(&self, call: &CallRecord, session: SessionId, tenant: TenantId) -> StoreResult<Session>;
    /// Marks the password as just given.
    async fn refresh_session(&self, call: &CallRecord, session: SessionId) -> StoreResult<()>;
    /// Keeps the digest of a one-time code that hands a person over to an app's origin within a minute.
    async fn open_handoff(&self, call: &CallRecord, code: Digest, session: SessionId, app: AppId) -> StoreResult<()>;
    /// Takes the code (once) and opens a session on the app's origin. `None` when it was used, expired, or for another app.
    async fn take_handoff(
        &self,
        call: &CallRecord,
        code: Digest,
        app: AppId,
        session: SessionId,
        token: Digest,
    ) -> StoreResult<Option<Session>>;
    async fn create_tenant(&self, call: &CallRecord, tenant: &Tenant, owner: UserId) -> StoreResult<Receipt>;
    async fn tenants_of(&self, user: UserId) -> StoreResult<Vec<(Tenant, Role)>>;
    async fn members(&self, tenant: TenantId) -> StoreResult<Vec<Member>>;
    /// Adds the person (a new user when the email is unknown; then `password` is set) or changes the role.
    /// The last owner cannot be lowered.
    async fn set_member(
        &self,
        call: &CallRecord,
        tenant: TenantId,
        email: &str,
        password: Option<&str>,
        role: Role,
    ) -> StoreResult<Receipt>;
    /// Takes the membership away; every grant of the person in the tenant is revoked. The last owner stays.
    async fn remove_member(&self, call: &CallRecord, tenant: TenantId, user: UserId) -> StoreResult<Receipt>;
    /// New password; every session of the person but `keep` ends.
    async fn set_password(
        &self,
        call: &CallRecord,
        user: UserId,
        password: &str,
        keep: Option<SessionId>,
    ) -> StoreResult<()>;
    async fn password_changed_at(&self, user: UserId) -> StoreResult<Option<DateTime<Utc>>>;
}
