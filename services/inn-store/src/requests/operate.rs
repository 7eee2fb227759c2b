//! What members of the tenant do with requests, over a holder's head or for it.

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::register::CallRecord;
use inn_protocol::request::{CancelFilter, OperateCommand, QueueRequest, RequestState};
use inn_protocol::{AppId, Refusal, RequestId};
use inn_rules::requests as rules;
use serde_json::json;

use super::apply::{Locked, Many, apply};
use super::{list, rows};
use crate::PgStore;
use crate::people::sql::{all, column, facts, maybe};

/// Requests one call cancels.
const BATCH: usize = 1_000;

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", now() AS now FROM inn.requests r JOIN inn.apps a ON a.id = r.app WHERE r.id = $1 AND r.app = $2 FOR UPDATE OF r"
);

pub(super) async fn operate(
    store: &PgStore,
    call: &CallRecord,
    app: AppId,
    request: RequestId,
    command: &OperateCommand,
) -> StoreResult<QueueRequest> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(row) = maybe(step.tx(), "lock request", LOCK, &[&request.uuid(), &app.uuid()]).await? else {
        step.abandon().await;
        // Ended long ago, or of another app.
        let Some(ended) = list::find(store, app, request).await? else { return Err(Refusal::not_found().into()) };
        let refused = rules::operate(&rules::Facts::from(&ended), command, ended.updated_at).err();
        return Err(refused.unwrap_or_else(Refusal::internal).id(&request).into());
    };
    let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
    let change = match rules::operate(&current.facts, command, now) {
        Ok(change) => change,
        Err(refusal) => return Err(step.refuse(refusal.id(&request)).await),
    };
    let after = apply(step.tx(), &current, &change, now).await?;
    let body = json!({ "request": after.id, "capability": after.capability, "state": after.state });
    step.outbox(topic(command), Some(app), body).await?;
    let answer = change.answer.as_ref().map(|(answer, _)| answer);
    let stored = json!({
        "request": after.id, "capability": after.capability, "state": after.state, "reason": after.reason,
        "holder": current.request.holder, "epoch": after.epoch, "answer": answer,
    });
    step.commit(sentence(&after, command), facts(stored)).await?;
    Ok(after)
}

/// Oldest first; what somebody is in the middle of a call with is left for the next call.
const LOCK_MANY: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.app = $1 AND r.ended_at IS NULL AND ($2::text IS NULL OR r.capability = $2)
       AND ($3::text IS NULL OR r.state = $3) AND ($4::integer IS NULL OR r.created_at <= now() - make_interval(secs => $4))
     ORDER BY r.created_at, r.id LIMIT 1000 FOR UPDATE OF r SKIP LOCKED"
);

pub(super) async fn cancel_many(
    store: &PgStore,
    call: &CallRecord,
    app: AppId,
    filter: &CancelFilter,
    reason: &str,
) -> StoreResult<(u64, bool)> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let (state, age) = (filter.state.map(RequestState::as_str), filter.older_than_seconds.map(rows::stored));
    let locked = all(step.tx(), "lock requests", LOCK_MANY, &[&app.uuid(), &filter.capability, &state, &age]).await?;
    let mut changes = Vec::with_capacity(locked.len());
    for row in &locked {
        let current = Locked::read(row)?;
        let change = rules::cancel(&current.facts, reason).map_err(inn_ports::StoreError::from)?;
        changes.push((current, change));
    }
    let mut many = Many::default();
    for (current, change) in &changes {
        many.add(current, change);
    }
    let canceled = many.apply(step.tx()).await?;
    let ids: Vec<_> = changes.iter().map(|(current, _)| current.request.id).collect();
    if !ids.is_empty() {
        step.outbox("requests.canceled", Some(app), json!({ "requests": ids, "state": "canceled" })).await?;
    }
    step.commit(format!("Took back {canceled} requests"), facts(json!({ "canceled": ids, "reason": reason }))).await?;
    Ok((canceled, locked.len() >= BATCH))
}

fn topic(command: &OperateCommand) -> &'static str {
    match command {
        OperateCommand::Release { .. } => "requests.released",
        OperateCommand::Fail { .. } => "requests.failed",
        OperateCommand::Answer { .. } => "requests.answered",
    }
}

fn sentence(after: &QueueRequest, command: &OperateCommand) -> String {
    let what = format!("\"{}\" of {}", after.capability, after.app_slug);
    match command {
        OperateCommand::Release { .. } => format!("Took {what} from its agent; it goes back to the queue"),
        OperateCommand::Fail { .. } => format!("Ended {what} as failed"),
        OperateCommand::Answer { .. } => format!("Answered the agent's question about {what}"),
    }
}
