//! Looking at requests, in the queue or in the history.

use inn_ports::StoreResult;
use inn_protocol::request::{QueueRequest, RequestState};
use inn_protocol::{AgentId, AppId, RequestId};

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, maybe};

/// One statement sees one moment, so a row on its way to the history is found in exactly one of the two places.
macro_rules! anywhere {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT ",
            rows::columns!(),
            " FROM (
                (SELECT * FROM inn.requests r WHERE ",
            $condition,
            " ",
            $order,
            ") UNION ALL (SELECT * FROM inn.requests_history r WHERE ",
            $condition,
            " ",
            $order,
            ")) r JOIN inn.apps a ON a.id = r.app ",
            $order
        )
    };
}

pub(super) async fn find(store: &PgStore, app: AppId, request: RequestId) -> StoreResult<Option<QueueRequest>> {
    let client = store.client().await?;
    let text = anywhere!("r.id = $1 AND r.app = $2", "LIMIT 1");
    let row = maybe(&client, "request", text, &[&request.uuid(), &app.uuid()]).await?;
    row.as_ref().map(rows::request).transpose()
}

pub(super) async fn held(store: &PgStore, agent: &AgentId, request: RequestId) -> StoreResult<Option<QueueRequest>> {
    let client = store.client().await?;
    let text = anywhere!("r.id = $1 AND $2::text = ANY(r.held_by)", "LIMIT 1");
    let row = maybe(&client, "held request", text, &[&request.uuid(), &agent.as_str()]).await?;
    row.as_ref().map(rows::request).transpose()
}

/// Newest first, at most 500.
pub(super) async fn list(
    store: &PgStore,
    app: AppId,
    state: Option<RequestState>,
    limit: u32,
) -> StoreResult<Vec<QueueRequest>> {
    let client = store.client().await?;
    let text = anywhere!(
        "r.app = $1 AND ($2::text IS NULL OR r.state = $2)",
        "ORDER BY r.created_at DESC, r.id DESC LIMIT $3"
    );
    let limit = i64::from(limit.clamp(1, 500));
    let rows = all(&client, "requests", text, &[&app.uuid(), &state.map(RequestState::as_str), &limit]).await?;
    rows.iter().map(rows::request).collect()
}
