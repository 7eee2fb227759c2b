//! Looking at grants.

use deadpool_postgres::GenericClient;
use inn_ports::StoreResult;
use inn_protocol::grant::Grant;
use inn_protocol::{AgentId, GrantId, TenantId, UserId};

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, maybe};

macro_rules! view {
    ($condition:literal) => {
        concat!(
            "SELECT g.id, g.tenant, g.app, a.slug AS app_slug, g.agent,
                    coalesce(k.name, CASE WHEN g.loopback THEN 'Agent token file' ELSE '' END) AS agent_name,
                    g.user_id, u.email AS user_email, g.scopes, g.others_requests, g.plain_token, g.loopback,
                    g.app_record, g.epoch, g.created_at, g.revoked_at
             FROM inn.grants g JOIN inn.apps a ON a.id = g.app JOIN inn.users u ON u.id = g.user_id
             LEFT JOIN inn.agents k ON k.id = g.agent ",
            $condition
        )
    };
}

pub(super) async fn find<C: GenericClient + Sync>(client: &C, id: GrantId) -> StoreResult<Option<Grant>> {
    let row = maybe(client, "grant", view!("WHERE g.id = $1"), &[&id.uuid()]).await?;
    row.as_ref().map(rows::grant).transpose()
}

/// Live ones first, then newest first; at most a thousand.
pub(super) async fn grants(
    store: &PgStore,
    tenant: TenantId,
    user: Option<UserId>,
    agent: Option<&AgentId>,
) -> StoreResult<Vec<Grant>> {
    let client = store.client().await?;
    let text = view!(
        "WHERE g.tenant = $1 AND ($2::uuid IS NULL OR g.user_id = $2) AND ($3::text IS NULL OR g.agent = $3)
         ORDER BY g.revoked_at IS NOT NULL, g.created_at DESC, g.id DESC LIMIT 1000"
    );
    let agent = agent.map(AgentId::as_str);
    let rows = all(&client, "grants", text, &[&tenant.uuid(), &user.map(UserId::uuid), &agent]).await?;
    rows.iter().map(rows::grant).collect()
}
