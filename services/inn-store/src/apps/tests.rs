use std::collections::BTreeMap;
use std::time::Duration;

use inn_ports::{Directory as _, Ledger as _, ListPlan, Records as _};
use inn_protocol::call::LiveCheck;
use inn_protocol::model::Model;
use inn_protocol::register::EntryDraft;
use inn_protocol::{CallId, Code, Refusal, UserId};
use inn_rules::filter::Expr;
use serde_json::json;

use super::*;
use crate::columns::fixture::{collection, definition, insert, model, read_all};
use crate::commit::fixture::World;
use crate::testdb::TestDb;

async fn tenant(db: &TestDb, slug: &str) -> TenantId {
    let tenant = TenantId::new();
    let insert = "INSERT INTO inn.tenants (id, slug, name) VALUES ($1, $2, $2)";
    db.admin().await.execute(insert, &[&tenant.uuid(), &slug]).await.unwrap();
    tenant
}

fn call(tenant: TenantId) -> CallRecord {
    CallRecord {
        draft: EntryDraft {
            call: CallId::new(),
            tenant,
            app: None,
            caller: "person",
            user: Some(UserId::new()),
            agent: None,
            helper: None,
            grant: None,
            via: None,
            app_user: None,
            action: "apps.deploy".to_owned(),
            target: "board".to_owned(),
            body: Digest::of(b""),
            claimed_agent: None,
            signature_base: None,
            signature: None,
        },
        live: LiveCheck::default(),
        nonce: None,
        idempotency: None,
    }
}

fn plan(tenant: TenantId, version: &str, model: Model) -> DeployPlan {
    DeployPlan {
        tenant,
        slug: "board".to_owned(),
        release: Digest::of(version.as_bytes()),
        archive: Digest::of(format!("archive {version}").as_bytes()),
        archive_bytes: 10,
        files: BTreeMap::new(),
        ui_files: BTreeMap::from([("index.html".to_owned(), Digest::of(b"<html>"))]),
        consented: Vec::new(),
        allow_destructive: false,
        dry_run: false,
        definition: Arc::new(definition(model, version)),
    }
}

/// A board with the given columns besides `title`.
fn board(extra: &[&str]) -> Model {
    board_ruled(extra, None)
}

fn board_ruled(extra: &[&str], rule: Option<&str>) -> Model {
    let mut fields = vec![json!({"id": "f_title", "name": "title", "type": "text"})];
    fields.extend(extra.iter().map(|name| json!({"id": format!("f_{name}"), "name": name, "type": "text"})));
    model(vec![collection(
        json!({"id": "c_cards", "name": "cards", "type": "base", "fields": fields, "listRule": rule}),
    )])
}

async fn entries(db: &TestDb) -> i64 {
    db.admin().await.query_one("SELECT count(*) FROM inn.entries", &[]).await.unwrap().get(0)
}

fn code(error: StoreError) -> Code {
    Refusal::from(error).code
}

#[tokio::test]
async fn a_deploy_makes_tables_a_release_and_a_receipt() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let deployed = store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap();
    assert!(!deployed.unchanged && !deployed.dry_run);
    assert_eq!(deployed.changes, ["Add the collection cards"]);
    let receipt = deployed.receipt.unwrap();
    assert_eq!(receipt.sentence, "Deployed Posts as board");
    assert_eq!(receipt.stored["slug"], "board");
    assert_eq!(entries(&db).await, 1);

    let all = store.all_apps().await.unwrap();
    let snapshot = &all[0];
    assert_eq!((snapshot.id, snapshot.tenant, snapshot.slug.as_str()), (deployed.app, tenant, "board"));
    assert_eq!(snapshot.definition.version, "1");
    assert_eq!(snapshot.ui_files["index.html"], Digest::of(b"<html>"));
    let listed = store.apps(tenant).await.unwrap();
    assert_eq!((listed[0].id, listed[0].name.as_str(), listed[0].version.as_str()), (deployed.app, "Posts", "1"));
    assert!(store.apps(TenantId::new()).await.unwrap().is_empty());

    insert(&store, deployed.app, &board(&[]).collections[0], json!({"id": "r1", "title": "t"}).as_object().unwrap())
        .await;
    let list = ListPlan {
        app: snapshot.clone(),
        entity: "cards".to_owned(),
        filter: Expr::Always,
        sort: Vec::new(),
        paging: inn_protocol::query::Paging::default(),
    };
    assert_eq!(store.list(&list).await.unwrap().rows[0]["title"], "t");

    let again = store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap();
    assert!(again.unchanged && again.app == deployed.app);
    assert_eq!(store.all_apps().await.unwrap()[0].epoch, snapshot.epoch, "nothing was activated");
}

