//! What nodes do with jobs that services carry out, and what those services say by themselves.
//!
//! A start and a renewed lease are the platform's own notes and leave no entry; what came of the work does.

use chrono::{DateTime, Utc};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::job::{Job, Report, RunOutcome, StartedJob};
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Code, Digest, JobId, Refusal};
use inn_rules::jobs as rules;
use serde_json::json;

use super::apply::{Locked, apply};
use super::rows;
use crate::PgStore;
use crate::error::{broken, committing};
use crate::people::sql::{all, column, facts, maybe};
use crate::register::platform_call;
use crate::step::Step;

/// Of each app the job that is due the longest comes first, so that one with many does not hold up the others. What a
/// node is just taking is passed over.
const DUE: &str = concat!(
    "WITH due AS MATERIALIZED (
        SELECT id, place, next_at FROM (
            SELECT id, next_at, row_number() OVER (PARTITION BY app ORDER BY next_at, id) AS place FROM inn.jobs
            WHERE kind = 'upstream' AND state IN ('queued', 'waiting') AND next_at <= now() AND deadline > now()
        ) turns ORDER BY place, next_at LIMIT $1
    ) SELECT ",
    rows::columns!(),
    ", j.remote, clock_timestamp() AS now FROM due d JOIN inn.jobs j ON j.id = d.id JOIN inn.apps a ON a.id = j.app
     WHERE j.kind = 'upstream' AND j.state IN ('queued', 'waiting') AND j.next_at <= now() AND a.status = 'active'
     ORDER BY d.place, d.next_at FOR UPDATE OF j SKIP LOCKED"
);

pub(super) async fn take(store: &PgStore, node: &str, max: u32) -> StoreResult<Vec<StartedJob>> {
    let mut client = store.client().await?;
    let tx = client.transaction().await.map_err(broken("take jobs"))?;
    let mut started = Vec::new();
    for row in all(&tx, "due jobs", DUE, &[&i64::from(max.clamp(1, 100))]).await? {
        let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
        // Not due after all: the next look, or the sweep, decides.
        let Ok(change) = rules::start(&current.facts, node, now) else { continue };
        let job = apply(&tx, &current, &change).await?;
        started.push(StartedJob { job, remote: column(&row, "remote")? });
    }
    tx.commit().await.map_err(committing("take jobs"))?;
    Ok(started)
}

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", j.token, clock_timestamp() AS now FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
     WHERE j.id = $1 AND j.kind = 'upstream' FOR UPDATE OF j"
);

pub(super) async fn renew(store: &PgStore, node: &str, job: JobId, epoch: i64) -> StoreResult<bool> {
    let mut client = store.client().await?;
    let tx = client.transaction().await.map_err(broken("renew a job"))?;
    let row = maybe(&tx, "lock job", LOCK, &[&job.uuid()]).await?.ok_or_else(|| lost(job))?;
    let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
    let change = rules::renew(&current.facts, node, epoch, now).map_err(|refusal| refusal.id(&job))?;
    let job = apply(&tx, &current, &change).await?;
    tx.commit().await.map_err(committing("renew a job"))?;
    Ok(job.cancel_requested)
}

const WHOSE: &str = "SELECT j.tenant, j.app FROM inn.jobs j WHERE j.id = $1 AND j.kind = 'upstream'";

pub(super) async fn settle(
    store: &PgStore,
    node: &str,
    job: JobId,
    epoch: i64,
    outcome: &RunOutcome,
) -> StoreResult<Job> {
    let mut client = store.client().await?;
    let whose = maybe(&client, "whose job", WHOSE, &[&job.uuid()]).await?.ok_or_else(|| lost(job))?;
    let tenant = inn_protocol::TenantId::from_uuid(column(&whose, "tenant")?);
    let app = AppId::from_uuid(column(&whose, "app")?);
    let call = platform_call(tenant, Some(app), "jobs.settle", &job.to_string());
    let step = store.begin(&mut client, &call).await?;
    let settled = async {
        let row = maybe(step.tx(), "lock job", LOCK, &[&job.uuid()]).await?.ok_or_else(|| lost(job))?;
        let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
        apply(step.tx(), &current, &rules::settle(&current.facts, node, epoch, outcome, now)?).await
    };
    match settled.await {
        Ok(after) => tell(step, after).await,
        // Nobody called: a node that lost its job has done nothing that the register should hold.
        Err(error) => {
            step.abandon().await;
            Err(error)
        }
    }
}

pub(super) async fn report(
    store: &PgStore,
    call: &CallRecord,
    app: AppId,
    job: JobId,
    token: &Digest,
    report: &Report,
) -> StoreResult<Job> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let reported = async {
        let row = maybe(step.tx(), "lock job", LOCK, &[&job.uuid()]).await?.ok_or_else(missing)?;
        let current = Locked::read(&row)?;
        if current.job.app != app || column::<Option<&[u8]>>(&row, "token")? != Some(token.0.as_slice()) {
            return Err(missing().into());
        }
        let change = rules::report(&current.facts, report).map_err(|refusal| refusal.id(&job))?;
        apply(step.tx(), &current, &change).await
    };
    match reported.await {
        Ok(after) => tell(step, after).await,
        Err(StoreError::Refused(refusal)) => Err(step.refuse(*refusal).await),
        Err(error) => Err(error),
    }
}

async fn tell(step: Step<'_>, after: Job) -> StoreResult<Job> {
    let stored = json!({
        "job": after.id, "operation": after.operation, "state": after.state, "attempt": after.attempt,
        "epoch": after.epoch, "progress": after.progress, "result": after.result, "error": after.error,
    });
    let told = json!({ "job": after.id, "operation": after.operation, "state": after.state });
    step.outbox("jobs.changed", Some(after.app), told).await?;
    let state = after.state.as_str();
    let sentence = format!("The job \"{}\" of {} is {state}", after.operation, after.app_slug);
    step.commit(sentence, facts(stored)).await?;
    Ok(after)
}

fn missing() -> Refusal {
    Refusal::new(Code::JobNotFound, "There is no such job, or it is somebody else's.")
}

/// It ended so long ago that it has moved to the history.
fn lost(job: JobId) -> Refusal {
    Refusal::new(Code::ClaimLost, "This start no longer holds: the job has ended.").id(&job)
}
