//! Whether the record an app's user is signed in as still has the key the call was decided with (`inn.app_user_live`).

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::call::AppUserCheck;
use inn_protocol::register::CallRecord;
use serde_json::json;

use crate::columns::table_named;
use crate::error::broken;

/// The function's argument; `None` for every other caller.
pub(crate) fn spec(check: Option<&AppUserCheck>) -> Option<String> {
    check.map(|check| {
        let table = table_named(check.app, &check.collection);
        // PostgreSQL's JSON takes no U+0000, and no record has one in its id.
        let record = check.record.replace('\0', "");
        json!({ "table": table, "record": record, "key": check.token_key }).to_string()
    })
}

/// `Stale` when the key is another one by now; else it stays until the transaction ends.
pub(super) async fn pass(tx: &Transaction<'_>, call: &CallRecord) -> StoreResult<()> {
    let Some(spec) = spec(call.live.app_user.as_ref()) else { return Ok(()) };
    let statement = tx.prepare_cached("SELECT inn.app_user_live($1)").await.map_err(broken("account"))?;
    let row = tx.query_one(&statement, &[&spec]).await.map_err(broken("account"))?;
    if row.try_get(0).map_err(broken("account"))? { Ok(()) } else { Err(StoreError::Stale) }
}