#[tokio::test]
async fn the_next_release_moves_the_epoch_and_keeps_the_records() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let first = store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap();
    let before = store.all_apps().await.unwrap()[0].epoch;
    insert(&store, first.app, &board(&[]).collections[0], json!({"id": "r1", "title": "t"}).as_object().unwrap()).await;
    let second = store.deploy(&call(tenant), &plan(tenant, "2", board(&["note"]))).await.unwrap();
    assert_eq!((second.app, second.changes.as_slice()), (first.app, ["Add note to cards".to_owned()].as_slice()));
    assert!(store.all_apps().await.unwrap()[0].epoch > before);
    let rows = read_all(&store, first.app, &board(&["note"]).collections[0]).await;
    assert_eq!(rows, [json!({"id": "r1", "title": "t", "note": ""}).as_object().unwrap().clone()]);
    let releases = store.releases(tenant, first.app).await.unwrap();
    assert_eq!(
        releases.iter().map(|release| (release.version.as_str(), release.active)).collect::<Vec<_>>(),
        [("2", true), ("1", false)]
    );
    assert!(store.releases(TenantId::new(), first.app).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let dry = |version: &str, model| DeployPlan { dry_run: true, ..plan(tenant, version, model) };
    let first = store.deploy(&call(tenant), &dry("1", board(&[]))).await.unwrap();
    assert!(first.dry_run && first.changes == ["Add the collection cards"]);
    assert!(store.all_apps().await.unwrap().is_empty());
    assert_eq!(entries(&db).await, 1, "the attempt is in the register");
    store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap();
    let second = store.deploy(&call(tenant), &dry("2", board(&["note"]))).await.unwrap();
    assert_eq!(second.changes, ["Add note to cards"]);
    assert_eq!(store.apps(tenant).await.unwrap()[0].version, "1");
    assert_eq!(store.releases(tenant, second.app).await.unwrap().len(), 1);
}

#[tokio::test]
async fn losing_data_needs_a_word_and_a_failed_deploy_leaves_the_old_release() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let first = store.deploy(&call(tenant), &plan(tenant, "1", board(&["note"]))).await.unwrap();
    let dropping = plan(tenant, "2", board(&[]));
    let refusal = Refusal::from(store.deploy(&call(tenant), &dropping).await.unwrap_err());
    assert_eq!(refusal.code, Code::DestructiveChange);
    assert_eq!(refusal.violations[0].field, "cards.note");
    let broken_rule = plan(tenant, "3", board_ruled(&["note"], Some("nothing.like.this = 1")));
    assert_eq!(code(store.deploy(&call(tenant), &broken_rule).await.unwrap_err()), Code::InvalidFilter);

    let listed = store.apps(tenant).await.unwrap();
    assert_eq!((listed[0].version.as_str(), listed[0].release), ("1", first.release));
    let releases = store.releases(tenant, first.app).await.unwrap();
    let failures: Vec<(&str, bool)> = releases.iter().map(|r| (r.version.as_str(), r.failure.is_some())).collect();
    assert_eq!(failures, [("3", true), ("2", true), ("1", false)]);
    assert!(releases[1].failure.as_deref().unwrap().contains("Drop note of cards"), "{:?}", releases[1].failure);

    let allowed = DeployPlan { allow_destructive: true, ..dropping };
    store.deploy(&call(tenant), &allowed).await.unwrap();
    assert!(
        store
            .releases(tenant, first.app)
            .await
            .unwrap()
            .iter()
            .all(|r| r.version != "2" || r.failure.is_none() && r.active)
    );
}

