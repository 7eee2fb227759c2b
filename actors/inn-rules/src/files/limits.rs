//! How large, how many.

use inn_protocol::model::{Collection, Field, FieldKind};

const DEFAULT_FILE: u64 = 5 << 20;
/// Beside the fields' own limits (reference notes, section B).
const BODY: u64 = 32 << 20;
const DEFAULT_JSON: u64 = 1 << 20;
const DEFAULT_EDITOR: u64 = 5 << 20;

/// Most bytes one file of the field may have; 0 for a field that takes none.
pub fn most_bytes(field: &Field) -> u64 {
    match &field.kind {
        FieldKind::File { max_size: 0, .. } => DEFAULT_FILE,
        FieldKind::File { max_size, .. } => *max_size,
        _ => 0,
    }
}

/// Most files the field holds; 0 for a field that takes none.
pub fn most_files(field: &Field) -> u64 {
    match &field.kind {
        FieldKind::File { max_select, .. } => u64::from(*max_select).max(1),
        _ => 0,
    }
}

/// Most bytes of a whole form for the collection: 32 MiB and what its large fields may hold.
pub fn body_limit(collection: &Collection) -> u64 {
    let large = |field: &Field| match &field.kind {
        FieldKind::File { .. } => most_bytes(field).saturating_mul(most_files(field)),
        FieldKind::Json { max_size } => or(*max_size, DEFAULT_JSON),
        FieldKind::Editor { max_size } => or(*max_size, DEFAULT_EDITOR),
        _ => 0,
    };
    collection.fields.iter().map(large).fold(BODY, u64::saturating_add)
}

fn or(limit: u64, default: u64) -> u64 {
    if limit == 0 { default } else { limit }
}
