use inn_protocol::Code;
use inn_protocol::query::Paging;
use inn_rules::filter::{AuthFacts, Scope, compile};
use inn_rules::query::sort;
use serde_json::json;

use super::*;
use crate::columns::fixture::{collection, filled, insert, model, posts, snapshot, tables};
use crate::testdb::TestDb;

fn plan(app: inn_protocol::AppId, filter: &str, order: &str) -> ListPlan {
    let posts = posts();
    let model = model(vec![posts.clone()]);
    let auth = AuthFacts::nobody();
    let scope =
        Scope { collection: &posts, model: &model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    let filter = if filter.is_empty() { Expr::Always } else { compile(filter, &scope).unwrap() };
    let sort = if order.is_empty() { Vec::new() } else { sort(order, &scope).unwrap() };
    let paging = Paging { per_page: 100, ..Paging::default() };
    ListPlan { app: snapshot(app, model.clone()), entity: "posts".to_owned(), filter, sort, paging }
}

fn ids(page: &Page) -> String {
    let ids: Vec<&str> = page.rows.iter().map(|row| row["id"].as_str().unwrap()).collect();
    ids.join(",")
}

#[tokio::test]
async fn rows_come_in_the_order_pocketbase_gives_them() {
    let (store, _db) = TestDb::new().await;
    let (app, _) = filled(&store).await;
    for (order, expected) in [
        ("-due,-id", "p5,p3,p1,p17,p4,p9,p8,p7,p6,p20,p2,p19,p18,p16,p15,p14,p13,p12,p11,p10"),
        ("title:lower,id", "p9,p19,p3,p5,p12,p13,p4,p17,p20,p6,p1,p2,p18,p11,p10,p16,p15,p14,p7,p8"),
        ("", "p1,p2,p3,p4,p5,p6,p7,p8,p9,p10,p11,p12,p13,p14,p15,p16,p17,p18,p19,p20"),
        ("-@rowid", "p20,p19,p18,p17,p16,p15,p14,p13,p12,p11,p10,p9,p8,p7,p6,p5,p4,p3,p2,p1"),
        ("-done,num,id", "p1,p15,p4,p5,p14,p6,p8,p2,p10,p11,p16,p17,p18,p19,p20,p3,p9,p12,p13,p7"),
        // NULL, then false 0, true and numbers, then text.
        ("meta,@rowid", "p2,p16,p17,p18,p19,p20,p13,p7,p12,p15,p11,p4,p8,p5,p10,p3,p6,p1,p14,p9"),
    ] {
        let page = store.list(&plan(app, "", order)).await.unwrap();
        assert_eq!(ids(&page), expected, "sort={order}");
        assert_eq!(page.total, Some(20));
    }
    let page = store.list(&plan(app, "meta != null", "-meta,-@rowid")).await.unwrap();
    assert!(ids(&page).starts_with("p9,p14,p1,p6,p3,p10,p5,p8,p4"), "{}", ids(&page));
    assert_eq!(store.list(&plan(app, "", "@random")).await.unwrap().rows.len(), 20);
}

#[tokio::test]
async fn pages_are_cut_and_counted() {
    let (store, _db) = TestDb::new().await;
    let (app, _) = filled(&store).await;
    let page = |page, per_page, skip_total| ListPlan {
        paging: Paging { page, per_page, skip_total },
        ..plan(app, "num >= 0 && meta.a != 1", "num,id")
    };
    let first = store.list(&page(1, 3, false)).await.unwrap();
    assert_eq!((ids(&first).as_str(), first.total), ("p6,p8,p15", Some(17)));
    let third = store.list(&page(3, 3, true)).await.unwrap();
    assert_eq!((ids(&third).as_str(), third.total), ("p16,p17,p18", None));
    let beyond = store.list(&page(u64::MAX, 1000, false)).await.unwrap();
    assert_eq!((beyond.rows.len(), beyond.total), (0, Some(17)));
    let never = ListPlan { filter: Expr::Never, ..plan(app, "", "") };
    assert_eq!(store.list(&never).await.unwrap().total, Some(0));
}

#[tokio::test]
async fn a_text_that_comes_often_is_prepared_and_answers_the_same() {
    let (store, _db) = TestDb::new().await;
    let (app, _) = filled(&store).await;
    let plan = plan(app, "author = 'u1' && meta.a = 1", "meta.a,-num");
    for _ in 0..5 {
        let page = store.list(&plan).await.unwrap();
        assert_eq!((ids(&page).as_str(), page.total), ("p1", Some(1)));
    }
    assert!(store.client().await.unwrap().statement_cache.size() >= 2);
}

#[tokio::test]
async fn a_view_keeps_the_order_of_its_ids_and_leaves_out_what_the_rule_hides() {
    let (store, _db) = TestDb::new().await;
    let (app, _) = filled(&store).await;
    let list = plan(app, "done = true", "");
    let view = |ids: &[&str], rule: &Expr| ViewPlan {
        app: list.app.clone(),
        entity: "POSTS".to_owned(),
        ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        rule: rule.clone(),
    };
    let seen = |rows: Vec<Map<String, Value>>| {
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let rows = store.view(&view(&["p15", "p2", "gone", "p1", "p\0"], &list.filter)).await.unwrap();
    assert_eq!(seen(rows), ["p15", "p1"]);
    assert_eq!(seen(store.view(&view(&["p2"], &Expr::Always)).await.unwrap()), ["p2"]);
    assert!(store.view(&view(&["p2"], &list.filter)).await.unwrap().is_empty());
    assert!(store.view(&view(&[], &Expr::Always)).await.unwrap().is_empty());
    let many: Vec<String> = (0..1001).map(|number| number.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = store.view(&view(&many, &Expr::Always)).await.unwrap_err();
    assert_eq!(Refusal::from(refused).code, Code::InvalidParameter);
}

#[tokio::test]
async fn unknown_entities_are_refused_and_an_old_snapshot_is_stale() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let refused = store.list(&ListPlan { entity: "nothing".to_owned(), ..plan(app, "", "") }).await.unwrap_err();
    assert_eq!(Refusal::from(refused).code, Code::UnknownEntity);
    // A view that the release does not have yet.
    let stats = collection(json!({"id": "c_stats", "name": "stats", "type": "view", "fields": []}));
    let with_view = model(vec![posts, stats]);
    let plan_of_view = ListPlan { entity: "stats".to_owned(), app: snapshot(app, with_view), ..plan(app, "", "") };
    assert!(matches!(store.list(&plan_of_view).await, Err(StoreError::Stale)));
    let elsewhere = plan(inn_protocol::AppId::new(), "", "");
    assert!(matches!(store.list(&elsewhere).await, Err(StoreError::Stale)));
}

#[tokio::test]
async fn relations_and_lists_are_searched_by_index() {
    let (store, _db) = TestDb::new().await;
    let posts = posts();
    let app = tables(&store, &model(vec![posts.clone()])).await;
    for number in 0..400 {
        let row = json!({"id": format!("r{number:04}"), "author": format!("u{}", number % 50), "tagsm": [format!("t{number}")]});
        insert(&store, app, &posts, row.as_object().unwrap()).await;
    }
    let client = store.client().await.unwrap();
    client.batch_execute(&format!("ANALYZE {}; SET enable_seqscan = off", table(app, &posts))).await.unwrap();
    for filter in ["author = 'u7'", "tagsm:each ?= 't9'"] {
        let mut params = SqlParams::starting_at(1);
        let condition = render(&plan(app, filter, "").filter, app, "t", &mut params);
        let explain = format!("EXPLAIN SELECT 1 FROM {} AS t WHERE {condition}", table(app, &posts));
        let lines = client.query_typed(&explain, &params.typed()).await.unwrap();
        let text: Vec<String> = lines.iter().map(|line| line.get(0)).collect();
        assert!(text.join("\n").contains("Index"), "{filter}: {text:?}");
    }
}
