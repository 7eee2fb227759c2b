//! Looking at what waits, for the board: one question for everybody of this node who wants to know.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::request::ClaimOffer;
use inn_protocol::{AgentId, AppId, TenantId};
use inn_rules::requests::Rooms;
use inn_rules::requests::board::{Board, Found, LOOK_MILLIS, Look, Turn, Weights};
use tokio::sync::Mutex as AsyncMutex;

use super::caps;
use crate::PgStore;
use crate::people::sql::{all, column, invalid};

/// Offers one claim may bring.
const MOST_OFFERS: usize = 500;
/// Looks at different apps run side by side, looks at one do not: whoever comes meanwhile uses what the first one saw.
const LOCKS: usize = 16;
/// Lanes of one look, and rows counted in each: as many as a claim may take.
const LANES: usize = 64;
/// Apps whose open requests are counted ahead.
const MOST_COUNTS: usize = 10_000;

/// One node's picture of the queue.
pub(crate) struct Queue {
    board: Mutex<Board>,
    /// Open requests of an app, and when they were counted.
    open: Mutex<HashMap<AppId, (i64, u64)>>,
    looking: [AsyncMutex<()>; LOCKS],
    start: Instant,
}

impl Default for Queue {
    fn default() -> Self {
        Self { board: Mutex::default(), open: Mutex::default(), looking: Default::default(), start: Instant::now() }
    }
}

impl Queue {
    /// The board. Never held across an await.
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request was put into the queue by this node.
    pub(super) fn waits(&self, app: AppId, capability: &str, lane: &str, rank: DateTime<Utc>) {
        self.board().waits(app, capability, lane, rank);
        if let Some((open, _)) = self.open().get_mut(&app) {
            *open += 1;
        }
    }

    /// Whether the open requests of an app must be counted before one more: they were not within the last second, or may
    /// come close to the limit.
    pub(super) fn may_be_full(&self, app: AppId, most: u32) -> bool {
        let now = self.now();
        self.open()
            .get(&app)
            .is_none_or(|(open, at)| now.saturating_sub(*at) > LOOK_MILLIS || *open * 10 > i64::from(most) * 9)
    }

    pub(super) fn counted(&self, app: AppId, open: i64) {
        let (now, mut counts) = (self.now(), self.open());
        if counts.len() > MOST_COUNTS {
            counts.retain(|_, (_, at)| now.saturating_sub(*at) <= LOOK_MILLIS);
        }
        counts.insert(app, (open, now));
    }

    fn open(&self) -> MutexGuard<'_, HashMap<AppId, (i64, u64)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn turn_to_look(&self, looks: &[Look]) -> tokio::sync::MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(looks.first().map(|look| look.app));
        let [first, ..] = &self.looking;
        let place = usize::try_from(hash).unwrap_or_default() % LOCKS;
        self.looking.get(place).unwrap_or(first).lock().await
    }
}

/// Keeps waiting rows that an offer covers for one claim of this agent. `thorough` looks before it says that there are none;
/// otherwise a picture of the last second counts.
pub(super) async fn reserve(
    store: &PgStore,
    agent: &AgentId,
    offers: &[ClaimOffer],
    max: u32,
    thorough: bool,
) -> StoreResult<Option<Turn>> {
    if offers.len() > MOST_OFFERS {
        let expected = format!("at most {MOST_OFFERS} combinations of app and capability");
        let message = "This claim covers too many apps and capabilities; name the ones you serve.";
        return Err(invalid("apps", expected, message).into());
    }
    let queue = &store.inner.queue;
    let came = queue.now();
    let stale = |queue: &Queue| queue.board().stale(offers, queue.now());
    look_while(store, &stale).await?;
    if let Some(turn) = queue.board().reserve(agent, offers, max) {
        return Ok(Some(turn));
    }
    if !thorough {
        return Ok(None);
    }
    // A look that began when we were here already is as good as one of our own.
    look_while(store, &|queue: &Queue| queue.board().unseen_since(offers, came)).await?;
    Ok(queue.board().reserve(agent, offers, max))
}

async fn look_while(store: &PgStore, wanted: &(impl Fn(&Queue) -> Vec<Look> + Sync)) -> StoreResult<()> {
    let queue = &store.inner.queue;
    let looks = wanted(queue);
    if looks.is_empty() {
        return Ok(());
    }
    let _turn = queue.turn_to_look(&looks).await;
    // Somebody may have looked while we waited for our turn.
    let looks = wanted(queue);
    if looks.is_empty() { Ok(()) } else { look(store, &looks).await }
}

