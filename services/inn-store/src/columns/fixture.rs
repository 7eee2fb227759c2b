//! The `posts` of the reference notes (section H.3) as a real table, for tests.

use std::sync::Arc;

use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::model::{Collection, Model};
use inn_protocol::{AppId, Digest, TenantId};
use inn_rules::schema::{diff, zero};
use serde_json::{Map, Value, json};
use tokio_postgres::types::ToSql;

use super::{ident, param, row_json, stored_fields, table};
use crate::PgStore;
use crate::ddl::SchemaChange;

#[allow(clippy::needless_pass_by_value, reason = "every call builds its value")]
pub(crate) fn collection(value: Value) -> Collection {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn posts() -> Collection {
    collection(json!({
        "id": "c_posts", "name": "posts", "type": "base", "fields": [
            {"id": "f_id", "name": "id", "type": "text", "primaryKey": true, "system": true},
            {"id": "f_title", "name": "title", "type": "text"},
            {"id": "f_num", "name": "num", "type": "number"},
            {"id": "f_done", "name": "done", "type": "bool"},
            {"id": "f_due", "name": "due", "type": "date"},
            {"id": "f_sel", "name": "sel", "type": "select", "values": ["a", "b", "c"], "maxSelect": 1},
            {"id": "f_msel", "name": "msel", "type": "select", "values": ["a", "b", "c", "aa"], "maxSelect": 3},
            {"id": "f_author", "name": "author", "type": "relation", "collectionId": "c_posts", "maxSelect": 1},
            {"id": "f_tagsm", "name": "tagsm", "type": "relation", "collectionId": "c_posts", "maxSelect": 5},
            {"id": "f_meta", "name": "meta", "type": "json"},
            {"id": "f_loc", "name": "loc", "type": "geoPoint"},
            {"id": "f_secret", "name": "secret", "type": "text", "hidden": true}
        ]
    }))
}

pub(crate) fn model(collections: Vec<Collection>) -> Model {
    Model { collections }
}

/// p1 to p20.
pub(crate) fn rows() -> Vec<Map<String, Value>> {
    let rows = [
        json!({"title": "Alpha", "num": 1, "done": true, "due": "2024-01-10 10:00:00.123Z", "sel": "a", "msel": ["a", "b"],
            "author": "u1", "tagsm": ["t1", "t2"], "meta": {"a": 1, "b": {"c": "x"}, "arr": [1, 2, 3]},
            "loc": {"lon": 23.32, "lat": 42.69}, "secret": "hid1"}),
        json!({"title": "alpha", "num": 1.5, "meta": null}),
        json!({"title": "10", "num": 10, "due": "2024-01-10 10:00:00.124Z", "sel": "b", "msel": ["b"], "author": "u2",
            "tagsm": ["t2"], "meta": "str", "loc": {"lon": 0, "lat": 0}}),
        json!({"title": "9", "num": 9, "done": true, "due": "2024-01-09 23:59:59.999Z", "sel": "c", "msel": ["a"],
            "author": "u3", "tagsm": ["t3"], "meta": 123, "loc": {"lon": 24.74, "lat": 42.14}}),
        json!({"title": "100%", "num": -5, "due": "2024-02-29 00:00:00.000Z", "msel": ["a", "b", "c"], "author": "u1",
            "tagsm": ["t1", "t3"], "meta": [1, "two", null]}),
        json!({"title": "a_b", "num": 0, "sel": "a", "msel": ["aa"], "meta": {"a": "1", "b": null, "": 5, "k-1": 7}}),
        json!({"title": "ÄPFEL", "num": 1e20, "meta": true, "msel": ["c"]}),
        json!({"title": "äpfel", "num": 0.1, "meta": ""}),
        json!({"title": "", "num": 100, "meta": {}}),
        json!({"title": "it's", "num": 2, "meta": []}),
        // What PocketBase keeps for the sent strings "10" and "true".
        json!({"title": "back\\slash", "num": 3, "meta": 10}),
        json!({"title": "123", "num": 123, "meta": 1.0}),
        json!({"title": "123.0", "num": 123.45, "meta": false}),
        json!({"title": "Zebra", "num": -0.5, "meta": {"a": [{"b": "q"}, {"b": "r"}]}}),
        json!({"title": "true", "num": 1, "done": true, "meta": true}),
        json!({"title": "null", "num": 4, "meta": null}),
        json!({"title": "a b", "num": 5, "due": "2024-01-10 00:00:00.000Z"}),
        json!({"title": "axb", "num": 6}),
        json!({"title": " lead", "num": 7}),
        json!({"title": "a\"q", "num": 8, "author": "u2", "tagsm": ["t4", "t1"]}),
    ];
    rows.into_iter()
        .enumerate()
        .map(|(index, row)| {
            let mut row = row.as_object().unwrap().clone();
            row.insert("id".to_owned(), json!(format!("p{}", index + 1)));
            row
        })
        .collect()
}

/// Makes the tables of the model in a new app's schema.
pub(crate) async fn tables(store: &PgStore, model: &Model) -> AppId {
    let app = AppId::new();
    let mut client = store.client().await.unwrap();
    let tx = client.transaction().await.unwrap();
    tx.batch_execute(&format!("CREATE SCHEMA {}", ident(&super::schema_name(app)))).await.unwrap();
    let changes = diff(None, model).unwrap();
    SchemaChange { tx: &tx, app, model, stamp: 1_700_000_000_000, restore: false }.apply(&changes).await.unwrap();
    tx.commit().await.unwrap();
    app
}

/// Inserts a row; what it does not say is zero.
pub(crate) async fn insert(store: &PgStore, app: AppId, collection: &Collection, row: &Map<String, Value>) {
    let mut names = vec!["\"id\"".to_owned()];
    let mut values: Vec<Box<dyn ToSql + Sync + Send>> = vec![Box::new(row["id"].as_str().unwrap().to_owned())];
    for field in stored_fields(collection) {
        names.push(ident(&field.name));
        let value = row.get(&field.name).cloned().unwrap_or_else(|| zero(field));
        values.push(Box::new(param(field, &value).unwrap()));
    }
    let places: Vec<String> = (1..=values.len()).map(|place| format!("${place}")).collect();
    let statement =
        format!("INSERT INTO {} ({}) VALUES ({})", table(app, collection), names.join(", "), places.join(", "));
    let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
    store.client().await.unwrap().execute(&statement, &values).await.unwrap();
}

/// The posts, filled.
pub(crate) async fn filled(store: &PgStore) -> (AppId, Collection) {
    let posts = posts();
    let app = tables(store, &model(vec![posts.clone()])).await;
    for row in rows() {
        insert(store, app, &posts, &row).await;
    }
    (app, posts)
}

/// Every row as the store reads it, by id.
pub(crate) async fn read_all(store: &PgStore, app: AppId, collection: &Collection) -> Vec<Map<String, Value>> {
    let read = format!("SELECT {} FROM {} AS t ORDER BY t.\"id\"", row_json(collection, "t"), table(app, collection));
    let rows = store.client().await.unwrap().query(&read, &[]).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect()
}

#[allow(clippy::needless_pass_by_value, reason = "every call builds its model")]
pub(crate) fn definition(model: Model, version: &str) -> AppDefinition {
    let definition = json!({
        "declaredId": "dev.example.posts", "name": "Posts", "version": version, "dialect": "1.0", "authMode": "none",
        "model": model, "operations": [], "operationsJson": {"version": 1, "operations": []}, "capabilities": [], "limits": {}
    });
    serde_json::from_value(definition).unwrap()
}

pub(crate) fn snapshot(app: AppId, model: Model) -> Arc<AppSnapshot> {
    Arc::new(AppSnapshot {
        id: app,
        tenant: TenantId::new(),
        slug: "posts".to_owned(),
        release: Digest::of(b"release"),
        epoch: 1,
        definition: Arc::new(definition(model, "1")),
        ui_files: Arc::default(),
        consented: Vec::new(),
    })
}
