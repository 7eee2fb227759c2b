//! What else a call was decided from, in one argument (`inn.call_live`): that the record an app's user is signed in as still
//! has its key, that the claim a write is made under is still held.

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::call::{AppUserCheck, LiveCheck};
use inn_protocol::error::Lost;
use inn_protocol::register::CallRecord;
use inn_protocol::request::RequestState;
use inn_protocol::{Code, Refusal};
use serde_json::{Value, json};

use crate::columns::table_named;
use crate::error::{broken, verdict};

/// The function's argument; `None` for calls without either.
pub(crate) fn spec_of(live: &LiveCheck) -> Option<String> {
    let Some(claim) = &live.claim else { return spec(live.app_user.as_ref()) };
    let claim = json!({ "request": claim.request.uuid(), "epoch": claim.epoch, "agent": claim.agent });
    Some(json!({ "claim": claim }).to_string())
}

/// The refusal with which `inn.call_live` ended a statement.
pub(crate) fn claim_lost(verdict: &Value) -> Option<Refusal> {
    let lost = verdict.get("claim_lost")?;
    let message = "You no longer hold the claim this write was made under; nothing was written.";
    let refusal = Refusal::new(Code::ClaimLost, message).leg("grant");
    let state = lost.get("state").and_then(Value::as_str).and_then(RequestState::parse);
    let epoch = lost.get("epoch").and_then(Value::as_i64);
    Some(Refusal { lost: state.zip(epoch).map(|(state, epoch)| Lost { state, epoch }), ..refusal })
}

/// The argument about an app's user alone (`inn.app_user_live`).
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
    let Some(spec) = spec_of(&call.live) else { return Ok(()) };
    let statement = tx.prepare_cached("SELECT inn.call_live($1)").await.map_err(broken("account"))?;
    let row = match tx.query_one(&statement, &[&spec]).await {
        Ok(row) => row,
        Err(error) => {
            let lost = verdict(&error).as_ref().and_then(claim_lost);
            return Err(lost.map_or_else(|| broken("account")(error), StoreError::from));
        }
    };
    if row.try_get(0).map_err(broken("account"))? { Ok(()) } else { Err(StoreError::Stale) }
}