#[tokio::test]
async fn a_rollback_brings_code_and_schema_back_together() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let with_note = board(&["note"]);
    let first = store.deploy(&call(tenant), &plan(tenant, "1", with_note.clone())).await.unwrap();
    insert(
        &store,
        first.app,
        &with_note.collections[0],
        json!({"id": "r1", "title": "t", "note": "kept"}).as_object().unwrap(),
    )
    .await;
    let second = DeployPlan { allow_destructive: true, ..plan(tenant, "2", board(&["other"])) };
    store.deploy(&call(tenant), &second).await.unwrap();
    let back = store.rollback(&call(tenant), first.app, first.release).await.unwrap();
    assert_eq!((back.release, back.unchanged), (first.release, false));
    assert_eq!(read_all(&store, first.app, &with_note.collections[0]).await[0]["note"], "kept");
    assert_eq!(store.apps(tenant).await.unwrap()[0].version, "1");
    assert!(store.rollback(&call(tenant), first.app, first.release).await.unwrap().unchanged);

    let never = Digest::of(b"never");
    assert_eq!(code(store.rollback(&call(tenant), first.app, never).await.unwrap_err()), Code::NotFound);
    let stranger = self::tenant(&db, "other").await;
    assert_eq!(code(store.rollback(&call(stranger), first.app, first.release).await.unwrap_err()), Code::UnknownApp);
}

#[tokio::test]
async fn a_name_is_never_given_to_another_tenant() {
    let (store, db) = TestDb::new().await;
    let (acme, other) = (tenant(&db, "acme").await, tenant(&db, "other").await);
    let first = store.deploy(&call(acme), &plan(acme, "1", board(&[]))).await.unwrap();
    assert_eq!(code(store.deploy(&call(other), &plan(other, "1", board(&[]))).await.unwrap_err()), Code::SlugTaken);
    assert_eq!(code(store.remove(&call(other), first.app).await.unwrap_err()), Code::UnknownApp);
    let receipt = store.remove(&call(acme), first.app).await.unwrap();
    assert_eq!(receipt.sentence, "Removed board with all its records");
    assert!(store.all_apps().await.unwrap().is_empty() && store.apps(acme).await.unwrap().is_empty());
    let schemas: i64 = db
        .admin()
        .await
        .query_one("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'app\\_%'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(schemas, 0);
    assert_eq!(code(store.deploy(&call(other), &plan(other, "1", board(&[]))).await.unwrap_err()), Code::SlugTaken);
    assert_eq!(code(store.remove(&call(acme), first.app).await.unwrap_err()), Code::UnknownApp);

    // The owner gets the name back, for a new install that no old grant knows.
    let again = store.deploy(&call(acme), &plan(acme, "1", board(&[]))).await.unwrap();
    assert_ne!(again.app, first.app);
    store.remove(&call(acme), again.app).await.unwrap();
    assert_eq!(code(store.deploy(&call(other), &plan(other, "1", board(&[]))).await.unwrap_err()), Code::SlugTaken);
}

#[tokio::test]
async fn two_deploys_of_one_name_at_once_are_never_mixed() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let plans: Vec<DeployPlan> = (0..6).map(|number| plan(tenant, &number.to_string(), board(&[]))).collect();
    let calls: Vec<CallRecord> = plans.iter().map(|_| call(tenant)).collect();
    let outcomes =
        futures_util::future::join_all(calls.iter().zip(&plans).map(|(call, plan)| store.deploy(call, plan))).await;
    let (done, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert!(!done.is_empty());
    for outcome in refused {
        assert_eq!(code(outcome.unwrap_err()), Code::InProgress);
    }
    let apps = store.apps(tenant).await.unwrap();
    assert_eq!(apps.len(), 1);
    let active = store.releases(tenant, apps[0].id).await.unwrap().iter().filter(|release| release.active).count();
    assert_eq!(active, 1);
}

#[tokio::test]
async fn a_deploy_does_not_wait_for_ever_for_a_table_in_use() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let first = store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap();
    let mut admin = db.admin().await;
    let busy = admin.transaction().await.unwrap();
    let hold =
        format!("LOCK TABLE {} IN ACCESS SHARE MODE", crate::columns::table(first.app, &board(&[]).collections[0]));
    busy.batch_execute(&hold).await.unwrap();
    let second = plan(tenant, "2", board(&["note"]));
    let call = call(tenant);
    let waiting = tokio::time::timeout(Duration::from_secs(20), store.deploy(&call, &second));
    assert_eq!(code(waiting.await.unwrap().unwrap_err()), Code::Overloaded);
    busy.rollback().await.unwrap();
    assert_eq!(store.apps(tenant).await.unwrap()[0].version, "1");
}

