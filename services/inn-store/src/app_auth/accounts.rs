//! The records themselves: found by what names them, changed by what somebody proved.

use std::sync::Arc;

use inn_ports::{AccountChange, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::receipt::{Receipt, Verb};
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Refusal};
use inn_rules::values;
use serde_json::{Map, Value, json};

use crate::columns::{self, SqlValue, ident};
use crate::error::{broken, violated};
use crate::filter_sql::SqlParams;
use crate::people::sql::{facts, maybe};
use crate::{PgStore, ddl, outbox, register};

/// The whole row whose `field` is this text.
pub(super) async fn find(
    store: &PgStore,
    app: &AppSnapshot,
    collection: &Collection,
    field: &str,
    text: &str,
) -> StoreResult<Option<Map<String, Value>>> {
    // PostgreSQL takes no U+0000 in a text, and nothing kept has one. What is empty names nobody.
    if text.contains('\0') || text.is_empty() || !collection.is_auth() {
        return Ok(None);
    }
    let table = columns::table(app.id, collection);
    let statement = format!(
        "SELECT {} FROM {table} AS t WHERE t.{} = $1 ORDER BY t.id LIMIT 1",
        columns::row_json(collection, "t"),
        ident(field)
    );
    let client = store.client().await?;
    let row = maybe(&client, "account", &statement, &[&text]).await?;
    let row = row.as_ref().map(|row| row.try_get::<_, &str>(0).map_err(broken("account"))).transpose()?;
    row.map(register::object).transpose()
}

/// Sets fields of an account whose `tokenKey` is still the one the caller proved to know.
pub(super) async fn change(
    store: &PgStore,
    call: &CallRecord,
    app: &Arc<AppSnapshot>,
    collection: &Collection,
    change: &AccountChange,
) -> StoreResult<Option<Receipt>> {
    let mut params = SqlParams::starting_at(1);
    let id = params.push(SqlValue::Text(change.record.clone()));
    let key = params.push(SqlValue::Text(change.token_key.clone()));
    let mut sets = Vec::new();
    for field in columns::stored_fields(collection) {
        let column = ident(&field.name);
        if let Some(value) = change.set.get(&field.name) {
            let value = columns::param(field, value).map_err(|violation| {
                StoreError::from(Refusal::violations("A value cannot be stored.", vec![violation]))
            })?;
            sets.push(format!("{column} = {}", params.push(value)));
        } else if matches!(field.kind, FieldKind::Autodate { on_update: true, .. }) {
            sets.push(format!(
                "{column} = to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS\"Z\"')"
            ));
        }
    }
    if sets.is_empty() {
        return Err(Refusal::internal().into());
    }
    let statement = format!(
        "UPDATE {} AS t SET {} WHERE t.id = {id} AND t.\"tokenKey\" = {key} RETURNING {}",
        columns::table(app.id, collection),
        sets.join(", "),
        outbox::whole(collection, "t").unwrap_or_else(|| columns::row_json(collection, "t"))
    );
    let mut client = store.client().await?;
    let step = store.begin_for(&mut client, call, Some(&change.record)).await?;
    let changed = match step.tx().query_typed(&statement, &params.typed()).await {
        Ok(changed) => changed,
        Err(error) => {
            let refused = match violated(&error) {
                Some(index) => taken(collection, &index),
                None => return Err(broken("change account")(error)),
            };
            return Err(step.refuse(refused).await);
        }
    };
    let Some(changed) = changed.first() else {
        step.abandon().await;
        return Ok(None);
    };
    let whole: &str = changed.try_get(0).map_err(broken("change account"))?;
    outbox::changed(step.tx(), app.id, Verb::Update, &collection.name, &change.record, whole).await?;
    // What changed is told by name: values of accounts are secrets, or belong to whoever they are about.
    let names: Vec<&str> = change.set.keys().map(String::as_str).filter(|name| *name != "tokenKey").collect();
    let said = json!({ "account": format!("{}/{}", collection.name, change.record), "changed": names });
    let receipt = step.commit(change.sentence.clone(), facts(said)).await;
    store.tell().await;
    receipt.map(Some)
}

fn taken(collection: &Collection, index: &str) -> Refusal {
    let fields = ddl::unique_fields(collection, index).unwrap_or_default();
    let mut refusal = values::not_unique(fields.iter().map(String::as_str));
    refusal.code = Code::NotUnique;
    refusal
}
