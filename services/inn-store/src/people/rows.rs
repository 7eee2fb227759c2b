//! Rows to the words of the protocol.

use inn_ports::StoreResult;
use inn_protocol::people::{Role, Session, Tenant};
use inn_protocol::{SessionId, TenantId, UserId};
use tokio_postgres::Row;

use super::sql::{column, unreadable};

pub(crate) fn role(row: &Row) -> StoreResult<Role> {
    let text: &str = column(row, "role")?;
    Role::parse(text).ok_or_else(|| unreadable("role", text))
}

pub(super) fn tenant(row: &Row) -> StoreResult<Tenant> {
    Ok(Tenant {
        id: TenantId::from_uuid(column(row, "tenant")?),
        slug: column(row, "tenant_slug")?,
        name: column(row, "tenant_name")?,
    })
}

pub(super) fn session(row: &Row) -> StoreResult<Session> {
    Ok(Session {
        id: SessionId::from_uuid(column(row, "id")?),
        user: UserId::from_uuid(column(row, "user_id")?),
        email: column(row, "email")?,
        tenant: tenant(row)?,
        role: role(row)?,
        expires_at: column(row, "expires_at")?,
    })
}
