use inn_ports::{Apps as _, DeployPlan, Directory as _, FileKey, Files as _, Ledger as _, NewFile, Plan};
use inn_protocol::app::AppDefinition;
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, FileId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::commit::fixture::{World, bare, code};

/// Drawers with one file and several, and folders in them that go with their drawer.
fn model(many: u32, with_one: bool) -> Value {
    let id = json!({"id": "f_id", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true});
    let mut fields = vec![
        id.clone(),
        json!({"id": "f_title", "name": "title", "type": "text"}),
        json!({"id": "f_many", "name": "many", "type": "file", "maxSelect": many}),
    ];
    if with_one {
        fields.push(json!({"id": "f_one", "name": "one", "type": "file", "maxSelect": 1}));
    }
    json!({"collections": [
        {"id": "c_drawers", "name": "drawers", "type": "base", "fields": fields},
        {"id": "c_folders", "name": "folders", "type": "base", "fields": [
            id,
            {"id": "f_drawer", "name": "drawer", "type": "relation", "collectionId": "c_drawers", "cascadeDelete": true, "maxSelect": 1},
            {"id": "f_scan", "name": "scan", "type": "file", "maxSelect": 1},
        ]},
    ]})
}

async fn deploy(world: &mut World, version: &str, model: Value) {
    let definition: AppDefinition = serde_json::from_value(json!({
        "declaredId": "drawer", "name": "Drawer", "version": version, "dialect": "1.0", "authMode": "none",
        "model": model, "operations": [], "operationsJson": {}, "capabilities": [], "limits": {},
    }))
    .unwrap();
    let plan = DeployPlan {
        tenant: world.tenant,
        slug: "drawer".into(),
        definition: Arc::new(definition),
        release: Digest::of(version.as_bytes()),
        archive: Digest::of(b"archive"),
        archive_bytes: 7,
        files: BTreeMap::new(),
        ui_files: BTreeMap::new(),
        consented: vec![],
        allow_destructive: true,
        dry_run: false,
    };
    let deployed = world.store.deploy(&bare(world.tenant, "apps.deploy"), &plan).await.unwrap();
    world.app = world.store.app_by_id(deployed.app).await.unwrap().unwrap();
}

async fn world() -> World {
    let mut world = World::new().await;
    deploy(&mut world, "1", model(3, true)).await;
    world
}

async fn expected(world: &World, collection: &str, field: &str, name: &str) -> FileId {
    let file = NewFile {
        id: FileId::new(),
        tenant: world.tenant,
        app: world.app.id,
        collection: collection.to_owned(),
        field: field.to_owned(),
        name: name.to_owned(),
    };
    world.store.expect_file(&file).await.unwrap();
    file.id
}

async fn received(world: &World, collection: &str, field: &str, name: &str) -> FileId {
    let id = expected(world, collection, field, name).await;
    let file = ReceivedFile { id, size: 3, media_type: "text/plain".to_owned(), digest: Digest::of(name.as_bytes()) };
    world.store.file_received(&file).await.unwrap();
    id
}

fn drawer(world: &World, verb: Verb, values: Value) -> Plan {
    world.plan(verb, "drawers", "d00000000000001", values)
}