#[tokio::test]
async fn a_removed_app_takes_its_grants_requests_and_sessions_along() {
    let (store, db) = TestDb::new().await;
    let tenant = tenant(&db, "acme").await;
    let app = store.deploy(&call(tenant), &plan(tenant, "1", board(&[]))).await.unwrap().app;
    let (admin, user) = (db.admin().await, UserId::new());
    let rows = format!(
        "INSERT INTO inn.users (id, email, email_key, password) VALUES ('{user}', 'a@b.c', 'a@b.c', '-');
         INSERT INTO inn.agents (id, public_key, name) VALUES ('{agent}', decode(repeat('00', 32), 'hex'), 'a');
         INSERT INTO inn.grants (id, tenant, app, agent, user_id, scopes) VALUES (gen_random_uuid(), '{tenant}', '{app}', '{agent}', '{user}', '{{}}');
         INSERT INTO inn.grant_requests (id, tenant, app, agent, code, scopes, reason, expires_at)
            VALUES (gen_random_uuid(), '{tenant}', '{app}', '{agent}', 'c', '{{}}', '', now() + interval '1 hour');
         INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_label, attempts, lease_seconds, state, holder, holder_grant, lease_until)
            VALUES (gen_random_uuid(), '{tenant}', '{app}', 'x', '{{}}', 'me', 3, 60, 'working', '{agent}', gen_random_uuid(), now());
         INSERT INTO inn.sessions (id, user_id, tenant, token, app, expires_at)
            VALUES (gen_random_uuid(), '{user}', '{tenant}', '\\x00', '{app}', now() + interval '1 hour')",
        agent = "a".repeat(43),
        user = user.uuid(),
        tenant = tenant.uuid(),
        app = app.uuid(),
    );
    admin.batch_execute(&rows).await.unwrap();
    store.remove(&call(tenant), app).await.unwrap();
    let left = "SELECT (SELECT count(*) FROM inn.grants WHERE revoked_at IS NULL)
        + (SELECT count(*) FROM inn.grant_requests WHERE status = 'pending')
        + (SELECT count(*) FROM inn.requests WHERE ended_at IS NULL)
        + (SELECT count(*) FROM inn.sessions WHERE ended_at IS NULL)";
    let left: i64 = admin.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_go_on_while_releases_change_and_none_is_lost_or_stuck() {
    let world = Arc::new(World::new().await);
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut written: i64 = 0;
                for number in 0..40 {
                    loop {
                        let app = world.store.app_by_id(world.app.id).await.unwrap().unwrap();
                        let mut plan = world.card(&format!("w{writer}n{number}"), "while deploying");
                        plan.record.live.app = Some((app.id, app.epoch));
                        plan.app = app;
                        match world.store.commit(&plan).await {
                            Ok(_) => break,
                            Err(StoreError::Stale) => {}
                            Err(error) => panic!("{error:?}"),
                        }
                    }
                    written += 1;
                }
                written
            })
        })
        .collect();
    let mut next = (*world.app.definition).clone();
    for number in 0..8 {
        let fields = &mut next.model.collections.iter_mut().find(|found| found.name == "cards").unwrap().fields;
        let field = json!({"id": format!("f_extra{number}"), "name": format!("extra{number}"), "type": "text"});
        fields.push(serde_json::from_value(field).unwrap());
        let plan = DeployPlan {
            slug: "kanban".to_owned(),
            definition: Arc::new(next.clone()),
            ..plan(world.tenant, &format!("r{number}"), Model::default())
        };
        let call = call(world.tenant);
        while let Err(error) = world.store.deploy(&call, &plan).await {
            assert!(matches!(error, StoreError::Stale), "{error:?}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut written = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert_eq!(world.count(&world.table("cards")).await, written);
    assert_eq!(world.count("inn.entries WHERE action = 'records.create'").await, written);
}
