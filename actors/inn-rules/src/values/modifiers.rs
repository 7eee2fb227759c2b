//! PocketBase's modifier keys: `field+`, `+field`, `field-` and `field:autogenerate` (reference notes, C.2).

use inn_protocol::model::{Collection, Field, FieldKind};
use serde_json::{Value, json};

use super::coerce;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Modifier {
    /// Number: add. List: put at the end.
    Append,
    /// List: put, or move, to the front.
    Prepend,
    /// Number: subtract. List: take out.
    Remove,
    /// Text: make one up behind the given prefix.
    Autogenerate,
}

/// The field and modifier a body key stands for. A key that is itself a field is no modifier.
pub(crate) fn modifier<'c>(collection: &'c Collection, key: &str) -> Option<(&'c Field, Modifier)> {
    let (name, modifier) = if let Some(name) = key.strip_suffix('+') {
        (name, Modifier::Append)
    } else if let Some(name) = key.strip_suffix('-') {
        (name, Modifier::Remove)
    } else if let Some(name) = key.strip_prefix('+') {
        (name, Modifier::Prepend)
    } else {
        (key.strip_suffix(":autogenerate")?, Modifier::Autogenerate)
    };
    let field = collection.field(name)?;
    let defined = match &field.kind {
        FieldKind::Number { .. } => matches!(modifier, Modifier::Append | Modifier::Remove),
        FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. } => {
            modifier != Modifier::Autogenerate
        }
        FieldKind::Text { autogenerate_pattern, primary_key, .. } => {
            modifier == Modifier::Autogenerate && !autogenerate_pattern.is_empty() && !primary_key
        }
        _ => false,
    };
    (defined && collection.field(key).is_none()).then_some((field, modifier))
}

/// A list field after a modifier; a single one keeps the last value.
pub(super) fn change_list(field: &Field, stored: &Value, modifier: Modifier, operand: &Value) -> Value {
    let before = coerce::stored_list(stored);
    let operand = coerce::list(operand);
    let rest = |taken: &[String]| before.iter().filter(|v| !taken.contains(v)).cloned().collect::<Vec<_>>();
    let mut after = match modifier {
        Modifier::Remove => rest(&operand),
        Modifier::Prepend => [operand.clone(), rest(&operand)].concat(),
        Modifier::Append | Modifier::Autogenerate => {
            let new = operand.into_iter().filter(|v| !before.contains(v));
            before.iter().cloned().chain(new).collect()
        }
    };
    if field.is_multiple() { json!(after) } else { Value::String(after.pop().unwrap_or_default()) }
}
