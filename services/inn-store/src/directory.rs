//! Snapshots the gateway decides from. They may be stale by the time they are used: every commit checks their epochs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_grants::PublicKey;
use inn_ports::{
    AgentState, Directory, FileTokenState, GrantState, MemberState, SessionState, StoreError, StoreResult,
};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::people::Role;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, GrantId, SessionId, TenantId, UserId};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{Json, ToSql};
use uuid::Uuid;

use crate::error::broken;
use crate::requests::answers;
use crate::{PgStore, columns, files, register};

/// Apps with an active release, as [`snapshot`] reads them.
pub(crate) const SNAPSHOT: &str = "
SELECT a.id, a.tenant, a.slug, a.release, a.epoch, a.consented, r.definition, r.ui_files
FROM inn.apps a JOIN inn.releases r ON r.app = a.id AND r.digest = a.release
WHERE a.status = 'active'";

const GRANT: &str = "
SELECT id, epoch, agent, user_id, tenant, app, scopes, others_requests, plain_token, loopback, app_record,
    revoked_at IS NOT NULL AS revoked
FROM inn.grants";

impl PgStore {
    async fn one(
        &self,
        context: &'static str,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> StoreResult<Option<Row>> {
        let client = self.client().await?;
        let statement = client.prepare_cached(text).await.map_err(broken(context))?;
        client.query_opt(&statement, parameters).await.map_err(broken(context))
    }
}

#[async_trait]
impl Directory for PgStore {
    async fn app_by_slug(&self, slug: &str) -> StoreResult<Option<Arc<AppSnapshot>>> {
        // PostgreSQL takes no U+0000 in a text, and no slug has one.
        if slug.contains('\0') {
            return Ok(None);
        }
        let row = self.one("app by slug", &format!("{SNAPSHOT} AND a.slug = $1"), &[&slug]).await?;
        row.as_ref().map(snapshot).transpose()
    }

    async fn app_by_id(&self, app: AppId) -> StoreResult<Option<Arc<AppSnapshot>>> {
        let row = self.one("app by id", &format!("{SNAPSHOT} AND a.id = $1"), &[&app.uuid()]).await?;
        row.as_ref().map(snapshot).transpose()
    }

    async fn agent(&self, agent: &AgentId) -> StoreResult<Option<Arc<AgentState>>> {
        let row = self.one("agent", "SELECT public_key FROM inn.agents WHERE id = $1", &[&agent.as_str()]).await?;
        let state = |row: Row| {
            let key: Vec<u8> = read(&row, "public_key")?;
            let key: [u8; 32] = key.try_into().map_err(|_| damaged("public key"))?;
            let public_key = PublicKey::from_bytes(&key).map_err(|_| damaged("public key"))?;
            Ok(Arc::new(AgentState { agent: agent.clone(), public_key }))
        };
        row.map(state).transpose()
    }

    async fn grant(&self, grant: GrantId) -> StoreResult<Option<Arc<GrantState>>> {
        let row = self.one("grant", &format!("{GRANT} WHERE id = $1"), &[&grant.uuid()]).await?;
        row.as_ref().map(grant_state).transpose()
    }

    async fn loopback_grant(&self, token: Digest) -> StoreResult<Option<Arc<GrantState>>> {
        let row =
            self.one("loopback grant", &format!("{GRANT} WHERE loopback_token = $1"), &[&token.0.as_slice()]).await?;
        row.as_ref().map(grant_state).transpose()
    }

    /// Answering requests is writing: an agent may while its person may.
    async fn queue_grants(&self, agent: &AgentId) -> StoreResult<Vec<Arc<GrantState>>> {
        let client = self.client().await?;
        let text = format!(
            "{GRANT} AS g WHERE g.agent = $1 AND g.revoked_at IS NULL
                AND EXISTS (SELECT FROM unnest(g.scopes) AS s (scope) WHERE s.scope LIKE 'queue:%')
                AND EXISTS (
                    SELECT FROM inn.members m JOIN inn.users u ON u.id = m.user_id
                    WHERE m.tenant = g.tenant AND m.user_id = g.user_id AND {ANSWERS})
             ORDER BY g.created_at, g.id LIMIT 1000",
            ANSWERS = answers!()
        );
        let statement = client.prepare_cached(&text).await.map_err(broken("queue grants"))?;
        let rows = client.query(&statement, &[&agent.as_str()]).await.map_err(broken("queue grants"))?;
        rows.iter().map(grant_state).collect()
    }

