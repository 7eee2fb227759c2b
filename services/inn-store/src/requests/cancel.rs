//! Taking a request back.

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
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
    let canceled = match cancel_within(step.tx(), app, request, reason).await {
        Ok(canceled) => canceled,
        Err(StoreError::Refused(refusal)) => return Err(step.refuse(*refusal).await),
        Err(error) => return Err(error),
    };
    let Some(after) = canceled else {
        step.abandon().await;
        // Ended long ago, or of another app.
        let Some(ended) = list::find(store, app, request).await? else { return Err(Refusal::not_found().into()) };
        let refused = rules::cancel(&rules::Facts::from(&ended), reason).err();
        return Err(refused.unwrap_or_else(Refusal::internal).id(&request).into());
    };
    let body = json!({ "request": after.id, "capability": after.capability, "state": after.state });
    step.outbox("requests.canceled", Some(app), body).await?;
    let stored =
        json!({ "request": after.id, "capability": after.capability, "state": after.state, "reason": after.reason });
    step.commit(format!("Took back \"{}\"", after.capability), facts(stored)).await?;
    Ok(after)
}

/// Takes it back as part of an open transaction. `None` when it is not in the queue (any more); refused with `conflict` when
/// it has ended.
pub(crate) async fn cancel_within(
    tx: &Transaction<'_>,
    app: AppId,
    request: RequestId,
    reason: &str,
) -> StoreResult<Option<QueueRequest>> {
    let Some(row) = maybe(tx, "lock request", LOCK, &[&request.uuid(), &app.uuid()]).await? else { return Ok(None) };
    let (current, now) = (Locked::read(&row)?, column::<DateTime<Utc>>(&row, "now")?);
    let change = rules::cancel(&current.facts, reason).map_err(|refusal| refusal.id(&request))?;
    apply(tx, &current, &change, now).await.map(Some)
}
