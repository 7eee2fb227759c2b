//! Many results in one transaction, each standing for itself.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::register::CallRecord;
use inn_protocol::request::{Completion, HoldCommand};
use inn_protocol::{AgentId, AppId, Code, Refusal, RequestId};
use inn_rules::requests as rules;
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

use super::apply::{Locked, Many};
use super::hold::{grant_revoked, no_longer_allowed};
use super::rows;
use crate::PgStore;
use crate::people::sql::{all, column, facts};

/// Before the requests themselves, in the order of ids, as everywhere else.
const LOCK_GRANTS: &str = concat!(
    "SELECT g.id, g.revoked_at IS NOT NULL AS revoked, ",
    rows::answers!(),
    " AS answers
     FROM inn.grants g JOIN inn.members m ON m.tenant = g.tenant AND m.user_id = g.user_id JOIN inn.users u ON u.id = m.user_id
     WHERE g.id IN (SELECT r.holder_grant FROM inn.requests r WHERE r.id = ANY($1) AND $2::text = ANY(r.held_by))
     ORDER BY g.id FOR SHARE OF m, g"
);

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", clock_timestamp() AS now FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.id = ANY($1) AND $2::text = ANY(r.held_by) ORDER BY r.id FOR UPDATE OF r"
);

/// Answers for each of them, in their order, whether it was stored.
pub(super) async fn complete_many(
    store: &PgStore,
    call: &CallRecord,
    agent: &AgentId,
    items: &[Completion],
) -> StoreResult<Vec<Result<(), Refusal>>> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let ids: Vec<Uuid> = items.iter().map(|item| item.request.uuid()).collect();
    let grants = all(step.tx(), "lock grants", LOCK_GRANTS, &[&ids, &agent.as_str()]).await?;
    let grants: BTreeMap<Uuid, &Row> =
        grants.iter().map(|row| Ok((column::<Uuid>(row, "id")?, row))).collect::<StoreResult<_>>()?;
    let locked = all(step.tx(), "lock requests", LOCK, &[&ids, &agent.as_str()]).await?;
    let mut held = BTreeMap::new();
    for row in &locked {
        let current = Locked::read(row)?;
        let refusal = match column::<Option<Uuid>>(row, "holder_grant")?.and_then(|grant| grants.get(&grant)) {
            Some(grant) if column(grant, "revoked")? => Some(grant_revoked()),
            Some(grant) if !column::<bool>(grant, "answers")? => Some(no_longer_allowed()),
            // Without a grant it has ended or is back in the queue: the rules say so.
            _ => None,
        };
        held.insert(current.request.id, (current, refusal, column::<DateTime<Utc>>(row, "now")?));
    }
    let mut seen = BTreeSet::new();
    let mut answers = Vec::with_capacity(items.len());
    let mut changes = Vec::new();
    for item in items {
        let decided = decide(agent, item, held.get(&item.request), seen.insert(item.request));
        answers.push(match decided {
            Ok((current, change)) => {
                changes.push((current, change));
                Ok(())
            }
            Err(refusal) => Err(refusal.id(&item.request)),
        });
    }
    if changes.is_empty() {
        // Nothing was stored: the first refusal stands for the call.
        let refusal = answers.iter().find_map(|answer| answer.as_ref().err()).cloned();
        return Err(step.refuse(refusal.unwrap_or_else(Refusal::not_found)).await);
    }
    let mut many = Many::default();
    for (current, change) in &changes {
        many.add(current, change);
    }
    many.apply(step.tx()).await?;
    let mut apps: BTreeMap<AppId, Vec<RequestId>> = BTreeMap::new();
    for (current, _) in &changes {
        apps.entry(current.request.app).or_default().push(current.request.id);
    }
    for (app, requests) in apps {
        step.outbox("requests.completed", Some(app), json!({ "requests": requests, "state": "completed" })).await?;
    }
    let one = |(current, change): &(&Locked, rules::Change)| {
        json!({
            "request": current.request.id, "app": current.request.app, "capability": current.request.capability,
            "epoch": change.epoch, "result": change.result,
        })
    };
    let stored = json!({ "completed": changes.iter().map(one).collect::<Vec<_>>() });
    step.commit(format!("Completed {} requests", changes.len()), facts(stored)).await?;
    Ok(answers)
}

type Held = (Locked, Option<Refusal>, DateTime<Utc>);

fn decide<'h>(
    agent: &AgentId,
    item: &Completion,
    held: Option<&'h Held>,
    first: bool,
) -> Result<(&'h Locked, rules::Change), Refusal> {
    if !first {
        return Err(Refusal::new(
            Code::InvalidParameter,
            "This request stands in the list twice; the first one counts.",
        ));
    }
    let Some((current, refusal, now)) = held else { return Err(Refusal::not_found()) };
    let command = HoldCommand::Complete(item.result.clone());
    let change = rules::hold(&current.facts, agent, item.epoch, &command, *now)?;
    match refusal {
        Some(refusal) => Err(refusal.clone()),
        None => Ok((current, change)),
    }
}