    async fn member(&self, tenant: TenantId, user: UserId) -> StoreResult<Option<Arc<MemberState>>> {
        const TEXT: &str = "SELECT u.email, m.role, m.epoch FROM inn.members m JOIN inn.users u ON u.id = m.user_id
            WHERE m.tenant = $1 AND m.user_id = $2 AND m.removed_at IS NULL AND u.disabled_at IS NULL";
        let row = self.one("member", TEXT, &[&tenant.uuid(), &user.uuid()]).await?;
        let state = |row: Row| {
            let role = Role::parse(read(&row, "role")?).ok_or_else(|| damaged("role"))?;
            let email: &str = read(&row, "email")?;
            Ok(Arc::new(MemberState { tenant, user, email: email.into(), role, epoch: read(&row, "epoch")? }))
        };
        row.map(state).transpose()
    }

    async fn session(&self, token: Digest) -> StoreResult<Option<Arc<SessionState>>> {
        const TEXT: &str = "SELECT id, user_id, tenant, app, authenticated_at, expires_at FROM inn.sessions
            WHERE token = $1 AND ended_at IS NULL AND expires_at > clock_timestamp()";
        let row = self.one("session", TEXT, &[&token.0.as_slice()]).await?;
        let state = |row: Row| {
            Ok(Arc::new(SessionState {
                session: SessionId::from_uuid(read(&row, "id")?),
                user: UserId::from_uuid(read(&row, "user_id")?),
                tenant: TenantId::from_uuid(read(&row, "tenant")?),
                app: read::<Option<Uuid>>(&row, "app")?.map(AppId::from_uuid),
                authenticated_at: read(&row, "authenticated_at")?,
                expires_at: read(&row, "expires_at")?,
            }))
        };
        row.map(state).transpose()
    }

    async fn file_token(&self, token: Digest) -> StoreResult<Option<FileTokenState>> {
        files::token_state(self, token).await
    }

    async fn app_record(&self, app: &AppSnapshot, id: &str) -> StoreResult<Option<Map<String, Value>>> {
        if id.contains('\0') {
            return Ok(None);
        }
        let (collections, id) = app.definition.model.account(id);
        for collection in collections {
            let table = columns::table(app.id, collection);
            let text = format!("SELECT {} FROM {table} AS t WHERE t.id = $1", columns::row_json(collection, "t"));
            if let Some(row) = self.one("app record", &text, &[&id]).await? {
                let text: &str = row.try_get(0).map_err(broken("app record"))?;
                let mut record = register::object(text)?;
                record.insert("collectionId".to_owned(), collection.id.as_str().into());
                record.insert("collectionName".to_owned(), collection.name.as_str().into());
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    async fn database_now(&self) -> StoreResult<DateTime<Utc>> {
        let row = self.one("database time", "SELECT clock_timestamp()", &[]).await?;
        row.ok_or(StoreError::Broken)?.try_get(0).map_err(broken("database time"))
    }
}

/// One row of [`SNAPSHOT`].
pub(crate) fn snapshot(row: &Row) -> StoreResult<Arc<AppSnapshot>> {
    let Json(definition): Json<AppDefinition> = read(row, "definition")?;
    let Json(ui_files): Json<BTreeMap<String, Digest>> = read(row, "ui_files")?;
    let release: &[u8] = read(row, "release")?;
    Ok(Arc::new(AppSnapshot {
        id: AppId::from_uuid(read(row, "id")?),
        tenant: TenantId::from_uuid(read(row, "tenant")?),
        slug: read(row, "slug")?,
        release: Digest::from_slice(release).ok_or_else(|| damaged("release digest"))?,
        epoch: read(row, "epoch")?,
        definition: Arc::new(definition),
        ui_files: Arc::new(ui_files),
        consented: read(row, "consented")?,
    }))
}

fn grant_state(row: &Row) -> StoreResult<Arc<GrantState>> {
    let scopes: Vec<&str> = read(row, "scopes")?;
    // A scope this version does not know allows nothing; the others stay.
    let scopes: BTreeSet<Scope> = scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
    let agent: &str = read(row, "agent")?;
    Ok(Arc::new(GrantState {
        grant: GrantId::from_uuid(read(row, "id")?),
        epoch: read(row, "epoch")?,
        agent: AgentId::parse(agent).ok_or_else(|| damaged("agent id"))?,
        user: UserId::from_uuid(read(row, "user_id")?),
        tenant: TenantId::from_uuid(read(row, "tenant")?),
        app: AppId::from_uuid(read(row, "app")?),
        scopes: Arc::new(scopes),
        others_requests: read(row, "others_requests")?,
        plain_token: read(row, "plain_token")?,
        loopback: read(row, "loopback")?,
        app_record: read(row, "app_record")?,
        revoked: read(row, "revoked")?,
    }))
}

fn read<'r, T: tokio_postgres::types::FromSql<'r>>(row: &'r Row, column: &str) -> StoreResult<T> {
    row.try_get(column).map_err(broken("a row of the directory"))
}

fn damaged(what: &'static str) -> StoreError {
    tracing::error!(what, "a kept value cannot be read");
    StoreError::Broken
}

#[cfg(test)]
mod tests;
