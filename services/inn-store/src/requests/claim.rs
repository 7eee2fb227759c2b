//! Claiming: a waiting request goes to exactly one agent. The board says where to look, this statement decides.

use chrono::{DateTime, Utc};
use deadpool_postgres::{GenericClient, Object};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::CallRecord;
use inn_protocol::request::{ClaimOffer, QueueRequest};
use inn_protocol::{AgentId, AppId, GrantId, TenantId, UserId};
use inn_rules::requests::board::{Pick, Turn};
use serde_json::Value;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Error, Row};
use uuid::Uuid;

use super::{caps, rows};
use crate::PgStore;
use crate::error::{broken, classify, committing, verdict};
use crate::people::sql::column;
use crate::step::guard::{self, Key, Passed};
use crate::step::once;

/// The grant `g` of an offer, its person's membership `m` and account `u`. An offer counts as long as its grant is what
/// it was made from and still carries the capability, and its person may answer requests.
macro_rules! live {
    () => {
        concat!(
            "inn.grants g ON g.id = o.grant_id AND g.epoch = o.epoch AND g.app = o.app AND g.user_id = o.user_id
                AND g.revoked_at IS NULL AND (g.others_requests OR NOT o.others)
                AND 'queue:' || o.capability = ANY(g.scopes)
             JOIN inn.members m ON m.tenant = g.tenant AND m.user_id = g.user_id
             JOIN inn.users u ON u.id = m.user_id AND ",
            rows::answers!()
        )
    };
}

