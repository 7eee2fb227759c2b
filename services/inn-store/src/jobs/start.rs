//! Making a job that a service of the app's carries out.

use inn_ports::StoreResult;
use inn_protocol::app::AppSnapshot;
use inn_protocol::job::{Job, NewUpstreamJob};
use inn_protocol::register::CallRecord;
use inn_protocol::{AgentId, Code, JobId, Refusal, UserId};
use serde_json::{Value, json};
use tokio_postgres::types::Json;

use super::rows;
use crate::PgStore;
use crate::people::sql::{column, facts, one, readable};

/// Counted up to the limit only. Callers do not wait for each other, so as many as there are connections may pass at once.
const OPEN: &str = "
SELECT count(*) AS open FROM (
    SELECT FROM inn.jobs WHERE app = $1 AND kind = 'upstream' AND ended_at IS NULL LIMIT $2
) counted";

const MAKE: &str = concat!(
    "WITH j AS (
        INSERT INTO inn.jobs (id, tenant, app, operation, kind, params, requester_user, requester_label, agent, attempts,
            deadline, retry_of, token)
        VALUES ($1, $2, $3, $4, 'upstream', $5, $6, $7, $8, $9, now() + make_interval(secs => $10), $11, $12) RETURNING *
    ) SELECT ",
    rows::columns!(),
    " FROM j JOIN inn.apps a ON a.id = j.app"
);

const SAY: &str = "SELECT inn.job_say($1, 'state', 'queued', NULL)";

pub(super) async fn start(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    new: &NewUpstreamJob,
) -> StoreResult<Job> {
    readable("requester", &new.requester_label, 320)?;
    let mut client = store.client().await?;
    let id = new.job.id.to_string();
    let step = store.begin_for(&mut client, call, Some(&id)).await?;
    let limit = i64::from(new.max_open);
    let open: i64 = column(&one(step.tx(), "count open jobs", OPEN, &[&app.id.uuid(), &limit]).await?, "open")?;
    if open >= limit {
        let message =
            format!("This app has {open} jobs going, which is the most it may have. Run it when some are done.");
        return Err(step.refuse(Refusal::new(Code::RateLimited, message).after(30).leg("app")).await);
    }
    let (requester, agent) = (new.requester.map(UserId::uuid), new.job.agent.as_ref().map(AgentId::as_str));
    let attempts = i32::try_from(new.attempts.max(1)).unwrap_or(i32::MAX);
    let (params, retry_of): (Json<&Value>, _) = (Json(&new.params), new.job.retry_of.map(JobId::uuid));
    let row = one(
        step.tx(),
        "make a job",
        MAKE,
        &[
            &new.job.id.uuid(),
            &app.tenant.uuid(),
            &app.id.uuid(),
            &new.job.operation,
            &params,
            &requester,
            &new.requester_label,
            &agent,
            &attempts,
            &f64::from(new.deadline_seconds.max(1)),
            &retry_of,
            &new.token.0.as_slice(),
        ],
    )
    .await?;
    let job = rows::job(&row)?;
    one(step.tx(), "line of a job", SAY, &[&new.job.id.uuid()]).await?;
    let told = json!({ "job": job.id, "operation": job.operation, "state": job.state });
    step.outbox("jobs.queued", Some(app.id), told).await?;
    let stored = json!({
        "job": job.id, "operation": job.operation, "state": job.state, "params": job.params, "requester": job.requester,
        "retryOf": job.retry_of,
    });
    step.commit(format!("Started the job \"{}\" of {}", job.operation, job.app_slug), facts(stored)).await?;
    Ok(job)
}
