//! One-time codes that carry a person from the platform's origin to an app's own origin, or, at the start of the
//! platform, from whoever started it to the platform's own origin: then the app is [`PLATFORM`].

use inn_ports::StoreResult;
use inn_protocol::people::Session;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, SessionId};
use serde_json::json;
use uuid::Uuid;

use super::sessions::{live, not_a_member};
use super::sql::{column, facts, maybe, must, run};
use crate::PgStore;

/// No app: the platform's own origin.
const PLATFORM: Uuid = Uuid::nil();

/// The link printed at start is opened by hand, so it lives longer than one that a browser follows at once.
const OPEN_PLATFORM: &str = "
INSERT INTO inn.handoffs (code, session, app, expires_at)
SELECT $1, s.id, $3, now() + interval '15 minutes'
FROM inn.sessions s
JOIN inn.members m ON m.tenant = s.tenant AND m.user_id = s.user_id AND m.removed_at IS NULL
WHERE s.id = $2 AND s.app IS NULL AND s.ended_at IS NULL AND s.expires_at > now()";

/// A code lives for a minute (DESIGN section 5).
const OPEN: &str = "
INSERT INTO inn.handoffs (code, session, app, expires_at)
SELECT $1, s.id, a.id, now() + interval '60 seconds'
FROM inn.sessions s
JOIN inn.apps a ON a.id = $3 AND a.status = 'active'
JOIN inn.members m ON m.tenant = a.tenant AND m.user_id = s.user_id AND m.removed_at IS NULL
WHERE s.id = $2 AND s.app IS NULL AND s.ended_at IS NULL AND s.expires_at > now()";

const FORGET_OLD: &str = "DELETE FROM inn.handoffs WHERE session = $1 AND expires_at < now() - interval '10 minutes'";

pub(super) async fn open(
    store: &PgStore,
    call: &CallRecord,
    code: Digest,
    session: SessionId,
    app: AppId,
) -> StoreResult<()> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    run(step.tx(), "forget old codes", FORGET_OLD, &[&session.uuid()]).await?;
    let open = if app.uuid() == PLATFORM { OPEN_PLATFORM } else { OPEN };
    if run(step.tx(), "open handoff", open, &[&&code.0[..], &session.uuid(), &app.uuid()]).await? == 0 {
        return Err(step.refuse(not_a_member()).await);
    }
    step.commit("Opened an app".to_owned(), facts(json!({ "session": session, "app": app }))).await?;
    Ok(())
}

/// Everything the code depends on is locked, so that a sign-out or a removal either comes before, and the code is worth
/// nothing, or after, and finds the new session to end.
const FIND: &str = "
SELECT s.id AS parent, s.user_id, m.tenant, s.authenticated_at, s.expires_at
FROM inn.handoffs h
JOIN inn.sessions s ON s.id = h.session AND s.ended_at IS NULL AND s.expires_at > now()
LEFT JOIN inn.apps a ON a.id = h.app AND a.status = 'active'
JOIN inn.members m ON m.tenant = CASE WHEN h.app = $3 THEN s.tenant ELSE a.tenant END AND m.user_id = s.user_id AND m.removed_at IS NULL
JOIN inn.users u ON u.id = s.user_id AND u.disabled_at IS NULL
WHERE h.code = $1 AND h.app = $2 AND h.used_at IS NULL AND h.expires_at > now()
FOR UPDATE OF h FOR SHARE OF s, m";

/// Lives no longer than the session it comes from, and the password was given when it was given there.
const SESSION: &str = "
INSERT INTO inn.sessions (id, user_id, tenant, token, app, authenticated_at, expires_at, parent)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

pub(super) async fn take(
    store: &PgStore,
    call: &CallRecord,
    code: Digest,
    app: AppId,
    session: SessionId,
    token: Digest,
) -> StoreResult<Option<Session>> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(found) = maybe(step.tx(), "find handoff", FIND, &[&&code.0[..], &app.uuid(), &PLATFORM]).await? else {
        step.abandon().await;
        return Ok(None);
    };
    let spend = "UPDATE inn.handoffs SET used_at = now() WHERE code = $1 AND used_at IS NULL";
    run(step.tx(), "use handoff", spend, &[&&code.0[..]]).await?;
    let (parent, user, tenant): (Uuid, Uuid, Uuid) =
        (column(&found, "parent")?, column(&found, "user_id")?, column(&found, "tenant")?);
    let authenticated_at: chrono::DateTime<chrono::Utc> = column(&found, "authenticated_at")?;
    let expires_at: chrono::DateTime<chrono::Utc> = column(&found, "expires_at")?;
    let here = (app.uuid() != PLATFORM).then_some(app.uuid());
    run(
        step.tx(),
        "hand over",
        SESSION,
        &[&session.uuid(), &user, &tenant, &&token.0[..], &here, &authenticated_at, &expires_at, &parent],
    )
    .await?;
    let session = must(live(step.tx(), session).await?)?;
    let stored = facts(json!({ "session": session.id, "user": session.user, "app": app }));
    let how = if here.is_some() { "came in from the platform" } else { "came in by the sign-in link" };
    step.commit(format!("{} {how}", session.email), stored).await?;
    Ok(Some(session))
}
