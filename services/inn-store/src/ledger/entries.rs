//! Entries of calls that change nothing, many in one statement: what such a statement starts with, and its parameters.

use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_protocol::{AgentId, AppId, Code, GrantId, SessionId, UserId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::broken;
use crate::register::printable;
use crate::step::account;
use crate::step::guard::replayed;

/// Common table expressions that end in `passed`: every call of the batch with its columns, `ord`, `at`, `live` (what it
/// was decided from still holds) and `fresh` (its nonce was unused, which it no longer is).
///
/// The live rows are read as of the statement's snapshot: a read is as of that moment, too. A refusal needs nothing
/// live: it must be written even when what it was refused for has moved on. Parameters `$1` to `$23`: [`Columns`].
pub(crate) const HEAD: &str = "
WITH input AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::uuid[], $6::text[], $7::uuid[], $8::text[], $9::text[],
        $10::text[], $11::text[], $12::uuid[], $13::int8[], $14::uuid[], $15::int8[], $16::uuid[], $17::uuid[], $18::int8[], $19::uuid[],
        $20::text[], $21::text[], $22::timestamptz[], $23::text[])
        WITH ORDINALITY AS t (call, tenant, app, caller, user_id, agent, grant_id, action, target, facts, outcome,
            live_app, app_epoch, live_grant, grant_epoch, member_tenant, member_user, member_epoch, session, nonce_agent, nonce, expires, app_user, ord)
),
live AS MATERIALIZED (
    SELECT i.*,
        (i.live_app IS NULL OR EXISTS (SELECT FROM inn.apps a WHERE a.id = i.live_app AND a.epoch = i.app_epoch AND a.status = 'active'))
        AND (i.live_grant IS NULL
            OR EXISTS (SELECT FROM inn.grants g WHERE g.id = i.live_grant AND g.epoch = i.grant_epoch AND g.revoked_at IS NULL))
        AND (i.member_user IS NULL
            OR EXISTS (SELECT FROM inn.members m WHERE m.tenant = i.member_tenant AND m.user_id = i.member_user
                AND m.epoch = i.member_epoch AND m.removed_at IS NULL))
        AND (i.session IS NULL
            OR EXISTS (SELECT FROM inn.sessions s WHERE s.id = i.session AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()))
        AND (i.app_user IS NULL OR inn.app_user_live(i.app_user)) AS live,
        row_number() OVER (PARTITION BY i.nonce_agent, i.nonce ORDER BY i.ord) AS turn
    FROM input i
),
nonces AS (
    INSERT INTO inn.nonces (agent, nonce, expires)
    SELECT nonce_agent, nonce, expires FROM live WHERE live.live AND nonce IS NOT NULL AND turn = 1
    ORDER BY nonce_agent, nonce
    ON CONFLICT DO NOTHING RETURNING agent, nonce
),
passed AS MATERIALIZED (
    SELECT l.*, clock_timestamp() AS at,
        l.nonce IS NULL OR (l.turn = 1 AND EXISTS (SELECT FROM nonces n WHERE n.agent = l.nonce_agent AND n.nonce = l.nonce)) AS fresh
    FROM live l
)";

/// The common table expression that keeps the entries of what passed. `outcome` is an SQL expression over `from`.
pub(crate) fn insert(outcome: &str, from: &str) -> String {
    format!(
        "entries AS (
    INSERT INTO inn.entries (call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome, digest)
    SELECT call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, {outcome},
        sha256(convert_to(facts || E'\\n' || {outcome} || E'\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n', 'UTF8'))
    FROM {from} WHERE live AND fresh
)"
    )
}

/// What became of one entry: the first two columns of its row are `live` and `fresh`.
pub(crate) fn verdict(row: &Row) -> StoreResult<()> {
    let flag = |place| row.try_get::<usize, bool>(place).map_err(broken("register writer"));
    match (flag(0)?, flag(1)?) {
        (true, true) => Ok(()),
        (true, false) => Err(replayed().into()),
        (false, _) => Err(StoreError::Stale),
    }
}

