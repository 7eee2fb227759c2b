//! Rows as the caller sees them: rendered, relations expanded, fields picked.

use inn_actors::Admitted;
use inn_ports::Store;
use inn_protocol::Refusal;
use inn_protocol::model::Collection;
use inn_rules::query::{self, ListParams};
use inn_rules::values::{RecordShape, render_record};
use inn_rules::{access, filter};
use serde_json::{Map, Value};

use super::expand::expand;

pub(in crate::app) async fn dress(
    store: &dyn Store,
    admitted: &Admitted,
    collection: &Collection,
    rows: Vec<Map<String, Value>>,
    params: &ListParams,
) -> Result<Vec<Value>, Refusal> {
    let mut records: Vec<_> = rows.iter().map(|row| shown(admitted, collection, row)).collect();
    if let Some(spec) = &params.expand {
        records = expand(store, admitted, collection, records, spec).await?;
    }
    let mut records: Vec<Value> = records.into_iter().map(Value::Object).collect();
    if let Some(spec) = &params.fields {
        let pick = query::FieldPick::parse(spec)?;
        for record in &mut records {
            pick.apply(record);
        }
    }
    Ok(records)
}

/// The shape of rows that are answered as they are: nothing to expand, nothing to pick.
pub(super) fn plain(admitted: &Admitted, collection: &Collection, params: &ListParams) -> Option<RecordShape> {
    let see_hidden = admitted.permit.see_hidden;
    let whole = params.expand.is_none() && params.fields.is_none();
    whole.then(|| RecordShape::of(collection, see_hidden, see_hidden)).flatten()
}

/// One row of any collection, as far as this caller may see its fields.
pub(super) fn shown(admitted: &Admitted, collection: &Collection, row: &Map<String, Value>) -> Map<String, Value> {
    let see_hidden = admitted.permit.see_hidden;
    render_record(collection, row, see_hidden, see_hidden || sees_email(admitted, collection, row))
}

/// An account's email is for the account itself and for whom `manageRule` puts in charge of it.
fn sees_email(admitted: &Admitted, collection: &Collection, row: &Map<String, Value>) -> bool {
    let (auth, Ok(app)) = (&admitted.permit.auth, admitted.app()) else { return false };
    if !collection.is_auth() || auth.record.is_none() {
        return false;
    }
    let managed = || {
        let rule = access::manage_rule(app, collection, auth, admitted.now).ok().flatten();
        rule.is_some_and(|rule| filter::matches(&rule, row))
    };
    access::is_own_record(auth, collection, row) || managed()
}
