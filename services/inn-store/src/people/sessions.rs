//! Sessions: opened, moved to another tenant, refreshed, ended.

use deadpool_postgres::GenericClient;
use inn_ports::{NewSession, StoreResult};
use inn_protocol::people::Session;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Code, Refusal, SessionId, TenantId, UserId};
use serde_json::json;

use super::rows;
use super::sql::{facts, maybe, must, run, seconds};
use crate::PgStore;

/// Live sessions one person may have; the oldest ends when one more is opened.
const MOST_SESSIONS: i64 = 100;

const VIEW: &str = "
SELECT s.id, s.user_id, u.email, s.tenant, t.slug AS tenant_slug, t.name AS tenant_name, m.role, s.expires_at
FROM inn.sessions s
JOIN inn.users u ON u.id = s.user_id AND u.disabled_at IS NULL
JOIN inn.tenants t ON t.id = s.tenant
JOIN inn.members m ON m.tenant = s.tenant AND m.user_id = s.user_id AND m.removed_at IS NULL
WHERE s.id = $1 AND s.ended_at IS NULL AND s.expires_at > now()";

/// A session that has neither ended nor expired, of somebody who is still a member.
pub(super) async fn live<C: GenericClient + Sync>(client: &C, session: SessionId) -> StoreResult<Option<Session>> {
    maybe(client, "session view", VIEW, &[&session.uuid()]).await?.as_ref().map(rows::session).transpose()
}

const OPEN: &str = "
INSERT INTO inn.sessions (id, user_id, tenant, token, app, expires_at)
SELECT $1, m.user_id, m.tenant, $4, $5, now() + make_interval(secs => $6)
FROM inn.members m JOIN inn.users u ON u.id = m.user_id AND u.disabled_at IS NULL
WHERE m.user_id = $2 AND m.tenant = $3 AND m.removed_at IS NULL
  AND ($5::uuid IS NULL OR EXISTS (SELECT FROM inn.apps a WHERE a.id = $5 AND a.tenant = $3 AND a.status = 'active'))
FOR SHARE OF m";

const FORGET_OLD: &str = "
DELETE FROM inn.sessions
WHERE user_id = $1 AND coalesce(ended_at, expires_at) < now() - interval '30 days'";

const END_SURPLUS: &str = "
UPDATE inn.sessions SET ended_at = now() WHERE id IN (
    SELECT id FROM inn.sessions WHERE user_id = $1 AND ended_at IS NULL AND expires_at > now()
    ORDER BY created_at DESC, id DESC OFFSET $2)";

pub(super) async fn open(store: &PgStore, call: &CallRecord, new: &NewSession) -> StoreResult<Session> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let user = new.user.uuid();
    let opened = run(
        step.tx(),
        "open session",
        OPEN,
        &[
            &new.id.uuid(),
            &user,
            &new.tenant.uuid(),
            &&new.token.0[..],
            &new.app.map(AppId::uuid),
            &seconds(new.lifetime),
        ],
    )
    .await?;
    if opened == 0 {
        return Err(step.refuse(not_a_member()).await);
    }
    run(step.tx(), "forget old sessions", FORGET_OLD, &[&user]).await?;
    run(step.tx(), "end surplus sessions", END_SURPLUS, &[&user, &MOST_SESSIONS]).await?;
    let session = must(live(step.tx(), new.id).await?)?;
    let stored = json!({ "session": session.id, "user": session.user, "tenant": session.tenant.id, "app": new.app });
    step.commit(format!("{} signed in to {}", session.email, session.tenant.name), facts(stored)).await?;
    Ok(session)
}

/// Sessions handed over to apps from this one end with it.
const END: &str = "UPDATE inn.sessions SET ended_at = now() WHERE (id = $1 OR parent = $1) AND ended_at IS NULL";

pub(super) async fn end(store: &PgStore, call: &CallRecord, session: SessionId) -> StoreResult<Receipt> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let known = "SELECT FROM inn.sessions WHERE id = $1";
    if maybe(step.tx(), "find session", known, &[&session.uuid()]).await?.is_none() {
        return Err(step.refuse(Refusal::not_found()).await);
    }
    let ended = run(step.tx(), "end session", END, &[&session.uuid()]).await?;
    step.commit("Signed out".to_owned(), facts(json!({ "session": session, "ended": ended }))).await
}

pub(super) async fn end_all(store: &PgStore, call: &CallRecord, user: UserId) -> StoreResult<u64> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let all = "UPDATE inn.sessions SET ended_at = now() WHERE user_id = $1 AND ended_at IS NULL AND expires_at > now()";
    let ended = run(step.tx(), "end sessions", all, &[&user.uuid()]).await?;
    step.commit("Signed out everywhere".to_owned(), facts(json!({ "user": user, "ended": ended }))).await?;
    Ok(ended)
}

/// A session on an app's origin belongs to that app's tenant and stays there.
const SWITCH: &str = "
UPDATE inn.sessions SET tenant = $2 WHERE id = $1 AND app IS NULL AND ended_at IS NULL AND expires_at > now()";

pub(super) async fn switch(
    store: &PgStore,
    call: &CallRecord,
    session: SessionId,
    tenant: TenantId,
) -> StoreResult<Session> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let whose = "SELECT user_id FROM inn.sessions WHERE id = $1 FOR NO KEY UPDATE";
    let Some(row) = maybe(step.tx(), "find session", whose, &[&session.uuid()]).await? else {
        return Err(step.refuse(Refusal::not_found()).await);
    };
    let user: uuid::Uuid = super::sql::column(&row, "user_id")?;
    let member = "SELECT FROM inn.members WHERE tenant = $1 AND user_id = $2 AND removed_at IS NULL FOR SHARE";
    let is_member = maybe(step.tx(), "find member", member, &[&tenant.uuid(), &user]).await?.is_some();
    if !is_member || run(step.tx(), "switch tenant", SWITCH, &[&session.uuid(), &tenant.uuid()]).await? == 0 {
        return Err(step.refuse(not_a_member()).await);
    }
    let session = must(live(step.tx(), session).await?)?;
    let stored = facts(json!({ "session": session.id, "tenant": session.tenant.id }));
    step.commit(format!("Switched to {}", session.tenant.name), stored).await?;
    Ok(session)
}

const REFRESH: &str = "
UPDATE inn.sessions SET authenticated_at = now() WHERE id = $1 AND ended_at IS NULL AND expires_at > now()";

pub(super) async fn refresh(store: &PgStore, call: &CallRecord, session: SessionId) -> StoreResult<()> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    if run(step.tx(), "refresh session", REFRESH, &[&session.uuid()]).await? == 0 {
        return Err(step.refuse(Refusal::not_found()).await);
    }
    step.commit("Gave the password again".to_owned(), facts(json!({ "session": session }))).await?;
    Ok(())
}

pub(super) fn not_a_member() -> Refusal {
    Refusal::new(Code::Forbidden, "This person is not a member there.")
        .leg("user")
        .fix("An owner of the tenant can add them.")
}
