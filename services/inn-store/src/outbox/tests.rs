//! What readers of changes are promised: everything that was committed, once, in order, and nothing of anybody else's.

use inn_ports::{Ledger, StoreError};
use inn_protocol::receipt::Verb;
use inn_rules::filter::{AuthFacts, Scope, compile};
use serde_json::{Value, json};
use tokio_postgres::Client;

use super::*;
use crate::commit::fixture::World;

async fn all(world: &World, seen: &Snapshot) -> Vec<Change> {
    let mut found = Vec::new();
    let (mut upto, mut after) = (None, i64::MIN);
    loop {
        let new = world.store.changes(seen, upto.as_ref(), after, None).await.unwrap();
        after = new.changes.last().map_or(after, |last| last.number);
        found.extend(new.changes);
        upto.get_or_insert(new.upto);
        if !new.more {
            return found;
        }
    }
}

fn told(changes: &[Change]) -> Vec<String> {
    changes.iter().map(|change| format!("{:?} {}/{}", change.action, change.collection, change.record)).collect()
}

/// A change as some commit would leave it, by hand, so that a test can hold its transaction open.
async fn by_hand(client: &Client, world: &World, record: &str) {
    let sql =
        "INSERT INTO inn.changes (app, verb, collection, record, \"row\") VALUES ($1, 'create', 'cards', $2, '{}')";
    client.execute(sql, &[&world.app.id.uuid(), &record]).await.unwrap();
}

#[tokio::test]
async fn every_kind_of_write_leaves_its_change_in_order_and_a_refused_one_none() {
    let world = World::new().await;
    let before = world.store.snapshot().await.unwrap();
    world.create("lists", "l1", json!({"title": "List"})).await;
    world.create("cards", "c1", json!({"title": "One", "list": "l1", "secret": "s"})).await;
    let update = world.plan(Verb::Update, "cards", "c1", json!({"title": "Two"}));
    world.store.commit(&update).await.unwrap();
    let refused = world.plan(Verb::Create, "cards", "c1", json!({"title": "again"}));
    assert!(world.store.commit(&refused).await.is_err());
    // Takes the card along.
    world.store.commit(&world.plan(Verb::Delete, "lists", "l1", json!({}))).await.unwrap();
    let changes = all(&world, &before).await;
    let mut last_two = told(&changes).split_off(3);
    last_two.sort_unstable();
    assert_eq!(told(&changes)[..3], ["Create lists/l1", "Create cards/c1", "Update cards/c1"]);
    assert_eq!(last_two, ["Delete cards/c1", "Delete lists/l1"]);
    assert!(changes.is_sorted_by(|one, two| one.number < two.number));
    let titles: Vec<&Value> =
        changes.iter().filter(|change| change.collection == "cards").map(|change| &change.row["title"]).collect();
    // After a write, and of what was deleted before it.
    assert_eq!(titles, [&json!("One"), &json!("Two"), &json!("Two")]);
    assert!(changes.iter().filter(|change| change.collection == "cards").all(|change| change.row["secret"] == "s"));
    let together: Vec<u64> = changes.iter().filter(|c| c.action == Action::Delete).map(|c| c.transaction).collect();
    assert_eq!(together[0], together[1], "one transaction");
    // Whoever has seen it all is told nothing more.
    let now = world.store.snapshot().await.unwrap();
    assert!(all(&world, &now).await.is_empty());
}

#[tokio::test]
async fn whoever_began_early_and_commits_late_is_told_late_and_once() {
    let world = World::new().await;
    let admin = world.db.admin().await;
    let begin = world.store.snapshot().await.unwrap();
    admin.batch_execute("BEGIN").await.unwrap();
    by_hand(&admin, &world, "late").await;
    world.create("cards", "c1", json!({"title": "early"})).await;
    let first = world.store.changes(&begin, None, i64::MIN, None).await.unwrap();
    assert_eq!(told(&first.changes), ["Create cards/c1"]);
    // The number of the late one is the lower: whoever went on from the highest number would never hear of it.
    admin.batch_execute("COMMIT").await.unwrap();
    world.create("cards", "c2", json!({"title": "after"})).await;
    let second = world.store.changes(&first.upto, None, i64::MIN, None).await.unwrap();
    assert_eq!(told(&second.changes), ["Create cards/late", "Create cards/c2"]);
    assert!(second.changes[0].number < first.changes[0].number);
    // Up to the first look there is still what was there then, and from it on the rest: no gap, nothing twice.
    let again = world.store.changes(&begin, Some(&first.upto), i64::MIN, None).await.unwrap();
    assert_eq!((&again.changes, &again.upto), (&first.changes, &first.upto));
    let whole = world.store.changes(&begin, Some(&second.upto), i64::MIN, None).await.unwrap();
    assert_eq!(told(&whole.changes), ["Create cards/late", "Create cards/c1", "Create cards/c2"]);
}

#[tokio::test]
async fn what_was_rolled_back_is_never_told() {
    let world = World::new().await;
    let admin = world.db.admin().await;
    let begin = world.store.snapshot().await.unwrap();
    admin.batch_execute("BEGIN").await.unwrap();
    by_hand(&admin, &world, "given up").await;
    let middle = world.store.changes(&begin, None, i64::MIN, None).await.unwrap();
    admin.batch_execute("ROLLBACK").await.unwrap();
    for seen in [&begin, &middle.upto] {
        assert_eq!(all(&world, seen).await, []);
    }
}

