//! Looking at requests, in the queue or in the history.

use inn_ports::StoreResult;
use inn_protocol::request::{QueueRequest, RequestState};
use inn_protocol::{AgentId, AppId, RequestId, UserId};

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

/// In the queue only: what has ended long ago takes no result.
const HELD: &str = concat!(
    "SELECT ",
    rows::columns!(),
    " FROM inn.requests r JOIN inn.apps a ON a.id = r.app WHERE r.id = ANY($1) AND $2::text = ANY(r.held_by)"
);

pub(super) async fn held_many(
    store: &PgStore,
    agent: &AgentId,
    requests: &[RequestId],
) -> StoreResult<Vec<QueueRequest>> {
    let client = store.client().await?;
    let ids: Vec<_> = requests.iter().map(|request| request.uuid()).collect();
    let rows = all(&client, "held requests", HELD, &[&ids, &agent.as_str()]).await?;
    rows.iter().map(rows::request).collect()
}

/// Newest first, at most 500; everybody's, or one person's.
pub(super) async fn list(
    store: &PgStore,
    app: AppId,
    state: Option<RequestState>,
    requester: Option<UserId>,
    limit: u32,
) -> StoreResult<Vec<QueueRequest>> {
    let client = store.client().await?;
    let limit = i64::from(limit.clamp(1, 500));
    let (app, state) = (app.uuid(), state.map(RequestState::as_str));
    // Two texts, so that each walks an index of its own.
    let rows = if let Some(requester) = requester {
        let text = anywhere!(
            "r.app = $1 AND ($2::text IS NULL OR r.state = $2) AND r.requester_user = $4",
            "ORDER BY r.created_at DESC, r.id DESC LIMIT $3"
        );
        all(&client, "requests of a person", text, &[&app, &state, &limit, &requester.uuid()]).await?
    } else {
        let text = anywhere!(
            "r.app = $1 AND ($2::text IS NULL OR r.state = $2)",
            "ORDER BY r.created_at DESC, r.id DESC LIMIT $3"
        );
        all(&client, "requests", text, &[&app, &state, &limit]).await?
    };
    rows.iter().map(rows::request).collect()
}
