#![allow(clippy::needless_pass_by_value, reason = "every call builds its values")]

use serde_json::{Map, Value, json};

use super::*;
use crate::PgStore;
use crate::columns::fixture::{collection, insert, model, read_all, tables};
use crate::columns::table;
use crate::error::violated;
use crate::testdb::TestDb;
use inn_rules::schema::diff;

fn cards(fields: Value, indexes: Value) -> Collection {
    collection(json!({"id": "c_cards", "name": "cards", "type": "base", "fields": fields, "indexes": indexes}))
}

fn row(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

async fn change(store: &PgStore, app: AppId, from: &Model, to: &Model, stamp: i64, restore: bool) -> StoreResult<()> {
    let mut client = store.client().await.unwrap();
    let tx = client.transaction().await.unwrap();
    let changes = diff(Some(from), to).unwrap();
    SchemaChange { tx: &tx, app, model: to, stamp, restore }.apply(&changes).await?;
    tx.commit().await.unwrap();
    Ok(())
}

#[tokio::test]
async fn a_violated_unique_index_names_its_fields() {
    let (store, _db) = TestDb::new().await;
    let cards = cards(
        json!([
            {"id": "f1", "name": "code", "type": "text"}, {"id": "f2", "name": "a", "type": "text"},
            {"id": "f3", "name": "b", "type": "number"}, {"id": "f4", "name": "nc", "type": "text"},
            {"id": "f5", "name": "opt", "type": "text"}, {"id": "f6", "name": "meta", "type": "json"}
        ]),
        json!([
            "CREATE UNIQUE INDEX `uq_ab` ON `cards` (`a`,`b`)",
            "CREATE UNIQUE INDEX `uq_nc` ON `cards` (`nc` COLLATE NOCASE)",
            "CREATE UNIQUE INDEX `uq_opt` ON `cards` (`opt`) WHERE `opt` != ''",
            "CREATE INDEX `plain` ON `cards` (`code` DESC, `meta`)"
        ]),
    );
    let app = tables(&store, &model(vec![cards.clone()])).await;
    let client = store.client().await.unwrap();
    let insert = |id: &str, a: &str, nc: &str, opt: &str| {
        format!("INSERT INTO {} (id, a, b, nc, opt) VALUES ('{id}', '{a}', 1, '{nc}', '{opt}')", table(app, &cards))
    };
    client.batch_execute(&insert("r1", "x", "É", "")).await.unwrap();
    // Unset is not compared where the index says so, and only ASCII letters ignore their case.
    client.batch_execute(&insert("r2", "y", "é", "")).await.unwrap();
    client.batch_execute(&insert("r3", "z", "Hi", "o")).await.unwrap();
    for (statement, fields) in [
        (insert("r1", "new1", "new1", "n1"), vec!["id"]),
        (insert("r4", "x", "new2", "n2"), vec!["a", "b"]),
        (insert("r5", "new3", "HI", "n3"), vec!["nc"]),
        (insert("r6", "new4", "new4", "o"), vec!["opt"]),
    ] {
        let error = client.batch_execute(&statement).await.unwrap_err();
        assert_eq!(unique_fields(&cards, &violated(&error).unwrap()).unwrap(), fields, "{statement}");
    }
    assert_eq!(unique_fields(&cards, "somebody_elses"), None);
}

#[tokio::test]
async fn dropped_columns_and_tables_come_back_with_their_values() {
    let (store, _db) = TestDb::new().await;
    let title = json!({"id": "f1", "name": "title", "type": "text"});
    let note = json!({"id": "f2", "name": "note", "type": "text"});
    let both = cards(json!([title, note]), json!(["CREATE UNIQUE INDEX `uq_note` ON `cards` (`note`)"]));
    let one = cards(json!([title]), json!([]));
    let other = collection(json!({"id": "c_other", "name": "other", "type": "base", "fields": [title]}));
    let (first, second) = (model(vec![both.clone(), other.clone()]), model(vec![one.clone()]));
    let app = tables(&store, &first).await;
    insert(&store, app, &both, &row(json!({"id": "r1", "title": "t", "note": "kept"}))).await;
    insert(&store, app, &other, &row(json!({"id": "o1", "title": "kept too"}))).await;

    change(&store, app, &first, &second, 1_700_000_000_001, false).await.unwrap();
    insert(&store, app, &one, &row(json!({"id": "r2", "title": "new"}))).await;
    let rows = read_all(&store, app, &one).await;
    assert_eq!(rows[0], row(json!({"id": "r1", "title": "t"})));

    change(&store, app, &second, &first, 1_700_000_000_002, true).await.unwrap();
    let rows = read_all(&store, app, &both).await;
    assert_eq!(rows[0], row(json!({"id": "r1", "title": "t", "note": "kept"})));
    assert_eq!(rows[1], row(json!({"id": "r2", "title": "new", "note": ""})));
    assert_eq!(read_all(&store, app, &other).await, [row(json!({"id": "o1", "title": "kept too"}))]);
    // The indexes are there again, and inserts go on counting.
    let again = format!("INSERT INTO {} (id, note) VALUES ('r3', 'kept')", table(app, &both));
    let error = store.client().await.unwrap().batch_execute(&again).await.unwrap_err();
    assert_eq!(unique_fields(&both, &violated(&error).unwrap()).unwrap(), ["note"]);
    insert(&store, app, &other, &row(json!({"id": "o2"}))).await;
}

#[tokio::test]
async fn a_table_taken_back_gets_the_columns_that_are_wanted_now() {
    let (store, _db) = TestDb::new().await;
    let fields = |list: &[(&str, &str, &str)]| {
        let fields: Vec<Value> =
            list.iter().map(|(id, name, kind)| json!({"id": id, "name": name, "type": kind})).collect();
        cards(json!(fields), json!([]))
    };
    let kept = fields(&[("f1", "title", "text"), ("f2", "count", "number"), ("f3", "extra", "text")]);
    let wanted = fields(&[("f1", "title", "text"), ("f4", "count", "text"), ("f5", "fresh", "bool")]);
    let (before, none, after) = (model(vec![kept.clone()]), model(vec![]), model(vec![wanted.clone()]));
    let app = tables(&store, &before).await;
    insert(&store, app, &kept, &row(json!({"id": "r1", "title": "t", "count": 3, "extra": "e"}))).await;
    change(&store, app, &before, &none, 1_700_000_000_001, false).await.unwrap();
    change(&store, app, &none, &after, 1_700_000_000_002, true).await.unwrap();
    assert_eq!(
        read_all(&store, app, &wanted).await,
        [row(json!({"id": "r1", "title": "t", "count": "", "fresh": false}))]
    );
}

#[tokio::test]
async fn a_deploy_that_adds_a_field_again_starts_empty() {
    let (store, _db) = TestDb::new().await;
    let field = json!({"id": "f2", "name": "note", "type": "text"});
    let (with, without) = (cards(json!([field]), json!([])), cards(json!([]), json!([])));
    let (a, b) = (model(vec![with.clone()]), model(vec![without]));
    let app = tables(&store, &a).await;
    insert(&store, app, &with, &row(json!({"id": "r1", "note": "old"}))).await;
    change(&store, app, &a, &b, 1_700_000_000_001, false).await.unwrap();
    change(&store, app, &b, &a, 1_700_000_000_002, false).await.unwrap();
    assert_eq!(read_all(&store, app, &with).await, [row(json!({"id": "r1", "note": ""}))]);
}

#[tokio::test]
async fn renames_and_conversions_keep_the_values() {
    let (store, _db) = TestDb::new().await;
    let model_of = |name: &str, a: &str, b: &str, max: u32| {
        let fields = json!([
            {"id": "f1", "name": a, "type": "text"}, {"id": "f2", "name": b, "type": "text"},
            {"id": "f3", "name": "who", "type": "relation", "collectionId": "c_cards", "maxSelect": max}
        ]);
        model(vec![collection(json!({"id": "c_cards", "name": name, "type": "base", "fields": fields}))])
    };
    let single = model_of("cards", "a", "b", 1);
    let list = model_of("Tasks", "b", "a", 5);
    let app = tables(&store, &single).await;
    insert(&store, app, &single.collections[0], &row(json!({"id": "r1", "a": "1", "b": "2", "who": "u1"}))).await;
    insert(&store, app, &single.collections[0], &row(json!({"id": "r2"}))).await;
    change(&store, app, &single, &list, 1_700_000_000_001, false).await.unwrap();
    let rows = read_all(&store, app, &list.collections[0]).await;
    assert_eq!(rows[0], row(json!({"id": "r1", "b": "1", "a": "2", "who": ["u1"]})));
    assert_eq!(rows[1]["who"], json!([]));
    insert(&store, app, &list.collections[0], &row(json!({"id": "r3", "who": ["u1", "u2"]}))).await;
    change(&store, app, &list, &single, 1_700_000_000_002, true).await.unwrap();
    let who: Vec<Value> =
        read_all(&store, app, &single.collections[0]).await.iter().map(|row| row["who"].clone()).collect();
    assert_eq!(who, [json!("u1"), json!(""), json!("u2")]);
}

#[tokio::test]
async fn a_unique_index_over_equal_rows_is_refused_by_name() {
    let (store, _db) = TestDb::new().await;
    let fields = json!([{"id": "f1", "name": "code", "type": "text"}]);
    let plain = model(vec![cards(fields.clone(), json!([]))]);
    let unique = model(vec![cards(fields, json!(["CREATE UNIQUE INDEX `uq` ON `cards` (`code`)"]))]);
    let app = tables(&store, &plain).await;
    for id in ["r1", "r2"] {
        insert(&store, app, &plain.collections[0], &row(json!({"id": id, "code": "same"}))).await;
    }
    let refusal = Refusal::from(change(&store, app, &plain, &unique, 1_700_000_000_001, false).await.unwrap_err());
    assert_eq!(refusal.code, Code::DeployFailed);
    assert!(refusal.message.contains("code") && refusal.message.contains("same values"), "{}", refusal.message);
}

#[tokio::test]
async fn the_window_for_a_way_back_ends() {
    let (store, db) = TestDb::new().await;
    let field = json!({"id": "f2", "name": "note", "type": "text"});
    let other = collection(json!({"id": "c_other", "name": "other", "type": "base", "fields": []}));
    let first = model(vec![cards(json!([field]), json!([])), other]);
    let second = model(vec![cards(json!([]), json!([]))]);
    let app = tables(&store, &first).await;
    change(&store, app, &first, &second, 1_700_000_000_001, false).await.unwrap();
    assert_eq!(store.purge_dropped(chrono::Duration::days(36500)).await.unwrap(), 0);
    assert_eq!(store.purge_dropped(chrono::Duration::days(30)).await.unwrap(), 2);
    assert_eq!(store.purge_dropped(chrono::Duration::days(30)).await.unwrap(), 0);
    let left = "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
                WHERE NOT a.attisdropped AND (a.attname LIKE '~gone%' OR c.relname LIKE '~gone%')";
    let left: i64 = db.admin().await.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}
