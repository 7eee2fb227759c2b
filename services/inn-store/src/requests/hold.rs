//! What the holder of a claim does with it.

use chrono::{DateTime, Utc};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::CallRecord;
use inn_protocol::request::{HoldCommand, QueueRequest};
use inn_protocol::{AgentId, Code, Refusal, RequestId};
use inn_rules::requests as rules;
use serde_json::json;
use uuid::Uuid;

use super::apply::{Locked, apply};
use super::{list, rows};
use crate::PgStore;
use crate::people::sql::{column, facts, maybe};

/// Before the request itself: a removal and a revocation take the same locks in the same order.
const LOCK_GRANT: &str = concat!(
    "SELECT g.id, g.revoked_at IS NOT NULL AS revoked, ",
    rows::answers!(),
    " AS answers
     FROM inn.requests r JOIN inn.grants g ON g.id = r.holder_grant
     JOIN inn.members m ON m.tenant = g.tenant AND m.user_id = g.user_id JOIN inn.users u ON u.id = m.user_id
     WHERE r.id = $1 FOR SHARE OF m, g"
);

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", now() AS now, $2::text = ANY(r.held_by) AS known FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.id = $1 FOR UPDATE OF r"
);

pub(super) async fn hold(
    store: &PgStore,
    call: &CallRecord,
    request: RequestId,
    agent: &AgentId,
    epoch: i64,
    command: &HoldCommand,
) -> StoreResult<QueueRequest> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let id = request.uuid();
    let grant = maybe(step.tx(), "lock grant", LOCK_GRANT, &[&id]).await?;
    let row = maybe(step.tx(), "lock request", LOCK, &[&id, &agent.as_str()]).await?;
    let known = row.as_ref().map(|row| column::<bool>(row, "known")).transpose()?.unwrap_or(false);
    let Some(row) = row.filter(|_| known) else {
        step.abandon().await;
        return Err(gone(store, request, agent, epoch, command).await?.into());
    };
    let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
    let change = match rules::hold(&current.facts, agent, epoch, command, now) {
        Ok(change) => change,
        Err(refusal) => return Err(step.refuse(refusal.id(&request)).await),
    };
    let held_under: Option<Uuid> = column(&row, "holder_grant")?;
    let locked = grant.as_ref().map(|grant| column::<Uuid>(grant, "id")).transpose()?;
    if locked != held_under {
        // Claimed anew between the two locks.
        step.abandon().await;
        return Err(StoreError::Stale);
    }
    let flag = |name| grant.as_ref().map(|grant| column::<bool>(grant, name)).transpose();
    if flag("revoked")?.unwrap_or(true) {
        let message = "This claim no longer holds: the grant it was made under was revoked.";
        return Err(step.refuse(Refusal::new(Code::ClaimLost, message).leg("grant").id(&request)).await);
    }
    if !flag("answers")?.unwrap_or(false) {
        return Err(step.refuse(no_longer_allowed().id(&request)).await);
    }
    let after = apply(step.tx(), &current, &change, now).await?;
    if let Some(topic) = topic(command) {
        let body = json!({ "request": after.id, "capability": after.capability, "state": after.state });
        step.outbox(topic, Some(after.app), body).await?;
    }
    let stored = json!({
        "request": after.id, "app": after.app, "capability": after.capability, "state": after.state, "epoch": after.epoch,
        "attempt": after.attempt, "leaseUntil": after.lease_until, "progress": after.progress, "result": change.result,
        "reason": after.reason, "question": change.question,
    });
    step.commit(sentence(&after, command), facts(stored)).await?;
    Ok(after)
}

/// The request itself goes back to the queue when the lease runs out.
fn no_longer_allowed() -> Refusal {
    let message = "This claim no longer holds: the person it was made for may no longer answer requests here.";
    Refusal::new(Code::ClaimLost, message)
        .leg("user")
        .fix("An owner of the tenant can make the person an editor again; then claim anew.")
}

/// Why there is nothing to hold: it ended and moved to the history, or it was never this agent's business.
async fn gone(
    store: &PgStore,
    request: RequestId,
    agent: &AgentId,
    epoch: i64,
    command: &HoldCommand,
) -> StoreResult<Refusal> {
    let Some(ended) = list::held(store, agent, request).await? else { return Ok(Refusal::not_found()) };
    Ok(match rules::hold(&rules::Facts::from(&ended), agent, epoch, command, ended.updated_at) {
        Err(refusal) => refusal.id(&request),
        // Not ended after all: it was locked a moment ago and is not in the hot table now. Ask again.
        Ok(_) => Refusal::new(Code::InProgress, "This request is being moved; send it again.").id(&request),
    })
}

/// What the world is told; a heartbeat is nobody's news.
fn topic(command: &HoldCommand) -> Option<&'static str> {
    match command {
        HoldCommand::Heartbeat => None,
        HoldCommand::Progress(_) => Some("requests.progress"),
        HoldCommand::Ask { .. } => Some("requests.asked-back"),
        HoldCommand::Complete(_) => Some("requests.completed"),
        HoldCommand::Fail { .. } => Some("requests.failed"),
        HoldCommand::Release { .. } => Some("requests.released"),
    }
}

fn sentence(after: &QueueRequest, command: &HoldCommand) -> String {
    let what = format!("\"{}\" of {}", after.capability, after.app_slug);
    match command {
        HoldCommand::Heartbeat => format!("Still works on {what}"),
        HoldCommand::Progress(progress) => format!("Works on {what}: {} ({} %)", progress.step, progress.percent),
        HoldCommand::Ask { question } => format!("Asked back about {what}: {question}"),
        HoldCommand::Complete(_) => format!("Completed {what}"),
        HoldCommand::Fail { .. } if after.state.is_terminal() => format!("Failed at {what}; no attempt is left"),
        HoldCommand::Fail { .. } => format!("Failed at {what}; it goes back to the queue"),
        HoldCommand::Release { .. } => format!("Gave {what} back to the queue"),
    }
}