async fn states(world: &World) -> Vec<(String, String)> {
    let rows = world.db.admin().await.query("SELECT name, state FROM inn.files ORDER BY name", &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn listed(states: &[(&str, &str)]) -> Vec<(String, String)> {
    states.iter().map(|(name, state)| ((*name).to_owned(), (*state).to_owned())).collect()
}

#[tokio::test]
async fn a_file_is_placed_once_it_is_there_and_then_never_again() {
    let world = world().await;
    let early = received(&world, "", "", "early").await;
    let plan = drawer(&world, Verb::Create, json!({"one": "early"}));
    assert!(world.store.commit(&plan).await.is_err(), "no record names what is in no collection");
    world.store.place_file(early, "c_drawers", "f_one").await.unwrap();
    let (placed, half) = (early, expected(&world, "", "", "half").await);
    let here = received(&world, "c_drawers", "f_many", "here").await;
    for file in [placed, half, here, FileId::new()] {
        assert!(matches!(world.store.place_file(file, "c_other", "f_x").await, Err(StoreError::Unavailable)));
    }
    world.store.commit(&drawer(&world, Verb::Create, json!({"one": "early"}))).await.unwrap();
    let found = world.store.file(world.app.id, "c_drawers", "d00000000000001", "early").await.unwrap().unwrap();
    assert_eq!(found.field, "f_one");
}

#[tokio::test]
async fn a_record_keeps_the_files_it_names_and_gives_up_those_it_names_no_more() {
    let world = world().await;
    for name in ["a", "b", "c", "left"] {
        received(&world, "c_drawers", "f_many", name).await;
    }
    received(&world, "c_drawers", "f_one", "o").await;
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["a", "b"], "one": "o"}))).await.unwrap();
    assert_eq!(
        states(&world).await,
        listed(&[("a", "kept"), ("b", "kept"), ("c", "received"), ("left", "received"), ("o", "kept")])
    );
    let found = world.store.file(world.app.id, "c_drawers", "d00000000000001", "a").await.unwrap().unwrap();
    assert_eq!((found.size, found.field.as_str(), found.media_type.as_str()), (3, "f_many", "text/plain"));
    for (app, collection, record, name) in [
        (AppId::new(), "c_drawers", "d00000000000001", "a"),
        (world.app.id, "c_folders", "d00000000000001", "a"),
        (world.app.id, "c_drawers", "d00000000000002", "a"),
        (world.app.id, "c_drawers", "d00000000000001", "left"),
        (world.app.id, "c_drawers", "d\0", "a"),
    ] {
        assert!(world.store.file(app, collection, record, name).await.unwrap().is_none(), "{record} {name}");
    }
    // Other fields may change as they like.
    world.store.commit(&drawer(&world, Verb::Update, json!({"title": "x"}))).await.unwrap();
    world.store.commit(&drawer(&world, Verb::Update, json!({"many": ["c", "b"], "one": ""}))).await.unwrap();
    assert_eq!(
        states(&world).await,
        listed(&[("a", "doomed"), ("b", "kept"), ("c", "kept"), ("left", "received"), ("o", "doomed")])
    );
    world.store.commit(&drawer(&world, Verb::Delete, json!({}))).await.unwrap();
    let states = states(&world).await;
    assert!(states.iter().all(|(name, state)| state == "doomed" || name == "left"), "{states:?}");
}

#[tokio::test]
async fn a_name_without_a_file_is_refused_and_nothing_is_kept() {
    let world = world().await;
    expected(&world, "c_drawers", "f_many", "half").await;
    received(&world, "c_folders", "f_scan", "elsewhere").await;
    let late = received(&world, "c_drawers", "f_many", "late").await;
    let admin = world.db.admin().await;
    admin
        .execute("UPDATE inn.files SET due_at = clock_timestamp() - interval '1 second' WHERE id = $1", &[&late.uuid()])
        .await
        .unwrap();
    let before = states(&world).await;
    for name in ["nothing", "half", "elsewhere", "late"] {
        let refused = code(world.store.commit(&drawer(&world, Verb::Create, json!({"many": [name]}))).await);
        assert_eq!(refused, Code::Conflict, "{name}");
    }
    assert_eq!(world.count(&world.table("drawers")).await, 0);
    assert_eq!(states(&world).await, before);
    // A file has one record: another one cannot name it too.
    received(&world, "c_drawers", "f_many", "mine").await;
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["mine"]}))).await.unwrap();
    let thief = world.plan(Verb::Create, "drawers", "d00000000000002", json!({"many": ["mine"]}));
    assert_eq!(code(world.store.commit(&thief).await), Code::Conflict);
}

#[tokio::test]
async fn files_go_with_the_records_a_delete_takes_along() {
    let world = world().await;
    received(&world, "c_drawers", "f_one", "o").await;
    received(&world, "c_folders", "f_scan", "s").await;
    world.store.commit(&drawer(&world, Verb::Create, json!({"one": "o"}))).await.unwrap();
    let folder = json!({"drawer": "d00000000000001", "scan": "s"});
    world.store.commit(&world.plan(Verb::Create, "folders", "f00000000000001", folder)).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("o", "kept"), ("s", "kept")]));
    world.store.commit(&drawer(&world, Verb::Delete, json!({}))).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("o", "doomed"), ("s", "doomed")]));
}

