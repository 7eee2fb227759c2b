//! Rows to the words of the protocol.

use std::collections::BTreeSet;

use inn_ports::StoreResult;
use inn_protocol::grant::{AgentRecord, Grant, GrantRequest, GrantRequestStatus};
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, GrantId, GrantRequestId, TenantId, UserId};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::people::sql::{column, unreadable};

pub(crate) fn agent_id(text: &str) -> StoreResult<AgentId> {
    AgentId::parse(text).ok_or_else(|| unreadable("agent", text))
}

pub(super) fn scopes(row: &Row) -> StoreResult<BTreeSet<Scope>> {
    let texts: Vec<&str> = column(row, "scopes")?;
    texts.into_iter().map(|text| text.parse().map_err(|_| unreadable("scope", text))).collect()
}

pub(super) fn agent(row: &Row) -> StoreResult<AgentRecord> {
    Ok(AgentRecord {
        id: agent_id(column(row, "id")?)?,
        name: column(row, "name")?,
        public_key: column(row, "public_key")?,
        registered_at: column(row, "registered_at")?,
    })
}

pub(super) fn request(row: &Row) -> StoreResult<GrantRequest> {
    let status = match column::<&str>(row, "status")? {
        "pending" if column(row, "late")? => GrantRequestStatus::Expired,
        "pending" => GrantRequestStatus::Pending,
        "approved" => GrantRequestStatus::Approved,
        "refused" => GrantRequestStatus::Refused,
        other => return Err(unreadable("status of a grant request", other)),
    };
    Ok(GrantRequest {
        id: GrantRequestId::from_uuid(column(row, "id")?),
        app: AppId::from_uuid(column(row, "app")?),
        app_slug: column(row, "app_slug")?,
        tenant: TenantId::from_uuid(column(row, "tenant")?),
        agent: agent_id(column(row, "agent")?)?,
        agent_name: column(row, "agent_name")?,
        code: column(row, "code")?,
        scopes: scopes(row)?,
        reason: column(row, "reason")?,
        status,
        grant: column::<Option<Uuid>>(row, "grant_id")?.map(GrantId::from_uuid),
        created_at: column(row, "created_at")?,
        expires_at: column(row, "expires_at")?,
    })
}

pub(super) fn grant(row: &Row) -> StoreResult<Grant> {
    Ok(Grant {
        id: GrantId::from_uuid(column(row, "id")?),
        tenant: TenantId::from_uuid(column(row, "tenant")?),
        app: AppId::from_uuid(column(row, "app")?),
        app_slug: column(row, "app_slug")?,
        agent: agent_id(column(row, "agent")?)?,
        agent_name: column(row, "agent_name")?,
        user: UserId::from_uuid(column(row, "user_id")?),
        user_email: column(row, "user_email")?,
        scopes: scopes(row)?,
        others_requests: column(row, "others_requests")?,
        plain_token: column(row, "plain_token")?,
        loopback: column(row, "loopback")?,
        app_record: column(row, "app_record")?,
        epoch: column(row, "epoch")?,
        created_at: column(row, "created_at")?,
        revoked_at: column(row, "revoked_at")?,
    })
}

/// Scopes as the column holds them.
pub(super) fn texts(scopes: &BTreeSet<Scope>) -> Vec<String> {
    scopes.iter().map(ToString::to_string).collect()
}