#[tokio::test]
async fn many_changes_come_page_by_page_of_one_moment() {
    let world = World::new().await;
    let admin = world.db.admin().await;
    let begin = world.store.snapshot().await.unwrap();
    let insert = "INSERT INTO inn.changes (app, verb, collection, record, \"row\")
        SELECT $1, 'create', 'cards', n::text, '{}' FROM generate_series(1, 1201) n";
    admin.execute(insert, &[&world.app.id.uuid()]).await.unwrap();
    let mut sizes = Vec::new();
    let (mut upto, mut after, mut records) = (None, i64::MIN, Vec::new());
    loop {
        let new = world.store.changes(&begin, upto.as_ref(), after, None).await.unwrap();
        sizes.push(new.changes.len());
        after = new.changes.last().unwrap().number;
        records.extend(new.changes.iter().map(|change| change.record.clone()));
        // What comes meanwhile belongs to the next look.
        by_hand(&admin, &world, "meanwhile").await;
        upto.get_or_insert(new.upto);
        if !new.more {
            break;
        }
    }
    assert_eq!(sizes, [500, 500, 201]);
    assert_eq!(records, (1..=1201).map(|n| n.to_string()).collect::<Vec<_>>());
    let next = world.store.changes(upto.as_ref().unwrap(), None, i64::MIN, None).await.unwrap();
    assert_eq!(told(&next.changes), ["Create cards/meanwhile"; 3]);
}

#[tokio::test]
async fn one_app_hears_nothing_of_another() {
    let world = World::new().await;
    let admin = world.db.admin().await;
    let begin = world.store.snapshot().await.unwrap();
    let other = AppId::new();
    let insert = "INSERT INTO inn.changes (app, verb, collection, record, \"row\") VALUES ($1, 'update', 'cards', 'x', '{\"a\":1}')";
    admin.execute(insert, &[&other.uuid()]).await.unwrap();
    world.create("cards", "c1", json!({"title": "mine"})).await;
    let of = async |app| world.store.changes(&begin, None, i64::MIN, app).await.unwrap().changes;
    assert_eq!(told(&of(Some(world.app.id)).await), ["Create cards/c1"]);
    let theirs = of(Some(other)).await;
    assert_eq!((told(&theirs), &theirs[0].row["a"]), (vec!["Update cards/x".to_owned()], &json!(1)));
    assert_eq!(of(None).await.len(), 2);
    assert!(of(Some(AppId::new())).await.is_empty());
}

#[tokio::test]
async fn a_change_is_never_rewritten() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "x"})).await;
    let admin = world.db.admin().await;
    assert!(admin.execute("UPDATE inn.changes SET record = 'other'", &[]).await.is_err());
}

#[tokio::test]
async fn a_condition_is_asked_of_the_row_that_the_change_carries() {
    let world = World::new().await;
    let begin = world.store.snapshot().await.unwrap();
    world.create("lists", "l1", json!({"title": "List"})).await;
    world.create("cards", "c1", json!({"title": "One", "list": "l1", "secret": "s"})).await;
    world.store.commit(&world.plan(Verb::Update, "cards", "c1", json!({"title": "Two"}))).await.unwrap();
    world.store.commit(&world.plan(Verb::Delete, "lists", "l1", json!({}))).await.unwrap();
    let changes = all(&world, &begin).await;
    let model = &world.app.definition.model;
    let cards = model.collection("cards").unwrap();
    let auth = AuthFacts::nobody();
    let scope = Scope { collection: cards, model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    let conditions =
        ["title = 'One'", "title = 'Two'", "list.title = 'List'", "list.title = ''", "secret = 's'", "id = ''"];
    let conditions: Vec<Expr> = conditions.iter().map(|text| compile(text, &scope).unwrap()).collect();
    let holds = async |change: &Change| world.store.holds(&world.app, cards, change, &conditions).await.unwrap();
    let of_cards: Vec<&Change> = changes.iter().filter(|change| change.collection == "cards").collect();
    // The list is gone by now: a write is decided by what is there, a delete by what was there before it.
    assert_eq!(holds(of_cards[0]).await, [true, false, false, true, true, false]);
    assert_eq!(holds(of_cards[1]).await, [false, true, false, true, true, false]);
    assert_eq!(holds(of_cards[2]).await, [false, true, true, false, true, false]);
    // More than one statement takes.
    let many: Vec<Expr> = (0..70).map(|n| conditions[n % 2].clone()).collect();
    let held = world.store.holds(&world.app, cards, of_cards[0], &many).await.unwrap();
    assert_eq!(held, (0..70).map(|n| n % 2 == 0).collect::<Vec<_>>());
    // Tables of another release: nobody is told anything by them.
    let table = world.table("cards");
    world.db.admin().await.batch_execute(&format!("ALTER TABLE {table} RENAME COLUMN title TO heading")).await.unwrap();
    assert!(matches!(world.store.holds(&world.app, cards, of_cards[0], &conditions).await, Err(StoreError::Stale)));
}
