//! Nothing silently stuck: leases and times that ran out, jobs of removed apps, what ended a while ago.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::job::Job;
use inn_protocol::{AppId, TenantId};
use inn_rules::jobs as rules;
use serde_json::json;

use super::apply::{Locked, apply};
use super::rows;
use crate::PgStore;
use crate::error::{broken, committing};
use crate::people::sql::{all, column, facts, one, run};
use crate::register::platform_call;

/// Transactions of one sweep; what is left is for the next one.
const BATCHES: usize = 20;

/// What is due, per app, so that every entry belongs to one tenant and app. An agent's job ends with its request.
const DUE: &str = "
SELECT j.app, j.tenant, a.slug FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
WHERE j.kind = 'upstream' AND j.state = 'running' AND j.lease_until <= now()
UNION
SELECT j.app, j.tenant, a.slug FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
WHERE j.kind = 'upstream' AND j.ended_at IS NULL AND j.deadline <= now()
UNION
SELECT j.app, j.tenant, a.slug FROM inn.apps a JOIN inn.jobs j ON j.app = a.id
WHERE a.status = 'removed' AND j.kind = 'upstream' AND j.ended_at IS NULL
LIMIT 100";

/// Whoever is in the middle of a call keeps its row: `SKIP LOCKED`, and the next sweep looks again.
const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", clock_timestamp() AS now, a.status = 'removed' AS removed FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
     WHERE j.app = $1 AND j.kind = 'upstream' AND j.ended_at IS NULL
       AND ((j.state = 'running' AND j.lease_until <= now()) OR j.deadline <= now() OR a.status = 'removed')
     ORDER BY j.created_at, j.id LIMIT 200 FOR UPDATE OF j SKIP LOCKED"
);

/// Answers the apps whose jobs changed.
pub(super) async fn sweep(store: &PgStore) -> StoreResult<Vec<AppId>> {
    let client = store.client().await?;
    let due = all(&client, "jobs due", DUE, &[]).await?;
    drop(client);
    let mut changed = BTreeSet::new();
    for row in due.iter().take(BATCHES) {
        let app = AppId::from_uuid(column(row, "app")?);
        let tenant = TenantId::from_uuid(column(row, "tenant")?);
        if batch(store, tenant, app, column(row, "slug")?).await? > 0 {
            changed.insert(app);
        }
    }
    archive(store).await?;
    Ok(changed.into_iter().collect())
}

async fn batch(store: &PgStore, tenant: TenantId, app: AppId, slug: &str) -> StoreResult<usize> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, &platform_call(tenant, Some(app), "jobs.sweep", slug)).await?;
    let locked = all(step.tx(), "lock due jobs", LOCK, &[&app.uuid()]).await?;
    let mut changed: Vec<Job> = Vec::with_capacity(locked.len());
    for row in &locked {
        let (current, now) = (Locked::read(row)?, column::<DateTime<Utc>>(row, "now")?);
        let change = if column(row, "removed")? {
            Some(rules::give_up(&current.facts, "app_removed", "the app was removed"))
        } else {
            rules::expire(&current.facts, now)
        };
        if let Some(change) = change {
            changed.push(apply(step.tx(), &current, &change).await?);
        }
    }
    if changed.is_empty() {
        step.abandon().await;
        return Ok(0);
    }
    let ids = |ended: bool| -> Vec<_> {
        changed.iter().filter(|job| job.state.is_terminal() == ended).map(|job| job.id).collect()
    };
    let (again, ended) = (ids(false), ids(true));
    let stored = json!({ "takenUpAgain": again, "ended": ended });
    step.outbox("jobs.swept", Some(app), stored.clone()).await?;
    let sentence = format!("{} jobs of {slug} are to be taken up again, {} ended", again.len(), ended.len());
    step.commit(sentence, facts(stored)).await?;
    Ok(changed.len())
}

/// Whoever follows a job finds its end in the hot table for a while. The columns are named, since the two tables may grow
/// in different orders.
const COPY: &str = "
INSERT INTO inn.jobs_history (id, tenant, app, operation, kind, state, params, requester_user, requester_label, agent, request,
    attempt, attempts, epoch, node, lease_until, next_at, deadline, taken_on, remote, cancel_requested, token, progress,
    question, result, error, past_attempts, retry_of, lines, created_at, updated_at, ended_at, log)
SELECT j.id, j.tenant, j.app, j.operation, j.kind, j.state, j.params, j.requester_user, j.requester_label, j.agent, j.request,
    j.attempt, j.attempts, j.epoch, j.node, j.lease_until, j.next_at, j.deadline, j.taken_on, j.remote, j.cancel_requested,
    j.token, j.progress, j.question, j.result, j.error, j.past_attempts, j.retry_of, j.lines, j.created_at, j.updated_at,
    j.ended_at, coalesce((SELECT json_agg(json_build_object('seq', l.seq, 'at', l.at, 'kind', l.kind, 'text', l.text,
        'percent', l.percent) ORDER BY l.seq) FROM inn.job_lines l WHERE l.job = j.id), '[]')
FROM inn.jobs j WHERE j.ended_at < now() - interval '10 minutes'
ORDER BY j.ended_at LIMIT 200 FOR UPDATE OF j SKIP LOCKED
RETURNING id";

const REMOVE: &str = "DELETE FROM inn.jobs WHERE id = ANY($1)";

async fn archive(store: &PgStore) -> StoreResult<()> {
    for _ in 0..BATCHES {
        let mut client = store.client().await?;
        let tx = client.transaction().await.map_err(broken("archive jobs"))?;
        let rows = all(&tx, "archive jobs", COPY, &[]).await?;
        let ids = rows.iter().map(|row| column(row, "id")).collect::<StoreResult<Vec<uuid::Uuid>>>()?;
        run(&tx, "archive jobs", REMOVE, &[&ids]).await?;
        tx.commit().await.map_err(committing("archive jobs"))?;
        if ids.len() < 200 {
            break;
        }
    }
    Ok(())
}

/// Overdue by more than a minute means that nobody sweeps or no node takes jobs; an agent's job without its open request
/// that nobody carries it out.
const STUCK: &str = "
SELECT count(*) AS stuck FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
WHERE j.ended_at IS NULL AND CASE j.kind
    WHEN 'agent' THEN NOT EXISTS (SELECT FROM inn.requests r WHERE r.id = j.request AND r.job = j.id AND r.ended_at IS NULL)
    ELSE (j.state = 'running' AND j.lease_until < now() - interval '1 minute')
        OR (j.state IN ('queued', 'waiting') AND j.next_at < now() - interval '1 minute')
        OR j.deadline < now() - interval '1 minute'
        OR (a.status = 'removed' AND a.updated_at < now() - interval '1 minute') END";

pub(super) async fn stuck(store: &PgStore) -> StoreResult<i64> {
    let client = store.client().await?;
    column(&one(&client, "stuck jobs", STUCK, &[]).await?, "stuck")
}