/// One statement for claims of any size.
///
/// The grants an offer was made from are held until the claim is committed: a revocation comes before, and the claim
/// finds nothing, or after, and finds the claim to fence. So are the memberships. In the order of ids, and before any
/// request, against deadlocks. Each pick then walks its own lane in the index of waiting rows, from where the lane is known
/// to begin, past what others have locked. Of requests of which only one may be worked on, one is taken.
pub(super) fn claim_text() -> String {
    let acknowledge = inn_rules::requests::ACKNOWLEDGE_SECONDS;
    let id = |prefix: &str, column: &str| format!("'{prefix}_' || replace({column}::text, '-', '')");
    let [request, app] = [id("req", "c.id"), id("app", "c.app")];
    format!(
        "{guard},
        pick AS MATERIALIZED (
            SELECT o.* FROM unnest($29::uuid[], $30::text[], $31::text[], $32::timestamptz[], $33::integer[], $34::uuid[],
                $35::bigint[], $36::uuid[], $37::boolean[]) WITH ORDINALITY
                AS o (app, capability, lane, since, quota, grant_id, epoch, user_id, others, place), pass p
            WHERE p.ok
        ),
        live_offer AS MATERIALIZED (SELECT 1 FROM pick o JOIN {live} WHERE g.agent = $38 ORDER BY g.id FOR SHARE OF m, g),
        granted AS MATERIALIZED (
            SELECT p.ok AND (SELECT count(*) FROM live_offer) = cardinality($29::uuid[]) AS ok FROM pass p
        ),
        found AS MATERIALIZED (
            SELECT r.id, r.rank, r.sole, o.place, o.grant_id
            FROM (SELECT o.* FROM pick o JOIN inn.apps a ON a.id = o.app AND a.status = 'active' ORDER BY o.place) o
            CROSS JOIN LATERAL (
                SELECT r.id, r.rank, CASE WHEN r.unique_mode <> 'queued' THEN r.unique_key END AS sole FROM inn.requests r
                WHERE (SELECT ok FROM granted) AND r.app = o.app AND r.capability = o.capability AND r.lane = o.lane
                  AND (o.others OR r.requester_user = o.user_id) AND r.rank >= o.since
                  AND r.state = 'submitted' AND r.ready AND r.next_at <= now() AND r.attempt < r.attempts
                  AND (r.unique_mode IS NULL OR r.unique_mode = 'queued' OR NOT EXISTS (
                      SELECT FROM inn.requests h WHERE h.app = r.app AND h.capability = r.capability
                        AND h.unique_key = r.unique_key AND h.state IN ('working', 'input-required')
                        AND h.unique_mode IN ('running', 'both')))
                ORDER BY r.rank, r.id LIMIT o.quota FOR UPDATE SKIP LOCKED
            ) r
        ),
        taken AS MATERIALIZED (
            SELECT DISTINCT ON (coalesce(sole, uuid_send(id))) id, place, grant_id FROM found
            ORDER BY coalesce(sole, uuid_send(id)), rank, id, place
        ),
        claimed AS (
            UPDATE inn.requests r SET
                state = 'working', attempt = r.attempt + 1, epoch = r.epoch + 1, holder = $38, holder_grant = t.grant_id,
                held_by = CASE WHEN $38 = ANY(r.held_by) THEN r.held_by
                    ELSE r.held_by[greatest(1, cardinality(r.held_by) - 30):] || $38 END,
                acknowledged = false,
                lease_until = now() + make_interval(secs => least(r.lease_seconds, r.hard_seconds, {acknowledge})),
                hard_until = now() + make_interval(secs => r.hard_seconds), reason = NULL, updated_at = now()
            FROM taken t WHERE r.id = t.id
            RETURNING r.*, t.place
        ),
        told AS (
            INSERT INTO inn.outbox (tenant, app, topic, body)
            SELECT c.tenant, c.app, 'requests.claimed', json_build_object('requests', json_agg({request}), 'state', 'working')
            FROM claimed c GROUP BY c.tenant, c.app
        ),
        said AS MATERIALIZED (
            SELECT CASE count(*) WHEN 1 THEN 'Claimed \"' || min(c.capability) || '\" of ' || min(a.slug)
                    ELSE 'Claimed ' || count(*) || ' requests' END AS sentence,
                json_build_object('claimed', json_agg(json_build_object('request', {request}, 'app', {app},
                    'capability', c.capability, 'epoch', c.epoch, 'attempt', c.attempt,
                    'leaseUntil', to_char(c.lease_until AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'))))::text AS \"row\"
            FROM claimed c JOIN inn.apps a ON a.id = c.app HAVING count(*) > 0
        ),{keep}
        SELECT {columns}, r.place FROM (
            SELECT CASE WHEN NOT EXISTS (SELECT FROM claimed) THEN inn.stop(json_build_object(
                'free', p.free, 'live', p.live AND (NOT p.ok OR g.ok), 'fresh', p.fresh, 'ok', p.ok)::text) END AS stopped
            FROM pass p, granted g
        ) s LEFT JOIN claimed r ON s.stopped IS NULL LEFT JOIN inn.apps a ON a.id = r.app",
        guard = guard::GUARD,
        live = live!(),
        keep = once::KEEP,
        columns = rows::columns!(),
    )
}

/// Types of the statement's own parameters, from `$29` on.
const TYPES: [Type; 10] = [
    Type::UUID_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TIMESTAMPTZ_ARRAY,
    Type::INT4_ARRAY,
    Type::UUID_ARRAY,
    Type::INT8_ARRAY,
    Type::UUID_ARRAY,
    Type::BOOL_ARRAY,
    Type::TEXT,
];

/// Picks with their offers, as one array per column.
#[derive(Default)]
struct Columns<'p> {
    apps: Vec<Uuid>,
    capabilities: Vec<&'p str>,
    lanes: Vec<&'p str>,
    since: Vec<DateTime<Utc>>,
    quotas: Vec<i32>,
    grants: Vec<Uuid>,
    epochs: Vec<i64>,
    users: Vec<Uuid>,
    others: Vec<bool>,
}

impl<'p> Columns<'p> {
    fn new(picks: &'p [(&'p ClaimOffer, Pick)]) -> Self {
        let mut columns = Self::default();
        for (offer, pick) in picks {
            columns.apps.push(AppId::uuid(offer.app));
            columns.capabilities.push(&offer.capability);
            columns.lanes.push(&pick.lane);
            columns.since.push(pick.from);
            columns.quotas.push(rows::stored(pick.quota));
            columns.grants.push(GrantId::uuid(offer.grant));
            columns.epochs.push(offer.grant_epoch);
            columns.users.push(UserId::uuid(offer.user));
            columns.others.push(offer.others);
        }
        columns
    }

    fn list(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.apps,
            &self.capabilities,
            &self.lanes,
            &self.since,
            &self.quotas,
            &self.grants,
            &self.epochs,
            &self.users,
            &self.others,
        ]
    }
}

/// Makes the claim that a turn stands for. Empty when others were faster, and then nothing is left behind.
pub(super) async fn claim(
    store: &PgStore,
    call: &CallRecord,
    agent: &AgentId,
    offers: &[ClaimOffer],
    turn: &Turn,
) -> StoreResult<Vec<QueueRequest>> {
    let picks: Vec<(&ClaimOffer, Pick)> =
        turn.picks.iter().filter_map(|pick| Some((offers.get(pick.offer)?, pick.clone()))).collect();
    let capped = store.inner.queue.board().capped(turn.tenant);
    let client = store.client().await?;
    let (picks, rows) = if capped {
        capped_claim(store, client, call, agent, turn.tenant, picks).await?
    } else {
        let rows = at_once(client, call, agent, &picks).await?;
        (picks, rows)
    };
    settle(store, &picks, &rows)?;
    let mut claimed = rows.iter().map(rows::request).collect::<StoreResult<Vec<_>>>()?;
    claimed.sort_by_key(|request| (request.created_at, request.id));
    Ok(claimed)
}

