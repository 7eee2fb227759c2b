//! How a field is kept, apart from its options.

use inn_protocol::model::{Field, FieldKind};
use serde_json::Value;

/// The column behind a field. There are no nulls, except in [`Storage::Json`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Text, zero `''`: texts, dates, single selects, relations and files, password hashes.
    Text,
    /// Double, zero 0.
    Number,
    /// Boolean, zero false.
    Bool,
    /// JSON array of texts, zero `[]`.
    List,
    /// Any JSON or null.
    Json,
    /// `{"lon":0,"lat":0}`.
    Geo,
}

pub fn storage(field: &Field) -> Storage {
    match &field.kind {
        FieldKind::Number { .. } => Storage::Number,
        FieldKind::Bool {} => Storage::Bool,
        FieldKind::Json { .. } => Storage::Json,
        FieldKind::GeoPoint {} => Storage::Geo,
        _ if field.is_multiple() => Storage::List,
        _ => Storage::Text,
    }
}

/// The value a column has when nothing was ever written to it.
pub fn zero(field: &Field) -> Value {
    crate::values::zero(field)
}