/// Every lane is found by one probe of the index of waiting rows, and so are its first rows. Lanes after the given one
/// come first, then round the ring.
const LOOK: &str = "
WITH look AS MATERIALIZED (
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY AS l (app, capability, lane, after, place)
)
SELECT l.place, w.lane, c.waiting, c.since, coalesce(p.weight, 1)::integer AS weight
FROM look l JOIN inn.apps a ON a.id = l.app AND a.status = 'active'
CROSS JOIN LATERAL (
    SELECT l.lane, 0 AS part WHERE l.lane IS NOT NULL
    UNION ALL (
        WITH RECURSIVE walk AS (
            (SELECT r.lane FROM inn.requests r
             WHERE l.lane IS NULL AND r.app = l.app AND r.capability = l.capability AND r.state = 'submitted' AND r.ready
               AND r.lane > l.after ORDER BY r.lane LIMIT 1)
            UNION ALL
            SELECT n.lane FROM walk w CROSS JOIN LATERAL (
                SELECT r.lane FROM inn.requests r
                WHERE r.app = l.app AND r.capability = l.capability AND r.state = 'submitted' AND r.ready AND r.lane > w.lane
                ORDER BY r.lane LIMIT 1) n
        )
        SELECT lane, 1 FROM walk LIMIT 64
    )
    UNION ALL (
        WITH RECURSIVE walk AS (
            (SELECT r.lane FROM inn.requests r
             WHERE l.lane IS NULL AND l.after <> '' AND r.app = l.app AND r.capability = l.capability
               AND r.state = 'submitted' AND r.ready AND r.lane <= l.after ORDER BY r.lane LIMIT 1)
            UNION ALL
            SELECT n.lane FROM walk w CROSS JOIN LATERAL (
                SELECT r.lane FROM inn.requests r
                WHERE r.app = l.app AND r.capability = l.capability AND r.state = 'submitted' AND r.ready
                  AND r.lane > w.lane AND r.lane <= l.after ORDER BY r.lane LIMIT 1) n
        )
        SELECT lane, 2 FROM walk LIMIT 64
    )
) w
CROSS JOIN LATERAL (
    SELECT count(*)::integer AS waiting, min(f.rank) AS since FROM (
        SELECT r.rank FROM inn.requests r
        WHERE r.app = l.app AND r.capability = l.capability AND r.lane = w.lane AND r.state = 'submitted' AND r.ready
        ORDER BY r.rank, r.id LIMIT 100) f
) c
LEFT JOIN inn.queue_limits p ON p.tenant = a.tenant AND p.kind = 'person' AND p.app IS NULL AND p.subject = w.lane
WHERE c.waiting > 0
ORDER BY l.place, w.part, w.lane";

const WEIGHTS: &str = "
SELECT l.place, a.tenant, coalesce(t.weight, 1)::integer AS tenant_weight, coalesce(w.weight, 1)::integer AS app_weight,
    EXISTS (SELECT FROM inn.queue_limits c WHERE c.tenant = a.tenant AND c.most IS NOT NULL) AS capped
FROM unnest($1::uuid[]) WITH ORDINALITY AS l (app, place) JOIN inn.apps a ON a.id = l.app
LEFT JOIN inn.queue_limits t ON t.tenant = a.tenant AND t.kind = 'tenant'
LEFT JOIN inn.queue_limits w ON w.tenant = a.tenant AND w.kind = 'app' AND w.app = l.app";

async fn look(store: &PgStore, looks: &[Look]) -> StoreResult<()> {
    let queue = &store.inner.queue;
    let began = queue.now();
    let client = store.client().await?;
    let apps: Vec<_> = looks.iter().map(|look| AppId::uuid(look.app)).collect();
    let capabilities: Vec<&str> = looks.iter().map(|look| look.capability.as_str()).collect();
    let lanes: Vec<Option<&str>> = looks.iter().map(|look| look.lane.as_deref()).collect();
    let after: Vec<&str> = looks.iter().map(|look| look.after.as_str()).collect();
    let weighed = all(&client, "weights", WEIGHTS, &[&apps]).await?;
    let mut weights = vec![Weights::default(); looks.len()];
    let mut tenants = std::collections::BTreeMap::new();
    for row in &weighed {
        let weight = |name| column::<i32>(row, name).map(|weight| u32::try_from(weight).unwrap_or(1));
        if let Some(place) = place(row)?.and_then(|place| weights.get_mut(place)) {
            *place = Weights { tenant: weight("tenant_weight")?, app: weight("app_weight")? };
        }
        tenants.insert(TenantId::from_uuid(column(row, "tenant")?), column::<bool>(row, "capped")?);
    }
    for (tenant, capped) in tenants {
        let rooms = if capped { caps::rooms(&client, tenant).await? } else { Rooms::default() };
        queue.board().set_rooms(tenant, rooms);
    }
    let mut found: Vec<Vec<Found>> = vec![Vec::new(); looks.len()];
    for row in &all(&client, "look at the queue", LOOK, &[&apps, &capabilities, &lanes, &after]).await? {
        let count = |name| column::<i32>(row, name).map(|count| u32::try_from(count).unwrap_or_default());
        let lane = Found {
            lane: column(row, "lane")?,
            waiting: count("waiting")?,
            from: column(row, "since")?,
            weight: count("weight")?,
        };
        if let Some(of_look) = place(row)?.and_then(|place| found.get_mut(place)) {
            of_look.push(lane);
        }
    }
    drop(client);
    let took = queue.now().saturating_sub(began);
    let mut board = queue.board();
    for ((look, mut found), weights) in looks.iter().zip(found).zip(weights) {
        // Fewer than there was room for: none was left out.
        let complete = found.len() < LANES;
        found.truncate(LANES);
        board.found(look, found, complete, weights, (began, took));
    }
    Ok(())
}

fn place(row: &tokio_postgres::Row) -> StoreResult<Option<usize>> {
    Ok(usize::try_from(column::<i64>(row, "place")? - 1).ok())
}
