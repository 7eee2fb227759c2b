//! Putting a request into the queue.

use inn_ports::{AskReceipt, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::register::CallRecord;
use inn_protocol::request::NewRequest;
use inn_protocol::{Code, Refusal, RequestId, UserId};
use serde_json::json;

use super::rows;
use crate::PgStore;
use crate::people::sql::{column, facts, maybe, one, readable};

/// Counted up to the limit only. Askers do not wait for each other, so as many as there are connections may pass at once.
const OPEN: &str = "
SELECT count(*) AS open FROM (SELECT FROM inn.requests WHERE app = $1 AND ended_at IS NULL LIMIT $2) counted";

const ASK: &str = concat!(
    "WITH r AS (
        INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_user, requester_label, lease_seconds,
            attempts, hard_seconds, priority, replay_of)
        SELECT $1, a.tenant, a.id, $4, $5::json, $6, $7, $8, $9, $10, $11, $12 FROM inn.apps a
        WHERE a.id = $2 AND a.tenant = $3 AND a.status = 'active' AND $4::text = ANY(a.consented)
        RETURNING *
     )
     SELECT ",
    rows::columns!(),
    " FROM r JOIN inn.apps a ON a.id = r.app"
);

pub(super) async fn ask(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    new: &NewRequest,
) -> StoreResult<AskReceipt> {
    readable("requester", &new.requester_label, 320)?;
    let mut client = store.client().await?;
    let step = store.begin_for(&mut client, call, Some(&new.id.to_string())).await?;
    let limit = i64::from(new.max_open);
    let open: i64 = column(&one(step.tx(), "count open requests", OPEN, &[&app.id.uuid(), &limit]).await?, "open")?;
    if open >= limit {
        let message = format!(
            "This app has {open} requests waiting for agents, which is the most it may have. Ask again when some are done."
        );
        return Err(step.refuse(Refusal::new(Code::RateLimited, message).after(30).leg("app")).await);
    }
    let row = maybe(
        step.tx(),
        "ask",
        ASK,
        &[
            &new.id.uuid(),
            &app.id.uuid(),
            &app.tenant.uuid(),
            &new.capability,
            &new.payload,
            &new.requester.map(UserId::uuid),
            &new.requester_label,
            &rows::stored(new.lease_seconds.max(1)),
            &rows::stored(new.attempts.max(1)),
            &rows::stored(new.hard_seconds.max(1)),
            &i16::from(new.priority.clamp(1, 5)),
            &new.replay_of.map(RequestId::uuid),
        ],
    )
    .await?;
    let Some(row) = row else {
        let message = format!("The app's owner has not consented to \"{}\".", new.capability);
        let refusal = Refusal::new(Code::NotConsented, message).leg("app");
        return Err(step.refuse(refusal.fix("An owner of the tenant can consent to it.")).await);
    };
    let request = rows::request(&row)?;
    let body = json!({ "request": request.id, "capability": request.capability, "state": request.state });
    step.outbox("requests.submitted", Some(request.app), body).await?;
    let stored = json!({
        "request": request.id, "capability": request.capability, "state": request.state,
        "requester": request.requester, "requesterLabel": request.requester_label, "payload": request.payload,
        "priority": request.priority, "replayOf": request.replay_of,
    });
    let receipt = step.commit(format!("Asked agents for \"{}\"", request.capability), facts(stored)).await?;
    Ok(AskReceipt { request, receipt })
}
