//! Conditions on the record of a change, as the change tells it.
//!
//! A record that was deleted is in no table any more, and one that was changed may have been changed again. So the
//! condition is asked of the row that the change carries. Where it leads to other records, those of the tables count,
//! and those that the same transaction deleted as they were before it: a rule of a card that asks for its list is
//! decided the same when list and card went together.

use inn_ports::{Change, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_rules::filter::Expr;
use inn_rules::realtime::Action;
use serde_json::Value;

use crate::PgStore;
use crate::columns::{self, SqlValue};
use crate::filter_sql::{self, SqlParams, Tables};

/// Conditions of one statement.
const PIECE: usize = 32;

pub(super) async fn decide(
    store: &PgStore,
    app: &AppSnapshot,
    collection: &Collection,
    change: &Change,
    conditions: &[Expr],
) -> StoreResult<Vec<bool>> {
    let row = Value::Object(change.row.clone()).to_string();
    let mut decided = Vec::with_capacity(conditions.len());
    for piece in conditions.chunks(PIECE) {
        decided.extend(ask(store, app, collection, change, &row, piece).await?);
    }
    Ok(decided)
}

async fn ask(
    store: &PgStore,
    app: &AppSnapshot,
    collection: &Collection,
    change: &Change,
    row: &str,
    conditions: &[Expr],
) -> StoreResult<Vec<bool>> {
    let mut params = SqlParams::starting_at(1);
    let carried = params.push(SqlValue::Text(row.to_owned()));
    let table = columns::table(app.id, collection);
    let tables = match change.action {
        Action::Delete => Tables::before(app.id, change.transaction),
        Action::Create | Action::Update => Tables::of(app.id),
    };
    let conditions: Vec<String> = conditions
        .iter()
        .map(|condition| format!("({})", filter_sql::render_in(condition, tables, "t", &mut params)))
        .collect();
    let text = format!(
        "SELECT ARRAY[{}]::boolean[] FROM json_populate_record(NULL::{table}, {carried}::json) AS t",
        conditions.join(", ")
    );
    let client = store.client().await?;
    let rows = client.query_typed(&text, &params.typed()).await.map_err(crate::commit::moved("verdicts"))?;
    let answers: Vec<Option<bool>> = match rows.first() {
        Some(row) => row.try_get(0).map_err(crate::error::broken("verdicts"))?,
        None => return Err(StoreError::Broken),
    };
    // What is neither yes nor no lets nobody through.
    Ok(answers.into_iter().map(|answer| answer == Some(true)).collect())
}
