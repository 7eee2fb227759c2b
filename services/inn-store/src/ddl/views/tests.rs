use inn_protocol::AppId;
use serde_json::{Value, json};

use super::*;
use crate::PgStore;
use crate::columns::fixture::{collection, insert, model, tables};
use crate::testdb::TestDb;

fn posts() -> Collection {
    collection(json!({"id": "c_posts", "name": "posts", "type": "base", "fields": [
        {"id": "f0", "name": "id", "type": "text", "primaryKey": true},
        {"id": "f1", "name": "title", "type": "text"},
        {"id": "f2", "name": "num", "type": "number"},
        {"id": "f3", "name": "done", "type": "bool"},
        {"id": "f4", "name": "tags", "type": "select", "values": ["a", "b"], "maxSelect": 2},
        {"id": "f5", "name": "meta", "type": "json"},
    ]}))
}

/// What a view over two posts shows, as JSON rows in its own order.
async fn rows(store: &PgStore, app: AppId, query: &str) -> Result<Vec<Value>, String> {
    let view = collection(json!({"id": "c_view", "name": "seen", "type": "view", "viewQuery": query}));
    let mut model = model(vec![posts(), view]);
    view::infer(&mut model).map_err(|refusal| refusal.message)?;
    let mut client = store.client().await.unwrap();
    let tx = client.transaction().await.unwrap();
    make_views(&tx, app, &model).await.map_err(|error| Refusal::from(error).message)?;
    let view = model.collection("seen").unwrap();
    let text =
        format!("SELECT {} FROM {} AS t ORDER BY t.{ROW}", crate::columns::row_json(view, "t"), table(app, view));
    let rows = tx.query(&text, &[]).await.unwrap();
    drop_views(&tx, app, &model).await.unwrap();
    Ok(rows.iter().map(|row| serde_json::from_str(row.get(0)).unwrap()).collect())
}

async fn filled() -> (PgStore, TestDb, AppId) {
    let (store, db) = TestDb::new().await;
    let app = tables(&store, &model(vec![posts()])).await;
    let row = |value: Value| value.as_object().unwrap().clone();
    for value in [
        json!({"id": "p2", "title": "Beta", "num": 5, "done": true, "tags": ["b", "a"], "meta": {"a": 1}}),
        json!({"id": "p1", "title": "10", "num": -2.5, "done": false, "tags": [], "meta": null}),
    ] {
        insert(&store, app, &posts(), &row(value)).await;
    }
    (store, db, app)
}

#[tokio::test]
async fn an_expression_gives_what_it_gives_in_sqlite() {
    let (store, _db, app) = filled().await;
    for (expression, expected) in [
        ("title || '-' || num", json!(["Beta-5", "10--2.5"])),
        ("num / 2", json!([2, -1.25])),
        ("num / 2.0", json!([2.5, -1.25])),
        ("7 / 2", json!([3, 3])),
        ("num / 0", json!([null, null])),
        ("-num + 1 * 2", json!([-3, 4.5])),
        ("num > 0", json!([1, 0])),
        ("done = 1", json!([1, 0])),
        ("done AND num", json!([1, 0])),
        ("NOT done", json!([0, 1])),
        ("num IS NULL", json!([0, 0])),
        ("NULL = 1", json!([null, null])),
        ("title = 'beta'", json!([0, 0])),
        ("title LIKE 'b_t%'", json!([1, 0])),
        ("title NOT LIKE '1%'", json!([1, 0])),
        ("title IN ('x', 'Beta')", json!([1, 0])),
        ("num NOT BETWEEN -3 AND 0", json!([1, 0])),
        ("CASE title WHEN 'Beta' THEN 1 ELSE 2 END", json!([1, 2])),
        ("CASE WHEN num > 3 THEN 'big' END", json!(["big", null])),
        ("IIF(done, num, 0)", json!([5, 0])),
        ("COALESCE(NULLIF(title, '10'), 'none')", json!(["Beta", "none"])),
        ("UPPER(title)", json!(["BETA", 10])),
        ("LENGTH(title) + INSTR(title, 't')", json!([7, 2])),
        ("SUBSTR(title, 2)", json!(["eta", 0])),
        ("TRIM('  x ') || REPLACE(title, 'e', 'E')", json!(["xBEta", "x10"])),
        ("ABS(num) + ROUND(num) + ROUND(num, 1)", json!([15, -3])),
        ("MAX(num, 0)", json!([5, 0])),
        ("MIN(num, NULL)", json!([null, null])),
        ("CAST(title AS INT)", json!([0, 10])),
        ("CAST(CAST('1e1' AS TEXT) AS INT)", json!([1, 1])),
        ("CAST('-1e1x' AS REAL)", json!([-10, -10])),
        ("CAST('1e999' AS REAL) > 1", json!([1, 1])),
        ("CAST(NULL AS INT) IS NULL", json!([1, 1])),
        ("CAST(num AS TEXT) || ''", json!([5, -2.5])),
        ("tags", json!([["b", "a"], []])),
        ("meta", json!([{"a": 1}, null])),
        ("(SELECT COUNT(*) FROM posts q WHERE q.num < posts.num)", json!([1, 0])),
        ("EXISTS (SELECT id FROM posts q WHERE q.id > posts.id)", json!([0, 1])),
        ("id IN (SELECT id FROM posts WHERE done)", json!([1, 0])),
        ("ROW_NUMBER() OVER (ORDER BY num)", json!([2, 1])),
        ("'it''s; DROP TABLE posts'", json!(["it's; DROP TABLE posts", "it's; DROP TABLE posts"])),
    ] {
        // In parentheses it is an expression for PocketBase, and so of type json.
        let rows = rows(&store, app, &format!("SELECT id, ({expression}) AS x FROM posts")).await;
        let rows = rows.unwrap_or_else(|why| panic!("{expression}: {why}"));
        assert_eq!(json!(rows.iter().map(|row| row["x"].clone()).collect::<Vec<_>>()), expected, "{expression}");
    }
}

