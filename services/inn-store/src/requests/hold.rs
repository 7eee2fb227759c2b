//! What the holder of a claim does with it.

use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use deadpool_postgres::Object;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::CallRecord;
use inn_protocol::request::{HoldCommand, QueueRequest, RequestState};
use inn_protocol::{AgentId, Code, Refusal, RequestId, canonical};
use inn_rules::requests as rules;
use serde_json::{Value, json};
use tokio_postgres::Error;
use tokio_postgres::types::{Json, ToSql, Type};
use uuid::Uuid;

use super::apply::{self, Locked};
use super::{claim, list, rows};
use crate::PgStore;
use crate::error::{broken, classify, verdict};
use crate::people::sql::{column, maybe, storable};
use crate::step::guard::{self, Key};
use crate::step::once;

/// What the rules decide from: the row as it is now. Nothing is locked: the statement that writes makes sure that it still is.
const LOOK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", clock_timestamp() AS now FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.id = $1 AND $2::text = ANY(r.held_by)"
);

/// One statement. The membership and the grant a claim was made under are locked before the request: a removal and a
/// revocation take the same locks in the same order. Then the row changes, if it is the version that was decided from.
fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{guard},
            under AS MATERIALIZED (
                SELECT g.revoked_at IS NOT NULL AS revoked, {answers} AS answers
                FROM pass p, inn.grants g
                JOIN inn.members m ON m.tenant = g.tenant AND m.user_id = g.user_id JOIN inn.users u ON u.id = m.user_id
                WHERE p.ok AND g.id = $29 FOR SHARE OF m, g
            ),
            held AS MATERIALIZED (
                SELECT coalesce((SELECT NOT u.revoked FROM under u), false) AS granted,
                    coalesce((SELECT u.answers FROM under u), false) AS answers
            ),
            changed AS (
                UPDATE inn.requests r SET {assignments}
                FROM pass p, held h
                WHERE p.ok AND h.granted AND h.answers AND r.id = $34 AND r.state = $35 AND r.epoch = $36
                  AND r.updated_at = $30 AND r.holder_grant = $29
                RETURNING r.*
            ),
            told AS (
                INSERT INTO inn.outbox (tenant, app, topic, body)
                SELECT c.tenant, c.app, $31::text, $32::json FROM changed c WHERE $31::text IS NOT NULL
            ),
            said AS MATERIALIZED (SELECT $33::text AS sentence, $50::text AS \"row\" FROM changed),{keep}
            SELECT {columns} FROM (
                SELECT CASE WHEN NOT EXISTS (SELECT FROM changed) THEN inn.stop(json_build_object(
                    'free', p.free, 'live', p.live, 'fresh', p.fresh, 'ok', p.ok, 'granted', h.granted, 'answers', h.answers
                )::text) END AS stopped
                FROM pass p, held h
            ) s LEFT JOIN changed r ON s.stopped IS NULL LEFT JOIN inn.apps a ON a.id = r.app",
            guard = guard::GUARD,
            answers = rows::answers!(),
            assignments = apply::assignments(33),
            keep = once::KEEP,
            columns = rows::columns!(),
        )
    })
}

/// How often a request is looked at again that somebody else keeps changing.
const TRIES: usize = 5;

/// Types of the statement's own parameters before those of the transition.
const TYPES: [Type; 5] = [Type::UUID, Type::TIMESTAMPTZ, Type::TEXT, Type::JSON, Type::TEXT];

