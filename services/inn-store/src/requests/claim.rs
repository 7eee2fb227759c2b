//! Claiming: a waiting request goes to exactly one agent, oldest first.

use futures_util::try_join;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::CallRecord;
use inn_protocol::request::{ClaimOffer, QueueRequest};
use inn_protocol::{AgentId, AppId, GrantId, UserId};
use serde_json::json;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::rows;
use crate::PgStore;
use crate::error::broken;
use crate::people::sql::{all, column, facts, invalid, one};
use crate::step::Step;

/// Offers one claim may bring.
const MOST_OFFERS: usize = 500;

/// Offers as one array per column.
struct Offers<'o> {
    apps: Vec<Uuid>,
    capabilities: Vec<&'o str>,
    grants: Vec<Uuid>,
    epochs: Vec<i64>,
    users: Vec<Uuid>,
    others: Vec<bool>,
}

impl<'o> Offers<'o> {
    fn new(offers: &'o [ClaimOffer]) -> StoreResult<Self> {
        if offers.len() > MOST_OFFERS {
            let expected = format!("at most {MOST_OFFERS} combinations of app and capability");
            let message = "This claim covers too many apps and capabilities; name the ones you serve.";
            return Err(invalid("apps", expected, message).into());
        }
        Ok(Self {
            apps: offers.iter().map(|offer| AppId::uuid(offer.app)).collect(),
            capabilities: offers.iter().map(|offer| offer.capability.as_str()).collect(),
            grants: offers.iter().map(|offer| GrantId::uuid(offer.grant)).collect(),
            epochs: offers.iter().map(|offer| offer.grant_epoch).collect(),
            users: offers.iter().map(|offer| UserId::uuid(offer.user)).collect(),
            others: offers.iter().map(|offer| offer.others).collect(),
        })
    }

    fn list(&self) -> [&(dyn ToSql + Sync); 6] {
        [&self.apps, &self.capabilities, &self.grants, &self.epochs, &self.users, &self.others]
    }
}

macro_rules! offers {
    () => {
        "unnest($1::uuid[], $2::text[], $3::uuid[], $4::bigint[], $5::uuid[], $6::boolean[])
            AS o (app, capability, grant_id, epoch, user_id, others)"
    };
}

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

const CLAIMABLE: &str = concat!(
    "SELECT EXISTS (
        SELECT FROM ",
    offers!(),
    " JOIN ",
    live!(),
    " JOIN inn.apps a ON a.id = o.app AND a.status = 'active'
        WHERE CASE WHEN o.others
            THEN EXISTS (SELECT FROM inn.requests r WHERE r.app = o.app AND r.capability = o.capability
                            AND r.state = 'submitted' AND r.next_at <= now() AND r.attempt < r.attempts)
            ELSE EXISTS (SELECT FROM inn.requests r WHERE r.app = o.app AND r.capability = o.capability
                            AND r.requester_user = o.user_id
                            AND r.state = 'submitted' AND r.next_at <= now() AND r.attempt < r.attempts)
        END
    ) AS found"
);

/// Whether something waits that one of the offers covers. No lock, no transaction.
pub(super) async fn claimable(store: &PgStore, offers: &[ClaimOffer]) -> StoreResult<bool> {
    if offers.is_empty() {
        return Ok(false);
    }
    let offers = Offers::new(offers)?;
    let client = store.client().await?;
    column(&one(&client, "claimable", CLAIMABLE, &offers.list()).await?, "found")
}

/// The grants an offer was made from, held until the claim is committed: a revocation comes before, and the claim finds
/// nothing, or after, and finds the claim to fence. So are the memberships: a lowered role comes before or after, too. In
/// the order of ids, and the membership first (as a removal does), against deadlocks.
const LOCK_GRANTS: &str =
    concat!("SELECT 1 FROM ", offers!(), " JOIN ", live!(), " WHERE g.agent = $7 ORDER BY g.id FOR SHARE OF m, g");

/// The batch sizes. The size stands in the text: as a parameter it would make the planner expect a tenth of the table
/// and walk all of it. Other numbers are put together from these.
const SIZES: [u32; 5] = [1, 2, 5, 10, 20];

