//! Taking a job back.

use inn_ports::{StoreError, StoreResult};
use inn_protocol::job::Job;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Code, JobId, Refusal, RequestId};
use inn_rules::jobs as rules;
use serde_json::json;

use super::apply::{Locked, apply};
use super::{list, rows};
use crate::PgStore;
use crate::people::sql::{facts, maybe, must};
use crate::requests::cancel_within;
use crate::step::Step;

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM inn.jobs j JOIN inn.apps a ON a.id = j.app
     WHERE j.id = $1 AND j.app = $2 AND j.kind = 'upstream' FOR UPDATE OF j"
);

const AFTER: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM inn.jobs j JOIN inn.apps a ON a.id = j.app WHERE j.id = $1 AND j.app = $2"
);

pub(super) async fn cancel(
    store: &PgStore,
    call: &CallRecord,
    app: AppId,
    job: JobId,
    reason: &str,
) -> StoreResult<Job> {
    // What carries a job out never changes, so it may be looked up before anything is locked.
    let Some(known) = list::find(store, app, job).await? else { return Err(Refusal::not_found().into()) };
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let canceled = match known.request {
        Some(request) => with_request(&step, app, job, request, reason).await,
        None => alone(&step, app, job, reason).await,
    };
    let after = match canceled {
        Ok(after) => after,
        Err(StoreError::Refused(refusal)) => return Err(step.refuse(refusal.id(&job)).await),
        Err(error) => return Err(error),
    };
    let body = json!({ "job": after.id, "operation": after.operation, "state": after.state });
    step.outbox("jobs.canceled", Some(app), body).await?;
    let stored = json!({
        "job": after.id, "operation": after.operation, "state": after.state, "request": after.request, "reason": reason,
        "cancelRequested": after.cancel_requested,
    });
    let said = if after.state.is_terminal() { "Canceled" } else { "Asked to cancel" };
    step.commit(format!("{said} the job \"{}\" of {}", after.operation, after.app_slug), facts(stored)).await?;
    Ok(after)
}

/// The request is taken back, and the job follows it. Whoever changes a request locks it before its job; so do we.
async fn with_request(step: &Step<'_>, app: AppId, job: JobId, request: RequestId, reason: &str) -> StoreResult<Job> {
    cancel_within(step.tx(), app, request, reason).await?.ok_or_else(ended)?;
    let row = must(maybe(step.tx(), "canceled job", AFTER, &[&job.uuid(), &app.uuid()]).await?)?;
    rows::job(&row)
}

async fn alone(step: &Step<'_>, app: AppId, job: JobId, reason: &str) -> StoreResult<Job> {
    let row = maybe(step.tx(), "lock job", LOCK, &[&job.uuid(), &app.uuid()]).await?.ok_or_else(ended)?;
    let current = Locked::read(&row)?;
    let change = rules::cancel(&current.facts, reason)?;
    apply(step.tx(), &current, &change).await
}

/// It ended so long ago that it has moved to the history.
fn ended() -> Refusal {
    Refusal::new(Code::Conflict, "This job has ended and cannot be canceled.")
}
