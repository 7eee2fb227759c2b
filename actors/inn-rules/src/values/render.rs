//! A stored row as PocketBase answers it.

use std::collections::BTreeMap;

use inn_protocol::model::{Collection, Field, FieldKind};
use serde_json::{Map, Value};

use super::{coerce, number_value};

/// Every visible field, `collectionId` and `collectionName`, keys in alphabetical order.
///
/// Passwords and `tokenKey` are never shown; hidden fields with `see_hidden` (owners of the app). The email of an auth
/// record is left out unless the record makes it visible or `see_email` says that the caller is that record or manages
/// it. Whole numbers have no fraction, as Go writes them; beyond 2^53 the same number may be spelled differently.
pub fn render_record(
    collection: &Collection,
    row: &Map<String, Value>,
    see_hidden: bool,
    see_email: bool,
) -> Map<String, Value> {
    let visible = collection.fields.iter().filter(|field| is_visible(collection, field, row, see_hidden, see_email));
    let fields = visible.map(|field| (field.name.as_str(), shown(field, row)));
    let about = [("collectionId", &collection.id), ("collectionName", &collection.name)];
    let about = about.into_iter().map(|(name, text)| (name, Value::String(text.clone())));
    let sorted: BTreeMap<_, _> = fields.chain(about).collect();
    sorted.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn is_visible(
    collection: &Collection,
    field: &Field,
    row: &Map<String, Value>,
    see_hidden: bool,
    see_email: bool,
) -> bool {
    let email = collection.is_auth() && field.name == "email";
    let email_told = see_email || row.get("emailVisibility") == Some(&Value::Bool(true));
    shown_always(collection, field, see_hidden) && (!email || email_told)
}

/// Apart from what the row itself says about its email.
pub(super) fn shown_always(collection: &Collection, field: &Field, see_hidden: bool) -> bool {
    let secret = matches!(field.kind, FieldKind::Password { .. }) || collection.is_auth() && field.name == "tokenKey";
    !secret && (see_hidden || !field.hidden)
}

fn shown(field: &Field, row: &Map<String, Value>) -> Value {
    match (row.get(&field.name), &field.kind) {
        (Some(Value::Number(number)), FieldKind::Number { .. }) => number.as_f64().map_or(Value::from(0), number_value),
        (None | Some(Value::Null), _) => coerce::zero(field),
        (Some(value), _) => value.clone(),
    }
}
