//! Did what was asked for land? (A2App read-back, reference notes B.7; the caller rolls back when it did not.)

use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::{Refusal, Violation};
use serde_json::{Map, Value};

use super::coerce;
use super::problem::{self, FieldProblem};

/// Nothing in it: null, the empty text, a list of nothing.
pub fn blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(blank),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Fields the body asks to hold something. Passwords and what the server manages are not read back.
pub fn read_back_fields(collection: &Collection, body: &Map<String, Value>) -> Vec<String> {
    let asked = body.iter().filter_map(|(key, value)| collection.field(key).map(|field| (field, value)));
    let asked = asked.filter(|(field, value)| {
        let says_something = match &field.kind {
            FieldKind::Password { .. } | FieldKind::Autodate { .. } => false,
            FieldKind::Json { .. } => coerce::json_value(value).is_ok_and(|value| !blank(&value)),
            FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. } => {
                // An object becomes an empty list, which is not what was asked for.
                value.is_object() || !coerce::list(value).is_empty()
            }
            _ => !blank(value),
        };
        says_something && !field.is_read_only(collection)
    });
    asked.map(|(field, _)| field.name.clone()).collect()
}

/// Fields of [`read_back_fields`] that the stored row has nothing in.
pub fn lost(read_back: &[String], row: &Map<String, Value>) -> Vec<Violation> {
    let lost = read_back.iter().filter(|field| row.get(*field).is_none_or(blank));
    lost.map(|field| FieldProblem::new(field, &problem::NOT_STORED).violation()).collect()
}

/// The refusal for what was [`lost`]; the transaction must be rolled back with it.
pub fn not_stored(lost: Vec<Violation>) -> Refusal {
    let names: Vec<_> = lost.iter().map(|violation| violation.field.as_str()).collect();
    let message = format!(
        "Rejected by a2app (not_stored): the database did not store {}. Everything was rolled back; do not report this \
         as done.",
        names.join(", ")
    );
    Refusal { code: inn_protocol::Code::NotStored, ..Refusal::violations(message, lost) }
}

/// A relation field names a record that is not there. `got` is the value of the field.
pub fn missing_reference(field: &str, collection: &str, got: &Value) -> Violation {
    FieldProblem::with(field, &problem::NO_SUCH_RECORD, &collection).got(got).violation()
}

/// An account of another collection has this id.
pub fn taken_account_id(id: &str) -> Refusal {
    let problem = FieldProblem::new("id", &problem::ACCOUNT_ID).got(&id.into());
    problem::Problems(vec![problem]).into_refusal()
}

/// A unique index is violated: every column of it says so.
pub fn not_unique<'a>(columns: impl IntoIterator<Item = &'a str>) -> Refusal {
    let problems = columns.into_iter().map(|column| FieldProblem::new(column, &problem::NOT_UNIQUE));
    problem::Problems(problems.collect()).into_refusal()
}
