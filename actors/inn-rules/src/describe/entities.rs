//! The entities of a model in the closed vocabulary of A2App (reference notes, B.4).

use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use serde_json::{Map, Value, json};

/// Base and auth collections whose name does not begin with `_`.
pub(super) fn listed(model: &Model) -> impl Iterator<Item = &Collection> {
    model.collections.iter().filter(|c| c.kind != CollectionKind::View && !c.name.starts_with('_'))
}

pub(super) fn entities(model: &Model) -> Map<String, Value> {
    listed(model).map(|collection| (collection.name.clone(), entity(model, collection))).collect()
}

fn entity(model: &Model, collection: &Collection) -> Value {
    let fields = collection.fields.iter().filter(|field| is_described(field));
    let fields: Map<_, _> = fields.map(|field| (field.name.clone(), describe(model, collection, field))).collect();
    json!({
        "label": collection.label_field().map(|field| &field.name),
        "auth": collection.is_auth(),
        "fields": fields,
        "records": format!("/api/collections/{}/records", collection.name),
    })
}

/// Passwords are write-only, and what an app hides is nobody's to use.
fn is_described(field: &Field) -> bool {
    !matches!(field.kind, FieldKind::Password { .. }) && (!field.hidden || field.system)
}

/// The protocol type.
pub(super) fn type_of(field: &Field) -> &'static str {
    let multiple = field.is_multiple();
    match &field.kind {
        FieldKind::Text { .. }
        | FieldKind::Editor { .. }
        | FieldKind::Email { .. }
        | FieldKind::Url { .. }
        | FieldKind::Password { .. } => "string",
        FieldKind::Number { .. } => "number",
        FieldKind::Bool {} => "boolean",
        FieldKind::Date { .. } | FieldKind::Autodate { .. } => "datetime",
        FieldKind::Select { .. } if multiple => "list<enum>",
        FieldKind::Select { .. } => "enum",
        FieldKind::Relation { .. } if multiple => "list<ref>",
        FieldKind::Relation { .. } => "ref",
        FieldKind::File { .. } => "binary",
        FieldKind::Json { .. } | FieldKind::GeoPoint {} => "json",
    }
}

fn describe(model: &Model, collection: &Collection, field: &Field) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, value: Value| out.insert(key.to_owned(), value);
    put("type", json!(type_of(field)));
    if field.required {
        put("required", json!(true));
    }
    if field.is_read_only(collection) {
        put("readOnly", json!(true));
    }
    match &field.kind {
        FieldKind::Text { max, .. } if *max > 0 => {
            put("max", json!(max));
        }
        FieldKind::Number { max: Some(max), .. } => {
            put("max", crate::values::number_value(*max));
        }
        FieldKind::Select { values, .. } => {
            put("values", json!(values));
        }
        FieldKind::Relation { collection_id, .. } => {
            if let Some(target) = model.collections.iter().find(|target| target.id == *collection_id) {
                put("entity", json!(target.name));
            }
        }
        _ => {}
    }
    if field.is_day_key() {
        put("format", json!("YYYY-MM-DD"));
    }
    Value::Object(out)
}
