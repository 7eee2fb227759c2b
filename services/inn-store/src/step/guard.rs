//! What must hold at the moment of commit, as SQL: the same text opens the one-statement form and the stepped form.
//!
//! Order matters: the key's try-lock first (a racer is told at once and waits for nothing), then the live rows
//! (`FOR SHARE`: a revocation waits for us or we see it, even when it committed after our snapshot; the app's row, which all
//! its calls would share, is compared without: ADR 0005), then the nonce, then the key.

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::call::{Idempotency, LiveCheck, Nonce};
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, CallId, Code, Digest, GrantId, Refusal, SessionId, TenantId, UserId};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::error::broken;

/// Common table expressions that end in `pass (free, live, fresh, first, ok)`. Parameters `$1` to `$19`: [`TYPES`].
pub(crate) const GUARD: &str = "
WITH lock AS MATERIALIZED (
    SELECT CASE WHEN $1::bigint IS NULL THEN true ELSE pg_try_advisory_xact_lock($1) END AS ok
),
live_app AS MATERIALIZED (
    SELECT 1 FROM inn.apps WHERE id = $2 AND epoch = $3 AND status = 'active'
),
live_grant AS MATERIALIZED (
    SELECT 1 FROM inn.grants WHERE id = $4 AND epoch = $5 AND revoked_at IS NULL FOR SHARE
),
live_member AS MATERIALIZED (
    SELECT 1 FROM inn.members WHERE tenant = $6 AND user_id = $7 AND epoch = $8 AND removed_at IS NULL FOR SHARE
),
live_session AS MATERIALIZED (
    SELECT 1 FROM inn.sessions WHERE id = $9 AND ended_at IS NULL AND expires_at > clock_timestamp() FOR SHARE
),
live AS MATERIALIZED (
    SELECT l.ok AS free, l.ok
        AND ($2::uuid IS NULL OR EXISTS (SELECT FROM live_app))
        AND ($4::uuid IS NULL OR EXISTS (SELECT FROM live_grant))
        AND ($7::uuid IS NULL OR EXISTS (SELECT FROM live_member))
        AND ($9::uuid IS NULL OR EXISTS (SELECT FROM live_session)) AS ok
    FROM lock l
),
nonce AS (
    INSERT INTO inn.nonces (agent, nonce, expires)
    SELECT $10, $11, $12 FROM live WHERE live.ok AND $11::text IS NOT NULL
    ON CONFLICT DO NOTHING RETURNING 1
),
fresh AS MATERIALIZED (
    SELECT live.free, live.ok AS live, live.ok AND ($11::text IS NULL OR EXISTS (SELECT FROM nonce)) AS ok FROM live
),
idem AS (
    INSERT INTO inn.idempotency AS i (scope_app, scope, route, key, body, call, record)
    SELECT $13, $14, $15, $16, $17, $18, $19 FROM fresh WHERE fresh.ok AND $16::text IS NOT NULL
    ON CONFLICT (scope_app, scope, route, key) DO UPDATE
        SET body = excluded.body, call = excluded.call, record = excluded.record, created_at = clock_timestamp()
        WHERE i.created_at < clock_timestamp() - interval '24 hours'
    RETURNING 1
),
pass AS MATERIALIZED (
    SELECT f.free, f.live, f.ok AS fresh, f.ok AND ($16::text IS NULL OR EXISTS (SELECT FROM idem)) AS ok FROM fresh f
)";

pub(crate) const TYPES: [Type; 19] = [
    Type::INT8,
    Type::UUID,
    Type::INT8,
    Type::UUID,
    Type::INT8,
    Type::UUID,
    Type::UUID,
    Type::INT8,
    Type::UUID,
    Type::TEXT,
    Type::TEXT,
    Type::TIMESTAMPTZ,
    Type::UUID,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::BYTEA,
    Type::UUID,
    Type::TEXT,
];

/// The values of the guard's parameters, owned so that they can be borrowed as one list.
pub(crate) struct Parameters<'a> {
    lock: Option<i64>,
    app: Option<Uuid>,
    app_epoch: Option<i64>,
    grant: Option<Uuid>,
    grant_epoch: Option<i64>,
    member_tenant: Option<Uuid>,
    member_user: Option<Uuid>,
    member_epoch: Option<i64>,
    session: Option<Uuid>,
    agent: Option<&'a str>,
    nonce: Option<&'a str>,
    expires: Option<chrono::DateTime<chrono::Utc>>,
    scope_app: Uuid,
    scope: Option<&'a str>,
    route: Option<&'a str>,
    key: Option<&'a str>,
    body: Option<&'a [u8]>,
    call: Uuid,
    record: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(call: &'a CallRecord, record: Option<&'a str>) -> Self {
        let live = &call.live;
        let nonce = call.nonce.as_ref();
        let idempotency = call.idempotency.as_ref();
        let scope_app = scope_app(call);
        Self {
            lock: idempotency.map(|key| lock_of(scope_app, key)),
            app: live.app.map(|(app, _)| AppId::uuid(app)),
            app_epoch: live.app.map(|(_, epoch)| epoch),
            grant: live.grant.map(|(grant, _)| GrantId::uuid(grant)),
            grant_epoch: live.grant.map(|(_, epoch)| epoch),
            member_tenant: live.member.map(|(tenant, _, _)| TenantId::uuid(tenant)),
            member_user: live.member.map(|(_, user, _)| UserId::uuid(user)),
            member_epoch: live.member.map(|(_, _, epoch)| epoch),
            session: live.session.map(SessionId::uuid),
            agent: nonce.map(|nonce| nonce.agent.as_str()),
            nonce: nonce.map(|nonce: &Nonce| nonce.nonce.as_str()),
            expires: nonce.map(|nonce| nonce.expires),
            scope_app,
            scope: idempotency.map(|key| key.scope.as_str()),
            route: idempotency.map(|key| key.route.as_str()),
            key: idempotency.map(|key| key.key.as_str()),
            body: idempotency.map(|key| key.body.0.as_slice()),
            call: call.draft.call.uuid(),
            record,
        }
    }

    pub(crate) fn list(&self) -> [&(dyn ToSql + Sync); 19] {
        [
            &self.lock,
            &self.app,
            &self.app_epoch,
            &self.grant,
            &self.grant_epoch,
            &self.member_tenant,
            &self.member_user,
            &self.member_epoch,
            &self.session,
            &self.agent,
            &self.nonce,
            &self.expires,
            &self.scope_app,
            &self.scope,
            &self.route,
            &self.key,
            &self.body,
            &self.call,
            &self.record,
        ]
    }
}

