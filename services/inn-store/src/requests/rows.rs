//! Rows to the words of the protocol.

use inn_ports::StoreResult;
use inn_protocol::request::{Progress, QueueRequest, RequestState};
use inn_protocol::{AppId, RequestId, TenantId, UserId};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Json;
use uuid::Uuid;

use crate::grants::agent_id;
use crate::people::sql::{column, unreadable};

/// The columns of a request `r` of an app `a`, as [`request`] reads them.
macro_rules! columns {
    () => {
        "r.id, r.tenant, r.app, a.slug AS app_slug, r.capability, r.payload, r.state, r.requester_user, r.requester_label,
         r.attempt, r.attempts, r.epoch, r.holder, r.holder_grant, r.acknowledged, r.lease_seconds, r.lease_until,
         r.hard_seconds, r.hard_until, r.priority, r.next_at, r.progress, r.result, r.reason, r.questions, r.past_attempts,
         r.replay_of, r.created_at, r.updated_at, r.lane, r.rank, r.ready"
    };
}
pub(super) use columns;

/// Whether a member `m`, who is the user `u`, may have requests answered for them: answering is writing, so an agent may
/// as long as its person is at least an editor here.
macro_rules! answers {
    () => {
        "(m.removed_at IS NULL AND m.role IN ('editor', 'owner') AND u.disabled_at IS NULL)"
    };
}
pub(crate) use answers;

pub(super) fn request(row: &Row) -> StoreResult<QueueRequest> {
    let state: &str = column(row, "state")?;
    let state = RequestState::parse(state).ok_or_else(|| unreadable("state of a request", state))?;
    let progress = column::<Option<Value>>(row, "progress")?.map(serde_json::from_value::<Progress>);
    let progress = progress.transpose().map_err(|error| unreadable("progress", &error.to_string()))?;
    Ok(QueueRequest {
        id: RequestId::from_uuid(column(row, "id")?),
        tenant: TenantId::from_uuid(column(row, "tenant")?),
        app: AppId::from_uuid(column(row, "app")?),
        app_slug: column(row, "app_slug")?,
        capability: column(row, "capability")?,
        payload: column(row, "payload")?,
        state,
        requester: column::<Option<Uuid>>(row, "requester_user")?.map(UserId::from_uuid),
        requester_label: column(row, "requester_label")?,
        attempt: count(row, "attempt")?,
        attempts: count(row, "attempts")?,
        epoch: column(row, "epoch")?,
        holder: column::<Option<&str>>(row, "holder")?.map(agent_id).transpose()?,
        acknowledged: column(row, "acknowledged")?,
        lease_seconds: count(row, "lease_seconds")?,
        lease_until: column(row, "lease_until")?,
        hard_until: column(row, "hard_until")?,
        hard_seconds: count(row, "hard_seconds")?,
        priority: u8::try_from(column::<i16>(row, "priority")?).map_err(|_| unreadable("count", "priority"))?,
        progress,
        result: column(row, "result")?,
        reason: column(row, "reason")?,
        questions: list(row, "questions")?,
        past_attempts: list(row, "past_attempts")?,
        replay_of: column::<Option<Uuid>>(row, "replay_of")?.map(RequestId::from_uuid),
        created_at: column(row, "created_at")?,
        updated_at: column(row, "updated_at")?,
    })
}

fn list<T: DeserializeOwned>(row: &Row, name: &str) -> StoreResult<Vec<T>> {
    let list: Json<Vec<T>> = column(row, name)?;
    Ok(list.0)
}

fn count(row: &Row, name: &str) -> StoreResult<u32> {
    let number: i32 = column(row, name)?;
    u32::try_from(number).map_err(|_| unreadable("count", name))
}

/// A count as the column holds it; one that does not fit is as good as without limit.
pub(super) fn stored(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
