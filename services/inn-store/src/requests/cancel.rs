//! Taking a request back.

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::register::CallRecord;
use inn_protocol::request::QueueRequest;
use inn_protocol::{AppId, Refusal, RequestId};
use inn_rules::requests as rules;
use serde_json::json;

use super::apply::{Locked, apply};
use super::{list, rows};
use crate::PgStore;
use crate::people::sql::{column, facts, maybe};

const LOCK: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", now() AS now FROM inn.requests r JOIN inn.apps a ON a.id = r.app WHERE r.id = $1 AND r.app = $2 FOR UPDATE OF r"
);

pub(super) async fn cancel(
    store: &PgStore,
    call: &CallRecord,
    app: AppId,
    request: RequestId,
    reason: &str,
) -> StoreResult<QueueRequest> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(row) = maybe(step.tx(), "lock request", LOCK, &[&request.uuid(), &app.uuid()]).await? else {
        step.abandon().await;
        // Ended long ago, or of another app.
        let Some(ended) = list::find(store, app, request).await? else { return Err(Refusal::not_found().into()) };
        let refused = rules::cancel(&rules::Facts::from(&ended), reason).err();
        return Err(refused.unwrap_or_else(Refusal::internal).id(&request).into());
    };
    let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
    let change = match rules::cancel(&current.facts, reason) {
        Ok(change) => change,
        Err(refusal) => return Err(step.refuse(refusal.id(&request)).await),
    };
    let after = apply(step.tx(), &current, &change, now).await?;
    let body = json!({ "request": after.id, "capability": after.capability, "state": after.state });
    step.outbox("requests.canceled", Some(app), body).await?;
    let stored =
        json!({ "request": after.id, "capability": after.capability, "state": after.state, "reason": after.reason });
    step.commit(format!("Took back \"{}\"", after.capability), facts(stored)).await?;
    Ok(after)
}
