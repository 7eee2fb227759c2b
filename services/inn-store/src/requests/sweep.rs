//! Nothing silently stuck: leases that ran out, requests nobody came for, queues of removed apps.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::request::RequestState;
use inn_protocol::{AppId, TenantId};
use inn_rules::requests as rules;
use serde_json::json;

use super::apply::{Locked, Many};
use super::{archive, rows};
use crate::PgStore;
use crate::people::sql::{all, column, facts, one};
use crate::register::platform_call;

/// Rows of one transaction.
const BATCH: usize = 200;
/// Transactions of one sweep; what is left is for the next one.
const BATCHES: usize = 20;

/// What is due, per app, so that every entry belongs to one tenant and app.
const DUE: &str = "
SELECT r.app, r.tenant, a.slug FROM inn.requests r JOIN inn.apps a ON a.id = r.app
WHERE r.state IN ('working', 'input-required') AND r.lease_until <= now()
UNION
SELECT r.app, r.tenant, a.slug FROM inn.requests r JOIN inn.apps a ON a.id = r.app
WHERE r.state = 'submitted' AND r.waits_until <= now()
UNION
SELECT r.app, r.tenant, a.slug FROM inn.apps a JOIN inn.requests r ON r.app = a.id
WHERE a.status = 'removed' AND r.ended_at IS NULL
LIMIT 100";

/// A holder in the middle of a call keeps its row: `SKIP LOCKED`, and the next sweep looks again.
const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", now() AS now, a.status = 'removed' AS removed FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.app = $1 AND r.ended_at IS NULL AND (
        (r.state IN ('working', 'input-required') AND r.lease_until <= now()) OR (r.state = 'submitted' AND r.waits_until <= now())
        OR a.status = 'removed')
     ORDER BY r.created_at, r.id LIMIT 200 FOR UPDATE OF r SKIP LOCKED"
);

/// Rows whose pause is over wait for nothing but an agent from now on.
const RIPE: &str = "
WITH ripe AS (
    SELECT id FROM inn.requests WHERE state = 'submitted' AND NOT ready AND next_at <= now()
    ORDER BY next_at LIMIT 1000 FOR UPDATE SKIP LOCKED
), woken AS (
    UPDATE inn.requests r SET ready = true FROM ripe WHERE r.id = ripe.id RETURNING r.app
) SELECT DISTINCT app FROM woken";

/// Answers the apps with something newly claimable.
pub(super) async fn sweep(store: &PgStore) -> StoreResult<Vec<AppId>> {
    let client = store.client().await?;
    let due = all(&client, "requests due", DUE, &[]).await?;
    drop(client);
    let mut ready = BTreeSet::new();
    let mut batches = 0;
    for row in &due {
        let app = AppId::from_uuid(column(row, "app")?);
        let tenant = TenantId::from_uuid(column(row, "tenant")?);
        while batches < BATCHES {
            batches += 1;
            match batch(store, tenant, app, column(row, "slug")?).await {
                Ok(swept) => {
                    if swept.ready {
                        ready.insert(app);
                    }
                    if swept.rows < BATCH {
                        break;
                    }
                }
                // A holder won against us; the next sweep looks again.
                Err(StoreError::Stale) => break,
                Err(error) => return Err(error),
            }
        }
    }
    archive::archive(store).await?;
    let client = store.client().await?;
    for row in all(&client, "ripe requests", RIPE, &[]).await? {
        ready.insert(AppId::from_uuid(column(&row, "app")?));
    }
    Ok(ready.into_iter().collect())
}

struct Swept {
    rows: usize,
    /// Something may be claimed at once.
    ready: bool,
}

async fn batch(store: &PgStore, tenant: TenantId, app: AppId, slug: &str) -> StoreResult<Swept> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, &platform_call(tenant, Some(app), "requests.sweep", slug)).await?;
    let locked = all(step.tx(), "lock due requests", LOCK, &[&app.uuid()]).await?;
    let mut changes = Vec::with_capacity(locked.len());
    for row in &locked {
        let (current, now) = (Locked::read(row)?, column::<DateTime<Utc>>(row, "now")?);
        let change = if column(row, "removed")? {
            rules::cancel(&current.facts, "app_removed").ok()
        } else if current.facts.state == RequestState::Submitted {
            rules::give_up(&current.facts)
        } else {
            rules::expire(&current.facts, now)
        };
        if let Some(change) = change {
            changes.push((current, change, now));
        }
    }
    if changes.is_empty() {
        step.abandon().await;
        return Ok(Swept { rows: 0, ready: false });
    }
    let mut many = Many::default();
    for (current, change, _) in &changes {
        many.add(current, change);
    }
    many.apply(step.tx()).await?;
    let ids = |ended: bool| -> Vec<_> {
        let chosen = changes.iter().filter(|(_, change, _)| change.state.is_terminal() == ended);
        chosen.map(|(current, ..)| current.request.id).collect()
    };
    let (requeued, ended) = (ids(false), ids(true));
    let ready = changes.iter().any(|(_, change, now)| {
        change.state == RequestState::Submitted && change.next_at.is_none_or(|next_at| next_at <= *now)
    });
    step.outbox("requests.swept", Some(app), json!({ "requeued": requeued, "ended": ended })).await?;
    let sentence = format!("{} requests of {slug} went back to the queue, {} ended", requeued.len(), ended.len());
    step.commit(sentence, facts(json!({ "requeued": requeued, "ended": ended }))).await?;
    Ok(Swept { rows: locked.len(), ready })
}

/// Overdue by more than a minute means that nobody sweeps; no attempt left means that nobody may claim it.
const STUCK: &str = "
SELECT count(*) AS stuck FROM inn.requests r JOIN inn.apps a ON a.id = r.app
WHERE r.ended_at IS NULL AND (
    (r.state IN ('working', 'input-required') AND (r.holder IS NULL OR r.lease_until IS NULL OR r.lease_until < now() - interval '1 minute'))
    OR (r.state = 'submitted' AND (r.attempt >= r.attempts OR r.waits_until < now() - interval '1 minute'
        OR (NOT r.ready AND r.next_at < now() - interval '1 minute')))
    OR (a.status = 'removed' AND a.updated_at < now() - interval '1 minute'))";

pub(super) async fn stuck(store: &PgStore) -> StoreResult<i64> {
    let client = store.client().await?;
    column(&one(&client, "stuck requests", STUCK, &[]).await?, "stuck")
}