/// The calls of a batch, column by column.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    call: Vec<uuid::Uuid>,
    tenant: Vec<uuid::Uuid>,
    app: Vec<Option<uuid::Uuid>>,
    caller: Vec<&'a str>,
    user: Vec<Option<uuid::Uuid>>,
    agent: Vec<Option<&'a str>>,
    grant: Vec<Option<uuid::Uuid>>,
    action: Vec<String>,
    target: Vec<String>,
    facts: Vec<String>,
    outcome: Vec<String>,
    live_app: Vec<Option<uuid::Uuid>>,
    app_epoch: Vec<Option<i64>>,
    live_grant: Vec<Option<uuid::Uuid>>,
    grant_epoch: Vec<Option<i64>>,
    member_tenant: Vec<Option<uuid::Uuid>>,
    member_user: Vec<Option<uuid::Uuid>>,
    member_epoch: Vec<Option<i64>>,
    session: Vec<Option<uuid::Uuid>>,
    nonce_agent: Vec<Option<&'a str>>,
    nonce: Vec<Option<&'a str>>,
    expires: Vec<Option<chrono::DateTime<chrono::Utc>>>,
    app_user: Vec<Option<String>>,
}

impl<'a> Columns<'a> {
    pub(crate) fn push(&mut self, call: &'a CallRecord, outcome: &CallOutcome) {
        let draft = &call.draft;
        self.call.push(draft.call.uuid());
        self.tenant.push(draft.tenant.uuid());
        self.app.push(draft.app.map(AppId::uuid));
        self.caller.push(draft.caller);
        self.user.push(draft.user.map(UserId::uuid));
        self.agent.push(draft.agent.as_ref().map(AgentId::as_str));
        self.grant.push(draft.grant.map(GrantId::uuid));
        self.action.push(printable(&draft.action));
        self.target.push(printable(&draft.target));
        self.facts.push(draft.canonical());
        self.outcome.push(outcome.text());
        let done = *outcome == CallOutcome::Done;
        let live = done.then_some(&call.live);
        let app = live.and_then(|live| live.app);
        self.live_app.push(app.map(|(app, _)| app.uuid()));
        self.app_epoch.push(app.map(|(_, epoch)| epoch));
        let grant = live.and_then(|live| live.grant);
        self.live_grant.push(grant.map(|(grant, _)| grant.uuid()));
        self.grant_epoch.push(grant.map(|(_, epoch)| epoch));
        let member = live.and_then(|live| live.member);
        self.member_tenant.push(member.map(|(tenant, _, _)| tenant.uuid()));
        self.member_user.push(member.map(|(_, user, _)| user.uuid()));
        self.member_epoch.push(member.map(|(_, _, epoch)| epoch));
        self.session.push(live.and_then(|live| live.session).map(SessionId::uuid));
        // The entry of a replay itself cannot ask for an unused nonce.
        let replay = *outcome == CallOutcome::Refused { code: Code::ReplayedNonce.as_str() };
        let nonce = call.nonce.as_ref().filter(|_| !replay);
        self.nonce_agent.push(nonce.map(|nonce| nonce.agent.as_str()));
        self.nonce.push(nonce.map(|nonce| nonce.nonce.as_str()));
        self.expires.push(nonce.map(|nonce| nonce.expires));
        self.app_user.push(account::spec(live.and_then(|live| live.app_user.as_ref())));
    }

    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 23] {
        [
            &self.call,
            &self.tenant,
            &self.app,
            &self.caller,
            &self.user,
            &self.agent,
            &self.grant,
            &self.action,
            &self.target,
            &self.facts,
            &self.outcome,
            &self.live_app,
            &self.app_epoch,
            &self.live_grant,
            &self.grant_epoch,
            &self.member_tenant,
            &self.member_user,
            &self.member_epoch,
            &self.session,
            &self.nonce_agent,
            &self.nonce,
            &self.expires,
            &self.app_user,
        ]
    }
}