/// How many waiting rows a claim looks at before it locks its own: others may have locked the first ones. The second
/// width is for when all of those were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Narrow,
    Wide,
}

pub(super) fn claim_text(size: u32, width: Width) -> String {
    let candidates = match width {
        Width::Narrow => size * 4 + 32,
        Width::Wide => size * 4 + 1000,
    };
    let columns = rows::columns!();
    let offers = offers!();
    let acknowledge = inn_rules::requests::ACKNOWLEDGE_SECONDS;
    // Every branch walks an index of waiting rows in its order and stops early. Locking comes last, row by row, until
    // the batch is full: nothing is locked that is not taken.
    format!(
        "WITH offer AS MATERIALIZED (
            SELECT o.* FROM {offers} JOIN inn.apps a ON a.id = o.app AND a.status = 'active'
        ),
        candidate AS MATERIALIZED (
            SELECT DISTINCT ON (created_at, id) id, created_at, grant_id FROM (
                SELECT w.id, w.created_at, o.grant_id FROM offer o CROSS JOIN LATERAL (
                    SELECT r.id, r.created_at FROM inn.requests r
                    WHERE r.app = o.app AND r.capability = o.capability AND r.state = 'submitted'
                      AND r.next_at <= now() AND r.attempt < r.attempts
                    ORDER BY r.created_at, r.id LIMIT {candidates}
                ) w WHERE o.others
                UNION ALL
                SELECT w.id, w.created_at, o.grant_id FROM offer o CROSS JOIN LATERAL (
                    SELECT r.id, r.created_at FROM inn.requests r
                    WHERE r.app = o.app AND r.capability = o.capability AND r.requester_user = o.user_id
                      AND r.state = 'submitted' AND r.next_at <= now() AND r.attempt < r.attempts
                    ORDER BY r.created_at, r.id LIMIT {candidates}
                ) w WHERE NOT o.others
            ) found ORDER BY created_at, id, grant_id LIMIT {candidates}
        ),
        picked AS MATERIALIZED (
            SELECT r.id, c.grant_id FROM candidate c JOIN inn.requests r ON r.id = c.id
            WHERE r.state = 'submitted' AND r.next_at <= now() AND r.attempt < r.attempts
            ORDER BY c.created_at, c.id LIMIT {size} FOR UPDATE OF r SKIP LOCKED
        )
        UPDATE inn.requests r SET
            state = 'working', attempt = r.attempt + 1, epoch = r.epoch + 1, holder = $7, holder_grant = p.grant_id,
            held_by = CASE WHEN $7 = ANY(r.held_by) THEN r.held_by
                ELSE r.held_by[greatest(1, cardinality(r.held_by) - 30):] || $7 END,
            acknowledged = false, lease_until = now() + make_interval(secs => least(r.lease_seconds, r.hard_seconds, {acknowledge})),
            hard_until = now() + make_interval(secs => r.hard_seconds), reason = NULL, updated_at = now()
        FROM picked p, inn.apps a WHERE r.id = p.id AND a.id = r.app
        RETURNING {columns}"
    )
}

/// Claims up to `max` requests. Nothing to claim leaves nothing behind.
pub(super) async fn claim(
    store: &PgStore,
    call: &CallRecord,
    agent: &AgentId,
    offers: &[ClaimOffer],
    max: u32,
) -> StoreResult<Vec<QueueRequest>> {
    let wanted = max.clamp(1, 50);
    if !claimable(store, offers).await? {
        return still_true(store, agent, offers).await.map(|()| Vec::new());
    }
    let arrays = Offers::new(offers)?;
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let mut claimed = Vec::new();
    let mut width = Width::Narrow;
    let mut first = true;
    loop {
        let missing = wanted.saturating_sub(u32::try_from(claimed.len()).unwrap_or(u32::MAX));
        let Some(size) = SIZES.iter().rev().copied().find(|size| *size <= missing) else { break };
        let took = if first {
            first = false;
            let Some(took) = take_first(&step, agent, &arrays, size).await? else {
                step.abandon().await;
                return Err(StoreError::Stale);
            };
            took
        } else {
            take(&step, agent, &arrays, size, width).await?
        };
        let short = took.len() < usize::try_from(size).unwrap_or(usize::MAX);
        claimed.extend(took);
        match (short, width) {
            (true, Width::Narrow) => width = Width::Wide,
            (true, Width::Wide) => break,
            (false, _) => {}
        }
    }
    if claimed.is_empty() {
        step.abandon().await;
        return Ok(claimed);
    }
    claimed.sort_by_key(|request| (request.created_at, request.id));
    finish(step, &claimed).await?;
    Ok(claimed)
}

