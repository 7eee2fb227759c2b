//! Group commit: entries of reads and refusals wait for the insert that is running, then go together in one
//! statement. Nobody is delayed for the sake of a bigger batch.

use deadpool_postgres::Pool;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_protocol::{AgentId, AppId, Code, GrantId, SessionId, UserId};
use tokio::sync::{mpsc, oneshot};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::error::{broken, no_connection};
use crate::register::printable;
use crate::step::account;
use crate::step::guard::replayed;

/// Entries that may wait; more are told that the register is busy, and the call is not answered.
const WAITING: usize = 4096;
/// Entries of one statement.
const BATCH: usize = 500;

struct Waiting {
    call: CallRecord,
    outcome: CallOutcome,
    answer: oneshot::Sender<StoreResult<()>>,
}

/// The way into the writer. The writer ends when the last one is dropped and everything taken is written.
#[derive(Clone)]
pub(crate) struct Sender(mpsc::Sender<Waiting>);

impl Sender {
    pub(crate) async fn record(&self, call: CallRecord, outcome: CallOutcome) -> StoreResult<()> {
        let (answer, told) = oneshot::channel();
        self.0.try_send(Waiting { call, outcome, answer }).map_err(|error| {
            tracing::error!(%error, "the register's writer takes no more entries");
            StoreError::Unavailable
        })?;
        told.await.unwrap_or(Err(StoreError::Unavailable))
    }
}

/// Starts the writer on the I/O runtime.
pub(crate) fn start(io: &tokio::runtime::Handle, pool: Pool) -> Sender {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    io.spawn(async move {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            let (pool, batch) = (pool.clone(), std::mem::take(&mut batch));
            // In a task of its own: should one batch panic, those who wait for it are told, and the writer lives on.
            if let Err(error) = tokio::spawn(async move { write(&pool, batch).await }).await {
                tracing::error!(%error, "a batch of register entries was not written");
            }
        }
    });
    Sender(sender)
}

async fn write(pool: &Pool, batch: Vec<Waiting>) {
    let whole: Vec<&Waiting> = batch.iter().collect();
    match insert(pool, &whole).await {
        Ok(results) => answer(batch, results),
        // One entry that the database cannot take must not cost the others theirs.
        Err(StoreError::Broken) if batch.len() > 1 => {
            for waiting in batch {
                let result = insert(pool, &[&waiting]).await;
                let result = result.and_then(|results| results.into_iter().next().unwrap_or(Err(StoreError::Broken)));
                answer(vec![waiting], vec![result]);
            }
        }
        Err(error) => {
            let results = batch.iter().map(|_| Err(error.clone())).collect();
            answer(batch, results);
        }
    }
}

fn answer(batch: Vec<Waiting>, results: Vec<StoreResult<()>>) {
    for (waiting, result) in batch.into_iter().zip(results) {
        // Whoever asked may have gone; the entry stands all the same.
        let _ = waiting.answer.send(result);
    }
}

/// The live rows are read as of the statement's snapshot: a read is as of that moment, too. A refusal needs nothing
/// live: it must be written even when what it was refused for has moved on.
const INSERT: &str = "
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
),
entries AS (
    INSERT INTO inn.entries (call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome, digest)
    SELECT call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome,
        sha256(convert_to(facts || E'\\n' || outcome || E'\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n', 'UTF8'))
    FROM passed WHERE live AND fresh
)
SELECT live, fresh FROM passed ORDER BY ord";

#[derive(Default)]
struct Columns<'a> {
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
    fn push(&mut self, waiting: &'a Waiting) {
        let draft = &waiting.call.draft;
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
        self.outcome.push(waiting.outcome.text());
        let done = waiting.outcome == CallOutcome::Done;
        let live = done.then_some(&waiting.call.live);
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
        let replay = waiting.outcome == CallOutcome::Refused { code: Code::ReplayedNonce.as_str() };
        let nonce = waiting.call.nonce.as_ref().filter(|_| !replay);
        self.nonce_agent.push(nonce.map(|nonce| nonce.agent.as_str()));
        self.nonce.push(nonce.map(|nonce| nonce.nonce.as_str()));
        self.expires.push(nonce.map(|nonce| nonce.expires));
        self.app_user.push(account::spec(live.and_then(|live| live.app_user.as_ref())));
    }

    fn parameters(&self) -> [&(dyn ToSql + Sync); 23] {
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

/// One statement for all of them; each is told its own result. Entries of tenants whose nonces clash inside the batch
/// count in the order they came.
async fn insert(pool: &Pool, batch: &[&Waiting]) -> StoreResult<Vec<StoreResult<()>>> {
    let client = pool.get().await.map_err(|error| no_connection(&error))?;
    let mut columns = Columns::default();
    for waiting in batch {
        columns.push(waiting);
    }
    let statement = client.prepare_cached(INSERT).await.map_err(broken("register writer"))?;
    // A connection lost here leaves the entry's fate open, but nothing else has happened: "unavailable" is the truth
    // for the caller, whose read is then not answered.
    let rows = client.query(&statement, &columns.parameters()).await.map_err(broken("register writer"))?;
    let result = |row: &Row| {
        let (live, fresh) = (row.try_get(0), row.try_get(1));
        verdict(live.map_err(broken("register writer"))?, fresh.map_err(broken("register writer"))?)
    };
    Ok(rows.iter().map(result).collect())
}

fn verdict(live: bool, fresh: bool) -> StoreResult<()> {
    match (live, fresh) {
        (true, true) => Ok(()),
        (true, false) => Err(replayed().into()),
        (false, _) => Err(StoreError::Stale),
    }
}