async fn at_once(
    client: Object,
    call: &CallRecord,
    agent: &AgentId,
    picks: &[(&ClaimOffer, Pick)],
) -> StoreResult<Vec<Row>> {
    let rows = take(&client, call, agent, picks).await;
    if matches!(rows, Err(StoreError::Unknown)) {
        // The pool may not have noticed yet that this connection is dead; the next call must not get it.
        drop(Object::take(client));
    }
    rows
}

/// Where something is capped, claims of the tenant come one after the other: what is held is counted under a lock.
async fn capped_claim<'o>(
    store: &PgStore,
    mut client: Object,
    call: &CallRecord,
    agent: &AgentId,
    tenant: TenantId,
    picks: Vec<(&'o ClaimOffer, Pick)>,
) -> StoreResult<(Vec<(&'o ClaimOffer, Pick)>, Vec<Row>)> {
    let tx = client.transaction().await.map_err(broken("begin"))?;
    let mut rooms = caps::lock(&tx, tenant).await?;
    store.inner.queue.board().set_rooms(tenant, rooms.clone());
    let fitting = picks.into_iter().filter_map(|(offer, mut pick)| {
        pick.quota = rooms.fit(agent, offer, &pick.lane, pick.quota);
        (pick.quota > 0).then_some((offer, pick))
    });
    let fitting: Vec<_> = fitting.collect();
    if fitting.is_empty() {
        return Ok((fitting, Vec::new()));
    }
    let rows = take(&tx, call, agent, &fitting).await?;
    if !rows.is_empty() {
        tx.commit().await.map_err(committing("claim"))?;
    }
    Ok((fitting, rows))
}

/// Runs the statement. No row when nothing could be taken (and in a transaction, that is over then).
async fn take<C>(client: &C, call: &CallRecord, agent: &AgentId, picks: &[(&ClaimOffer, Pick)]) -> StoreResult<Vec<Row>>
where
    C: GenericClient + Sync,
{
    let statement = client.prepare_typed_cached(text(), &types()).await.map_err(broken("claim"))?;
    let (guard, entry, columns) =
        (guard::Parameters::new(call, None), once::Entry::new(&call.draft), Columns::new(picks));
    let agent = agent.as_str();
    let own = columns.list();
    let parameters: Vec<&(dyn ToSql + Sync)> =
        guard.list().into_iter().chain(entry.list()).chain(own).chain([&agent as &(dyn ToSql + Sync)]).collect();
    match client.query(&statement, &parameters).await {
        Ok(rows) => Ok(rows),
        Err(error) => stopped(client, call, &error).await,
    }
}

pub(super) fn types() -> Vec<Type> {
    guard::TYPES.into_iter().chain(once::TYPES).chain(TYPES).collect()
}

fn text() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(claim_text)
}

async fn stopped<C>(client: &C, call: &CallRecord, error: &Error) -> StoreResult<Vec<Row>>
where
    C: GenericClient + Sync,
{
    // Another claim took the same key, of which only one may be worked on: look again.
    if error.code() == Some(&tokio_postgres::error::SqlState::UNIQUE_VIOLATION) {
        return Ok(Vec::new());
    }
    let Some(verdict) = verdict(error) else { return Err(classify("claim", error, StoreError::Unknown)) };
    match passed(&verdict).check()? {
        Key::Unused => Ok(Vec::new()),
        Key::Used => Err(guard::used(client, call).await?.into()),
    }
}

pub(super) fn passed(verdict: &Value) -> Passed {
    let flag = |name: &str| verdict.get(name).and_then(Value::as_bool).unwrap_or(false);
    Passed { free: flag("free"), live: flag("live"), fresh: flag("fresh"), ok: flag("ok") }
}

/// Tells the board what became of its picks.
fn settle(store: &PgStore, picks: &[(&ClaimOffer, Pick)], rows: &[Row]) -> StoreResult<()> {
    let mut took: Vec<(u32, Option<DateTime<Utc>>)> = vec![(0, None); picks.len()];
    for row in rows {
        let place = usize::try_from(column::<i64>(row, "place")?).unwrap_or_default();
        if let Some((taken, last)) = took.get_mut(place.saturating_sub(1)) {
            *taken += 1;
            *last = (*last).max(Some(column(row, "rank")?));
        }
    }
    let mut board = store.inner.queue.board();
    for ((offer, pick), (taken, last)) in picks.iter().zip(took) {
        board.settle(offer, pick, taken, last);
    }
    Ok(())
}