#[tokio::test]
async fn groups_count_and_rows_keep_the_order_sqlite_has() {
    let (store, _db, app) = filled().await;
    for (query, expected) in [
        ("SELECT id, title FROM posts", json!([["p2", "Beta"], ["p1", "10"]])),
        ("SELECT id, COUNT(*) AS title FROM posts GROUP BY id", json!([["p1", 1], ["p2", 1]])),
        ("SELECT id, title FROM posts ORDER BY num", json!([["p1", "10"], ["p2", "Beta"]])),
        ("SELECT id, title FROM posts ORDER BY 2 DESC LIMIT 1", json!([["p2", "Beta"]])),
        (
            "SELECT id, num AS title FROM posts UNION SELECT 'x', 7 ORDER BY id DESC",
            json!([["p1", -2.5], ["p2", 5], ["x", 7]]),
        ),
        ("SELECT done AS id, TOTAL(num) AS title FROM posts GROUP BY done HAVING TOTAL(num) > 0", json!([["1", 5]])),
        ("SELECT MAX(id) AS id, GROUP_CONCAT(title, '+') AS title FROM posts", json!([["p2", "Beta+10"]])),
        ("SELECT DISTINCT 'one' AS id, AVG(num) AS title FROM posts", json!([["one", 1.25]])),
    ] {
        let rows = rows(&store, app, query).await.unwrap_or_else(|why| panic!("{query}: {why}"));
        let shown: Vec<_> = rows.iter().map(|row| json!([row["id"], row["title"]])).collect();
        assert_eq!(json!(shown), expected, "{query}");
    }
}

#[tokio::test]
async fn what_has_no_meaning_in_postgresql_is_refused_by_name() {
    let (store, _db, app) = filled().await;
    for (expression, named) in [
        ("title = 3", "CAST"),
        ("title > num", "CAST"),
        ("IIF(done, title, 3)", "CAST"),
        ("tags + 1", "list"),
        ("pg_read_file('/etc/passwd')", "pg_read_file()"),
        ("current_setting('data_directory')", "current_setting()"),
        ("strftime('%Y', title)", "strftime()"),
        ("SUM(num) OVER ()", "OVER"),
        ("CAST(num AS regclass)", "regclass"),
        ("SUM(*)", "sum(*)"),
    ] {
        let why = rows(&store, app, &format!("SELECT id, ({expression}) AS x FROM posts")).await.unwrap_err();
        assert!(why.contains(named) && why.contains("seen"), "{expression}: {why}");
    }
}

#[tokio::test]
async fn the_deepest_query_that_is_read_is_also_built() {
    let (store, _db, app) = filled().await;
    let deep = format!("{}num{}{}", "ABS(".repeat(12), " + 1".repeat(140), ")".repeat(12));
    let seen = rows(&store, app, &format!("SELECT id, ({deep}) AS x FROM posts")).await.unwrap();
    assert_eq!(seen.iter().map(|row| row["x"].clone()).collect::<Vec<_>>(), [json!(145), json!(137.5)]);
}