async fn finish(step: Step<'_>, claimed: &[QueueRequest]) -> StoreResult<()> {
    let mut apps: Vec<AppId> = claimed.iter().map(|request| request.app).collect();
    apps.sort_unstable();
    apps.dedup();
    for app in apps {
        let of_app = claimed.iter().filter(|request| request.app == app);
        let ids: Vec<_> = of_app.map(|request| request.id).collect();
        step.outbox("requests.claimed", Some(app), json!({ "requests": ids, "state": "working" })).await?;
    }
    let one = |request: &QueueRequest| {
        json!({
            "request": request.id, "app": request.app, "capability": request.capability, "epoch": request.epoch,
            "attempt": request.attempt, "leaseUntil": request.lease_until,
        })
    };
    let stored = json!({ "claimed": claimed.iter().map(one).collect::<Vec<_>>() });
    let sentence = match claimed {
        [only] => format!("Claimed \"{}\" of {}", only.capability, only.app_slug),
        many => format!("Claimed {} requests", many.len()),
    };
    step.commit(sentence, facts(stored)).await?;
    Ok(())
}

const STILL_TRUE: &str = concat!("SELECT count(*) AS live FROM ", offers!(), " JOIN ", live!(), " WHERE g.agent = $7");

/// Nothing was found, but was the question right? Offers made from grants that moved on are answered `Stale`, so that
/// nobody waits on them.
async fn still_true(store: &PgStore, agent: &AgentId, offers: &[ClaimOffer]) -> StoreResult<()> {
    if offers.is_empty() {
        return Ok(());
    }
    let arrays = Offers::new(offers)?;
    let client = store.client().await?;
    let agent = agent.as_str();
    let [apps, capabilities, grants, epochs, users, others] = arrays.list();
    let parameters = [apps, capabilities, grants, epochs, users, others, &agent];
    let live: i64 = column(&one(&client, "live offers", STILL_TRUE, &parameters).await?, "live")?;
    if usize::try_from(live).unwrap_or(0) < offers.len() { Err(StoreError::Stale) } else { Ok(()) }
}

/// Locks the grants and takes a first batch. `None` when a grant is no longer what its offer was made from.
async fn take_first(
    step: &Step<'_>,
    agent: &AgentId,
    offers: &Offers<'_>,
    size: u32,
) -> StoreResult<Option<Vec<QueueRequest>>> {
    let agent = agent.as_str();
    let [apps, capabilities, grants, epochs, users, others] = offers.list();
    let parameters = [apps, capabilities, grants, epochs, users, others, &agent];
    let tx = step.tx();
    let lock = tx.prepare_cached(LOCK_GRANTS).await.map_err(broken("lock grants"))?;
    let take = tx.prepare_cached(&claim_text(size, Width::Narrow)).await.map_err(broken("claim"))?;
    // Sent together, run in this order: grants are locked before requests, as everywhere else.
    let (live, took) =
        try_join!(tx.query(&lock, &parameters), tx.query(&take, &parameters)).map_err(broken("claim"))?;
    if live.len() < offers.apps.len() {
        return Ok(None);
    }
    took.iter().map(rows::request).collect::<StoreResult<Vec<_>>>().map(Some)
}

async fn take(
    step: &Step<'_>,
    agent: &AgentId,
    offers: &Offers<'_>,
    size: u32,
    width: Width,
) -> StoreResult<Vec<QueueRequest>> {
    let agent = agent.as_str();
    let [apps, capabilities, grants, epochs, users, others] = offers.list();
    let parameters = [apps, capabilities, grants, epochs, users, others, &agent];
    let rows = all(step.tx(), "claim", &claim_text(size, width), &parameters).await?;
    rows.iter().map(rows::request).collect()
}