/// Whose keys these are: the app's, or (nil) the platform's.
fn scope_app(call: &CallRecord) -> Uuid {
    call.draft.app.map_or_else(Uuid::nil, AppId::uuid)
}

/// The advisory lock of one key. Two keys that share a number only make each other `in_progress` for a moment.
fn lock_of(scope_app: Uuid, key: &Idempotency) -> i64 {
    // Lengths keep the parts apart.
    let text = format!("{scope_app}|{}|{}|{}|{}|{}", key.scope.len(), key.scope, key.route.len(), key.route, key.key);
    let digest = Digest::of(text.as_bytes()).0;
    digest.first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Which guard stopped the call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passed {
    /// Nobody else works under the same key.
    pub(crate) free: bool,
    pub(crate) live: bool,
    /// The nonce was unused.
    pub(crate) fresh: bool,
    /// All of these, and the key was unused.
    pub(crate) ok: bool,
}

impl Passed {
    /// The refusal, except for a used key, whose owner has to be looked up.
    pub(crate) fn check(self) -> Result<Key, StoreError> {
        match self {
            Self { free: false, .. } => Err(in_progress().into()),
            Self { live: false, .. } => Err(StoreError::Stale),
            Self { fresh: false, .. } => Err(replayed().into()),
            Self { ok: false, .. } => Ok(Key::Used),
            _ => Ok(Key::Unused),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Unused,
    Used,
}

pub(super) async fn pass(tx: &Transaction<'_>, call: &CallRecord, record: Option<&str>) -> StoreResult<()> {
    const CHECK: &str = "SELECT free, live, fresh, ok FROM pass";
    let needs_nothing = call.nonce.is_none() && call.idempotency.is_none() && call.live == LiveCheck::default();
    if needs_nothing {
        return Ok(());
    }
    let text = format!("{GUARD}\n{CHECK}");
    let statement = tx.prepare_typed_cached(&text, &TYPES).await.map_err(broken("guard"))?;
    let parameters = Parameters::new(call, record);
    let row = tx.query_one(&statement, &parameters.list()).await.map_err(broken("guard"))?;
    let passed = Passed { free: row.get(0), live: row.get(1), fresh: row.get(2), ok: row.get(3) };
    match passed.check()? {
        Key::Unused => Ok(()),
        Key::Used => Err(used(tx, call).await?.into()),
    }
}

const USED: &str = "SELECT body, call, record FROM inn.idempotency
    WHERE scope_app = $1 AND scope = $2 AND route = $3 AND key = $4";

/// What to answer when the key was used before: a duplicate of the same body, or another body under the same key.
pub(crate) async fn used<C>(client: &C, call: &CallRecord) -> StoreResult<Refusal>
where
    C: deadpool_postgres::GenericClient + Sync,
{
    let Some(key) = &call.idempotency else { return Err(StoreError::Broken) };
    let statement = client.prepare_cached(USED).await.map_err(broken("idempotency key"))?;
    let parameters: [&(dyn ToSql + Sync); 4] = [&scope_app(call), &key.scope, &key.route, &key.key];
    let found = client.query_opt(&statement, &parameters).await.map_err(broken("idempotency key"))?;
    // Pruned between the two statements: the next try is the first again.
    let Some(found) = found else { return Ok(in_progress()) };
    let earlier = CallId::from_uuid(found.get(1));
    if found.get::<_, &[u8]>(0) != key.body.0 {
        let message = format!(
            "This Idempotency-Key was used for another body (call {earlier}). Send the original body again, or use a new key."
        );
        return Ok(Refusal { first: Some(earlier), ..Refusal::new(Code::KeyReused, message).id(&earlier) });
    }
    let record: Option<String> = found.get(2);
    let message = match &record {
        Some(record) => format!("This request was carried out already: record {record}, receipt {earlier}."),
        None => format!("This request was carried out already: receipt {earlier}."),
    };
    let refusal = Refusal::new(Code::DuplicateRequest, message).id(&record.unwrap_or_else(|| earlier.to_string()));
    Ok(Refusal { first: Some(earlier), ..refusal })
}

fn in_progress() -> Refusal {
    Refusal::new(
        Code::InProgress,
        "A request with this Idempotency-Key is being carried out right now. Send it again in a moment.",
    )
}

pub(crate) fn replayed() -> Refusal {
    Refusal::new(
        Code::ReplayedNonce,
        "This signature's nonce was used before: every signature counts once. Sign the request again with a new nonce.",
    )
}