pub(super) async fn hold(
    store: &PgStore,
    call: &CallRecord,
    request: RequestId,
    agent: &AgentId,
    epoch: i64,
    command: &HoldCommand,
) -> StoreResult<QueueRequest> {
    let client = store.client().await?;
    for _ in 0..TRIES {
        let Some(row) = maybe(&client, "look at a claim", LOOK, &[&request.uuid(), &agent.as_str()]).await? else {
            drop(client);
            return Err(gone(store, request, agent, epoch, command).await?.into());
        };
        let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
        let change = rules::hold(&current.facts, agent, epoch, command, now).map_err(|refusal| refusal.id(&request))?;
        let grant: Option<Uuid> = column(&row, "holder_grant")?;
        match write(&client, call, &current, &change, (grant, now), command).await {
            Ok(None) => {}
            Ok(Some(after)) => return Ok(after),
            Err(StoreError::Unknown) => {
                // The pool may not have noticed yet that this connection is dead; the next call must not get it.
                drop(Object::take(client));
                return Err(StoreError::Unknown);
            }
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Stale)
}

async fn write(
    client: &Object,
    call: &CallRecord,
    current: &Locked,
    change: &rules::Change,
    (grant, now): (Option<Uuid>, DateTime<Utc>),
    command: &HoldCommand,
) -> StoreResult<Option<QueueRequest>> {
    let request = &current.request;
    let stored = canonical::to_string(&json!({
        "request": request.id, "app": request.app, "capability": request.capability, "state": change.state,
        "epoch": change.epoch, "attempt": change.attempt, "leaseUntil": change.lease_until,
        "progress": change.progress.as_ref().or(request.progress.as_ref()), "result": change.result,
        "reason": change.reason, "question": change.question,
    }));
    let told = json!({ "request": request.id, "capability": request.capability, "state": change.state });
    let sentence = sentence(request, change.state, command);
    let (topic, told, sentence) = (topic(command), Json(&told), storable(&sentence));
    let (guard, entry) = (guard::Parameters::new(call, None), once::Entry::new(&call.draft));
    let values = apply::Values::new(current, change, now);
    let own: [&(dyn ToSql + Sync); 5] = [&grant, &request.updated_at, &topic, &told, &sentence];
    let types: Vec<Type> =
        guard::TYPES.into_iter().chain(once::TYPES).chain(TYPES).chain(apply::TYPES).chain([Type::TEXT]).collect();
    let statement = client.prepare_typed_cached(text(), &types).await.map_err(broken("hold"))?;
    let stored: &(dyn ToSql + Sync) = &stored;
    let parameters: Vec<_> =
        guard.list().into_iter().chain(entry.list()).chain(own).chain(values.list()).chain([stored]).collect();
    match client.query_one(&statement, &parameters).await {
        Ok(row) => rows::request(&row).map(Some),
        Err(error) => stopped(client, call, request.id, &error).await,
    }
}

/// `None` when somebody else changed the request since it was looked at.
async fn stopped(
    client: &Object,
    call: &CallRecord,
    request: RequestId,
    error: &Error,
) -> StoreResult<Option<QueueRequest>> {
    let Some(verdict) = verdict(error) else { return Err(classify("hold", error, StoreError::Unknown)) };
    if claim::passed(&verdict).check()? == Key::Used {
        return Err(guard::used(client, call).await?.into());
    }
    let flag = |name: &str| verdict.get(name).and_then(Value::as_bool).unwrap_or(false);
    if !flag("granted") {
        return Err(grant_revoked().id(&request).into());
    }
    if !flag("answers") {
        return Err(no_longer_allowed().id(&request).into());
    }
    Ok(None)
}

pub(super) fn grant_revoked() -> Refusal {
    let message = "This claim no longer holds: the grant it was made under was revoked.";
    Refusal::new(Code::ClaimLost, message).leg("grant")
}

/// The request itself goes back to the queue when the lease runs out.
pub(super) fn no_longer_allowed() -> Refusal {
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

fn sentence(request: &QueueRequest, after: RequestState, command: &HoldCommand) -> String {
    let what = format!("\"{}\" of {}", request.capability, request.app_slug);
    match command {
        HoldCommand::Heartbeat => format!("Still works on {what}"),
        HoldCommand::Progress(progress) => format!("Works on {what}: {} ({} %)", progress.step, progress.percent),
        HoldCommand::Ask { question } => format!("Asked back about {what}: {question}"),
        HoldCommand::Complete(_) => format!("Completed {what}"),
        HoldCommand::Fail { .. } if after.is_terminal() => format!("Failed at {what}; no attempt is left"),
        HoldCommand::Fail { .. } => format!("Failed at {what}; it goes back to the queue"),
        HoldCommand::Release { .. } => format!("Gave {what} back to the queue"),
    }
}
