//! The filter language against answers recorded from PocketBase 0.39.8 (the same dialect as 0.39.7), and the rules
//! one by one.

mod grammar;
mod names;
mod recorded;
mod values;
mod walks;

use chrono::{DateTime, TimeZone as _, Utc};
use inn_protocol::model::{Collection, Model};
use serde_json::{Map, Value};

use super::{AuthFacts, Expr, FilterError, Scope, compile, matches};

/// The moment the answers were recorded; only the year, month and day matter.
fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 30, 22, 30, 0).unwrap()
}

fn posts() -> Collection {
    serde_json::from_str(include_str!("tests/collection.json")).unwrap()
}

fn auth_collection() -> Collection {
    serde_json::from_value(serde_json::json!({
        "id": "_pb_users_auth_", "name": "users", "type": "auth", "fields": [
            {"id": "f1", "name": "id", "type": "text", "system": true, "primaryKey": true},
            {"id": "f2", "name": "email", "type": "email", "system": true},
            {"id": "f3", "name": "emailVisibility", "type": "bool", "system": true},
            {"id": "f4", "name": "password", "type": "password", "system": true, "hidden": true},
            {"id": "f5", "name": "tokenKey", "type": "text", "system": true, "hidden": true},
            {"id": "f0", "name": "name", "type": "text"},
            {"id": "fa", "name": "level", "type": "number"},
            {"id": "f6", "name": "role", "type": "select", "values": ["a", "b"], "maxSelect": 1},
            {"id": "f7", "name": "teams", "type": "select", "values": ["x", "y"], "maxSelect": 2},
            {"id": "f8", "name": "boss", "type": "relation", "collectionId": "_pb_users_auth_", "maxSelect": 1},
            {"id": "f9", "name": "prefs", "type": "json"},
        ],
    }))
    .unwrap()
}

/// Whom the posts are by, and what refers to the posts.
fn authors() -> Collection {
    serde_json::from_value(serde_json::json!({
        "id": "c_authors_00000", "name": "authors", "type": "base", "listRule": "level > 1", "fields": [
            {"id": "a1", "name": "id", "type": "text", "system": true, "primaryKey": true},
            {"id": "a2", "name": "name", "type": "text"},
            {"id": "a3", "name": "level", "type": "number"},
            {"id": "a4", "name": "boss", "type": "relation", "collectionId": "c_authors_00000", "maxSelect": 1},
            {"id": "a5", "name": "secret", "type": "text", "hidden": true},
        ],
    }))
    .unwrap()
}

fn model() -> Model {
    Model { collections: vec![posts(), auth_collection(), authors()] }
}

fn rows() -> Vec<Map<String, Value>> {
    serde_json::from_str(include_str!("tests/posts.json")).unwrap()
}

fn compiled_as(text: &str, auth: &AuthFacts, see_hidden: bool) -> Result<Expr, FilterError> {
    let (collection, model) = (posts(), model());
    compile(text, &Scope { collection: &collection, model: &model, now: now(), auth, see_hidden })
}

fn compiled(text: &str) -> Result<Expr, FilterError> {
    compiled_as(text, &AuthFacts::nobody(), true)
}

/// Short names (`p1`) of the rows that match, in id order, as the recordings have them.
fn answer(text: &str) -> Result<Vec<String>, FilterError> {
    let expr = compiled(text)?;
    Ok(rows().iter().filter(|row| matches(&expr, row)).map(short_name).collect())
}

fn short_name(row: &Map<String, Value>) -> String {
    let id = row.get("id").and_then(Value::as_str).unwrap();
    format!("p{}", id.strip_prefix("pst").unwrap().parse::<u32>().unwrap())
}