#[tokio::test]
async fn what_is_discarded_goes_unless_a_record_names_it_by_then() {
    let world = world().await;
    let (kept, left) =
        (received(&world, "c_drawers", "f_many", "kept").await, received(&world, "c_drawers", "f_many", "left").await);
    let half = expected(&world, "c_drawers", "f_many", "half").await;
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["kept"]}))).await.unwrap();
    let mut doomed = world.store.discard_files(&[kept, left, half]).await.unwrap();
    doomed.sort_unstable();
    assert_eq!(doomed, [left, half]);
    // What was discarded cannot arrive or be named any more.
    let file = ReceivedFile { id: half, size: 1, media_type: String::new(), digest: Digest::of(b"") };
    assert!(world.store.file_received(&file).await.is_err());
    let update = drawer(&world, Verb::Update, json!({"many": ["kept", "left"]}));
    assert_eq!(code(world.store.commit(&update).await), Code::Conflict);
    assert!(world.store.discard_files(&[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_due_file_is_claimed_by_one_and_looked_at_twice() {
    let world = world().await;
    let file = received(&world, "c_drawers", "f_many", "forgotten").await;
    let key = FileKey { app: world.app.id, file };
    let hurry = || async {
        let now = "UPDATE inn.files SET due_at = clock_timestamp() WHERE state <> 'kept'";
        world.db.admin().await.execute(now, &[]).await.unwrap();
    };
    assert!(world.store.due_files(10).await.unwrap().is_empty(), "it may still be named");
    hurry().await;
    let due = world.store.due_files(10).await.unwrap();
    assert_eq!(due, [DueFile { key, again: false }]);
    assert!(world.store.due_files(10).await.unwrap().is_empty(), "claimed for a minute");
    // The claimer died: another one takes over, and reports.
    hurry().await;
    let due = world.store.due_files(10).await.unwrap();
    world.store.files_removed(&due).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("forgotten", "gone")]));
    hurry().await;
    let again = world.store.due_files(10).await.unwrap();
    assert_eq!(again, [DueFile { key, again: true }]);
    world.store.files_removed(&again).await.unwrap();
    assert!(states(&world).await.is_empty());
}

#[tokio::test]
async fn a_field_that_holds_one_file_now_gives_up_the_others() {
    let mut world = world().await;
    for name in ["a", "b"] {
        received(&world, "c_drawers", "f_many", name).await;
    }
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["a", "b"]}))).await.unwrap();
    deploy(&mut world, "2", model(1, true)).await;
    assert_eq!(states(&world).await, listed(&[("a", "doomed"), ("b", "kept")]));
    world.store.commit(&drawer(&world, Verb::Update, json!({"many": ""}))).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("a", "doomed"), ("b", "doomed")]), "the new column is followed");
    deploy(&mut world, "3", model(5, true)).await;
    received(&world, "c_drawers", "f_many", "c").await;
    world.store.commit(&drawer(&world, Verb::Update, json!({"many": ["c"]}))).await.unwrap();
    assert!(states(&world).await.contains(&("c".to_owned(), "kept".to_owned())));
}

#[tokio::test]
async fn files_of_a_dropped_field_stay_while_it_can_come_back() {
    let mut world = world().await;
    let first = world.app.release;
    for (field, name) in [("f_many", "m"), ("f_one", "o")] {
        received(&world, "c_drawers", field, name).await;
    }
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["m"], "one": "o"}))).await.unwrap();
    deploy(&mut world, "2", model(3, false)).await;
    assert_eq!(states(&world).await, listed(&[("m", "kept"), ("o", "kept")]));
    let back = bare(world.tenant, "apps.rollback");
    world.store.rollback(&back, world.app.id, first).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("m", "kept"), ("o", "kept")]));
    world.app = world.store.app_by_id(world.app.id).await.unwrap().unwrap();
    deploy(&mut world, "2", model(3, false)).await;
    assert_eq!(world.store.purge_dropped(chrono::Duration::seconds(-60)).await.unwrap(), 1);
    assert_eq!(states(&world).await, listed(&[("m", "kept"), ("o", "doomed")]));
}

#[tokio::test]
async fn files_of_a_removed_app_go_with_it() {
    let world = world().await;
    received(&world, "c_drawers", "f_one", "o").await;
    received(&world, "c_drawers", "f_one", "left").await;
    world.store.commit(&drawer(&world, Verb::Create, json!({"one": "o"}))).await.unwrap();
    world.store.remove(&bare(world.tenant, "apps.rm"), world.app.id).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("left", "doomed"), ("o", "doomed")]));
}

/// The last part of the migration, run again on an app whose tables nobody follows.
#[tokio::test]
async fn the_migration_follows_apps_that_were_there_before() {
    let world = world().await;
    let admin = world.db.admin().await;
    let table = world.table("drawers");
    let unfollow = format!("SELECT inn.follow_table('{table}', '{}', 'c_drawers', '{{}}')", world.app.id.uuid());
    admin.batch_execute(&unfollow).await.unwrap();
    world.store.commit(&drawer(&world, Verb::Create, json!({"many": ["nothing"]}))).await.unwrap();
    let migration = include_str!("../../../../migrations/V0009__files.sql");
    let (_, last) = migration.split_once("-- Apps that were deployed before.").unwrap();
    admin.batch_execute(last).await.unwrap();
    let update = drawer(&world, Verb::Update, json!({"many": ["nothing", "either"]}));
    assert_eq!(code(world.store.commit(&update).await), Code::Conflict);
    received(&world, "c_drawers", "f_many", "a").await;
    world.store.commit(&drawer(&world, Verb::Update, json!({"many": ["a"]}))).await.unwrap();
    assert_eq!(states(&world).await, listed(&[("a", "kept")]));
}
