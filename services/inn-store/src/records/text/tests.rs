use std::sync::Arc;

use inn_ports::Records as _;
use inn_protocol::query::Paging;
use inn_protocol::register::EntrySearch;
use inn_rules::filter::{AuthFacts, Scope, compile};
use inn_rules::query::sort;
use inn_rules::values::render_record;
use serde_json::{Value, json};

use super::*;
use crate::columns::fixture::{filled, model, posts, snapshot};
use crate::commit::fixture::{World, code};
use crate::testdb::TestDb;

fn plan(app: inn_protocol::AppId, filter: &str, order: &str, paging: Paging) -> ListPlan {
    let (posts, auth) = (posts(), AuthFacts::nobody());
    let model = model(vec![posts.clone()]);
    let scope =
        Scope { collection: &posts, model: &model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    let filter = if filter.is_empty() { Expr::Always } else { compile(filter, &scope).unwrap() };
    let sort = sort(order, &scope).unwrap();
    ListPlan { app: snapshot(app, model.clone()), entity: "posts".to_owned(), filter, sort, paging }
}

#[tokio::test]
async fn the_text_of_a_page_is_what_its_rows_would_have_been_rendered_to() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    for see_hidden in [true, false] {
        let shape = RecordShape::of(&posts, see_hidden, see_hidden).unwrap();
        for filter in
            ["", "author = 'u1'", "author = 'u1' && num >= 0", "author = 'nobody'", "meta.a = 1", "done = true"]
        {
            for (page, per_page, skip_total) in
                [(1, 100, false), (1, 3, false), (2, 3, false), (9, 100, false), (1, 5, true)]
            {
                let plan = plan(app, filter, "-num,id", Paging { page, per_page, skip_total });
                let rows = store.list(&plan).await.unwrap();
                let rendered: Vec<Value> = rows
                    .rows
                    .iter()
                    .map(|row| Value::Object(render_record(&posts, row, see_hidden, see_hidden)))
                    .collect();
                let text = store.list_text(&plan, &shape).await.unwrap();
                let told: Value = serde_json::from_str(&text.items).unwrap();
                assert_eq!(told, Value::Array(rendered), "{filter} page {page}");
                assert_eq!(text.total, rows.total, "{filter} page {page}");
            }
        }
    }
}

fn cards(world: &World, id: &str, rule: Expr) -> (ViewPlan, RecordShape) {
    let collection = world.app.definition.model.collection("cards").unwrap();
    let plan = ViewPlan { app: Arc::clone(&world.app), entity: "cards".to_owned(), ids: vec![id.to_owned()], rule };
    (plan, RecordShape::of(collection, false, false).unwrap())
}

async fn outcomes(world: &World) -> Vec<String> {
    use inn_ports::Register as _;
    let search = EntrySearch { limit: 100, action: Some("records.view".into()), ..EntrySearch::default() };
    world.store.entries(world.tenant, &search).await.unwrap().into_iter().map(|entry| entry.outcome).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_record_is_read_with_the_entry_of_its_call() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "Salt", "secret": "pepper"})).await;
    let (plan, shape) = cards(&world, "c1", Expr::Always);
    let text = world.store.view_entered(world.call("records.view"), &plan, &shape).await.unwrap().unwrap();
    let card: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&card["title"], card.get("secret")), (&json!("Salt"), None));
    assert_eq!(outcomes(&world).await, ["done"]);
    for (id, rule) in [("gone", Expr::Always), ("c1", Expr::Never), ("c\0", Expr::Always)] {
        let (plan, shape) = cards(&world, id, rule);
        assert_eq!(world.store.view_entered(world.call("records.view"), &plan, &shape).await.unwrap(), None);
    }
    assert_eq!(outcomes(&world).await.iter().filter(|outcome| *outcome == "refused:not_found").count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_rule_with_values_of_its_own_is_asked_for_each_record() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "Salt"})).await;
    let (model, auth) = (&world.app.definition.model, AuthFacts::nobody());
    let collection = model.collection("cards").unwrap();
    let scope = Scope { collection, model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    for (rule, seen) in [("title = 'Salt'", true), ("title = 'Pepper'", false)] {
        let (plan, shape) = cards(&world, "c1", compile(rule, &scope).unwrap());
        let found = world.store.view_entered(world.call("records.view"), &plan, &shape).await.unwrap();
        assert_eq!(found.is_some(), seen, "{rule}");
    }
    assert_eq!(outcomes(&world).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn looks_at_the_same_time_are_each_judged_by_themselves() {
    let world = Arc::new(World::new().await);
    for id in ["c0", "c1"] {
        world.create("cards", id, json!({"title": id})).await;
    }
    let looks: Vec<_> = (0..300)
        .map(|number| {
            let world = Arc::clone(&world);
            tokio::spawn(async move {
                let id = format!("c{}", number % 3);
                let (plan, shape) = cards(&world, &id, Expr::Always);
                let mut call = world.call("records.view");
                match number % 4 {
                    // Two and two share a nonce.
                    0 => call.nonce = Some(world.nonce(&format!("n{}", number / 8))),
                    1 => call.live.grant.as_mut().unwrap().1 += 1,
                    _ => {}
                }
                (number, id, world.store.view_entered(call, &plan, &shape).await)
            })
        })
        .collect();
    let (mut answered, mut replayed) = (0, 0);
    for look in looks {
        match look.await.unwrap() {
            (number, _, result) if number % 4 == 1 => assert!(matches!(result, Err(StoreError::Stale)), "{result:?}"),
            (_, id, Ok(Some(text))) => {
                assert!(text.contains(&format!(r#""title":"{id}""#)), "{id} was answered with {text}");
                answered += 1;
            }
            (_, id, Ok(None)) => {
                assert_eq!(id, "c2");
                answered += 1;
            }
            (number, _, result) => {
                assert_eq!((number % 4, code(result)), (0, Code::ReplayedNonce));
                replayed += 1;
            }
        }
    }
    assert_eq!((answered, replayed), (188, 37));
    assert_eq!(world.count("inn.entries WHERE action = 'records.view'").await, 188);
}
