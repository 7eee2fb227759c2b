use std::sync::Arc;
use std::time::Duration;

use inn_ports::{Grants, Ledger, Register, StoreError};
use inn_protocol::Code;
use inn_protocol::receipt::Verb;
use inn_protocol::register::entry_digest;
use inn_rules::filter::{AuthFacts, Comparison, Expr, FieldClass, FieldRef, Op, Operand, Scope, Walk, compile};
use serde_json::json;

use super::fixture::{World, bare, code, key, refused};

#[tokio::test(flavor = "multi_thread")]
async fn one_write_keeps_record_entry_receipt_event_nonce_and_key_together() {
    let world = World::new().await;
    world.create("lists", "l1", json!({"title": "To Do"})).await;
    let before = world.traces().await;
    let mut plan = world.plan(
        Verb::Create,
        "cards",
        "c1",
        json!({"title": "Eat chicken", "list": "l1", "points": 3, "done": true, "tags": ["a"], "extra": {"b": 1, "a": [2.5]}, "secret": "s3"}),
    );
    plan.record.nonce = Some(world.nonce("n1"));
    plan.record.idempotency = Some(key("k1", b"body"));
    let done = world.store.commit(&plan).await.unwrap();

    let after: Vec<i64> = world.traces().await.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert_eq!(after, [1, 1, 1, 1, 0, 1, 1]);
    assert_eq!(done.row["secret"], "s3", "the inside sees every column");
    assert!(!done.receipt.stored.contains_key("secret"), "a receipt shows no hidden field");
    assert_eq!(done.receipt.stored["extra"], json!({"b": 1, "a": [2.5]}));
    assert_eq!(done.receipt.stored["tags"], json!(["a"]));
    let created = done.receipt.stored["created"].as_str().unwrap();
    assert!(created.len() == 24 && created.ends_with('Z') && created.as_bytes()[10] == b' ', "{created}");
    assert!(
        done.receipt.sentence.contains("Eat chicken") && done.receipt.sentence.contains("To Do"),
        "{}",
        done.receipt.sentence
    );

    // The same bytes later.
    let again = world.store.receipt(world.tenant, plan.record.draft.call).await.unwrap().unwrap();
    assert_eq!(serde_json::to_string(&again).unwrap(), serde_json::to_string(&done.receipt).unwrap());
    // The entry's digest is the published recipe.
    let entry = world.store.entry(world.tenant, plan.record.draft.call).await.unwrap().unwrap();
    assert_eq!(entry.outcome, "done");
    assert_eq!(entry.at, done.receipt.at);
    assert!(entry.effect.is_some());
    assert_eq!(entry.digest, entry_digest(&plan.record.draft.canonical(), "done", entry.at, entry.effect));
    // Another tenant sees neither.
    let other = inn_protocol::TenantId::new();
    assert!(world.store.receipt(other, plan.record.draft.call).await.unwrap().is_none());
    assert!(world.store.entry(other, plan.record.draft.call).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_what_was_sent_and_nothing_else() {
    let world = World::new().await;
    let created = world.create("cards", "c1", json!({"title": "One", "points": 3, "code": "x", "secret": "s"})).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let done = world
        .store
        .commit(&world.plan(Verb::Update, "cards", "c1", json!({"title": "Two", "points": 0})))
        .await
        .unwrap();
    assert_eq!(done.row["title"], "Two");
    assert_eq!(done.row["points"], json!(0));
    assert_eq!((&done.row["code"], &done.row["secret"]), (&json!("x"), &json!("s")));
    assert_eq!(done.row["created"], created.row["created"]);
    assert_ne!(done.row["updated"], created.row["updated"]);
    assert_eq!(
        code(world.store.commit(&world.plan(Verb::Update, "cards", "nope", json!({"title": "x"}))).await),
        Code::NotFound
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_answers_the_row_as_it_was_and_a_second_one_finds_nothing() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "One", "points": 3})).await;
    world.create("notes", "n1", json!({"card": "c1", "text": "a"})).await;
    let done = world.store.commit(&world.plan(Verb::Delete, "notes", "n1", json!({}))).await.unwrap();
    assert_eq!(done.row["text"], "a");
    let done = world.store.commit(&world.plan(Verb::Delete, "cards", "c1", json!({}))).await.unwrap();
    assert_eq!((&done.row["title"], &done.row["points"]), (&json!("One"), &json!(3)));
    assert_eq!(code(world.store.commit(&world.plan(Verb::Delete, "cards", "c1", json!({}))).await), Code::NotFound);
    assert_eq!(world.count(&world.table("cards")).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_live_guard_stops_the_write_and_leaves_nothing() {
    let world = World::new().await;
    let session = inn_protocol::SessionId::new();
    let before = world.traces().await;
    type Change = Box<dyn Fn(&mut inn_protocol::call::LiveCheck)>;
    let cases: [(&str, Change); 5] = [
        ("another release", Box::new(|live| live.app.as_mut().unwrap().1 += 1)),
        ("another grant epoch", Box::new(|live| live.grant.as_mut().unwrap().1 += 1)),
        ("an unknown grant", Box::new(|live| live.grant.as_mut().unwrap().0 = inn_protocol::GrantId::new())),
        ("another membership", Box::new(|live| live.member.as_mut().unwrap().2 += 1)),
        ("no such session", Box::new(move |live| live.session = Some(session))),
    ];
    for (what, change) in cases {
        let mut plan = world.card("c1", "One");
        plan.record.nonce = Some(world.nonce("n1"));
        plan.record.idempotency = Some(key("k1", b"body"));
        change(&mut plan.record.live);
        let result = world.store.commit(&plan).await;
        assert!(matches!(result, Err(StoreError::Stale)), "{what}: {result:?}");
        assert_eq!(world.traces().await, before, "{what}");
    }
    // Nothing was used up: the same nonce and key are good now.
    let mut plan = world.card("c1", "One");
    plan.record.nonce = Some(world.nonce("n1"));
    plan.record.idempotency = Some(key("k1", b"body"));
    world.store.commit(&plan).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_nonce_is_refused_and_leaves_nothing() {
    let world = World::new().await;
    let mut plan = world.card("c1", "One");
    plan.record.nonce = Some(world.nonce("n1"));
    world.store.commit(&plan).await.unwrap();
    let before = world.traces().await;
    let mut again = world.card("c2", "Two");
    again.record.nonce = Some(world.nonce("n1"));
    assert_eq!(code(world.store.commit(&again).await), Code::ReplayedNonce);
    // In the stepped form as well.
    let mut client = world.store.client().await.unwrap();
    let mut call = bare(world.tenant, "x");
    call.nonce = Some(world.nonce("n1"));
    let stepped = world.store.begin(&mut client, &call).await.map(|_| ());
    assert_eq!(code(stepped), Code::ReplayedNonce);
    assert_eq!(world.traces().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_used_key_names_the_record_or_refuses_another_body() {
    let world = World::new().await;
    let mut plan = world.card("c1", "One");
    plan.record.idempotency = Some(key("k1", b"body"));
    world.store.commit(&plan).await.unwrap();
    let before = world.traces().await;
    let mut again = world.card("c2", "One");
    again.record.idempotency = Some(key("k1", b"body"));
    let refusal = refused(world.store.commit(&again).await);
    assert_eq!((refusal.code, refusal.id.as_deref()), (Code::DuplicateRequest, Some("c1")));
    again.record.idempotency = Some(key("k1", b"other body"));
    assert_eq!(code(world.store.commit(&again).await), Code::KeyReused);
    assert_eq!(world.traces().await, before);
    // Another caller's same key is another key; and after a day it is a new call.
    again.record.idempotency.as_mut().unwrap().scope = "somebody else".into();
    world.store.commit(&again).await.unwrap();
    world
        .db
        .admin()
        .await
        .execute("UPDATE inn.idempotency SET created_at = now() - interval '25 hours'", &[])
        .await
        .unwrap();
    let mut late = world.card("c3", "Three");
    late.record.idempotency = Some(key("k1", b"body"));
    world.store.commit(&late).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_racers_with_one_key_make_one_record() {
    let world = Arc::new(World::new().await);
    let racers = (0..50).map(|racer| {
        let world = world.clone();
        tokio::spawn(async move {
            let mut plan = world.card(&format!("c{racer}"), "One");
            plan.record.idempotency = Some(key("k1", b"body"));
            world.store.commit(&plan).await.map(|done| done.row["id"].clone())
        })
    });
    let (mut won, mut duplicates) = (Vec::new(), Vec::new());
    for racer in racers.collect::<Vec<_>>() {
        match racer.await.unwrap() {
            Ok(id) => won.push(id),
            Err(StoreError::Refused(refusal)) => match refusal.code {
                Code::DuplicateRequest => duplicates.push(refusal.id.unwrap()),
                Code::InProgress => assert_eq!(refusal.retry_after_seconds, Some(1)),
                other => panic!("{other:?}"),
            },
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(won.len(), 1);
    assert!(duplicates.iter().all(|id| won[0] == **id), "{duplicates:?}");
    assert_eq!(world.count(&world.table("cards")).await, 1);
    assert_eq!(world.count("inn.idempotency").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_gets_through_after_the_revocation_returned() {
    let world = Arc::new(World::new().await);
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (world, stop) = (world.clone(), stop.clone());
            tokio::spawn(async move {
                let mut written = 0;
                for turn in 0.. {
                    let result = world.store.commit(&world.card(&format!("w{writer}x{turn}"), "One")).await;
                    match result {
                        Ok(_) => written += 1,
                        Err(StoreError::Stale) => break,
                        Err(other) => panic!("{other:?}"),
                    }
                    assert!(!stop.load(std::sync::atomic::Ordering::SeqCst) || turn < 100_000, "it never ends");
                }
                written
            })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(150)).await;
    world.store.revoke(&bare(world.tenant, "grants.revoke"), world.tenant, world.grant).await.unwrap();
    let at_return = world.count(&world.table("cards")).await;
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut written: i64 = 0;
    for writer in writers {
        written += writer.await.unwrap();
    }
    assert!(written > 0, "the race was run");
    assert_eq!(world.count(&world.table("cards")).await, at_return);
    assert_eq!(written, at_return);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_does_not_land_rolls_everything_back() {
    let world = World::new().await;
    // Something in the database that eats a value, which no guard can see.
    let table = world.table("cards");
    world
        .db
        .admin()
        .await
        .batch_execute(&format!(
            "CREATE FUNCTION eat() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.title := ''; NEW.tags := '{{}}'; RETURN NEW; END $$;
             CREATE TRIGGER eat BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION eat()"
        ))
        .await
        .unwrap();
    let before = world.traces().await;
    let mut plan = world.plan(Verb::Create, "cards", "c1", json!({"title": "One", "points": 2, "tags": ["a"]}));
    plan.record.nonce = Some(world.nonce("n1"));
    plan.record.idempotency = Some(key("k1", b"body"));
    let refusal = refused(world.store.commit(&plan).await);
    assert_eq!(refusal.code, Code::NotStored);
    let fields: Vec<_> = refusal.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["title", "tags"]);
    assert_eq!(world.traces().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_references_are_all_named_and_existing_ones_are_held() {
    let world = World::new().await;
    world.create("lists", "l1", json!({"title": "To Do"})).await;
    let plan = world.plan(Verb::Create, "cards", "c1", json!({"title": "One", "list": "nope", "also": ["l1", "gone"]}));
    let refusal = refused(world.store.commit(&plan).await);
    assert_eq!(refusal.code, Code::InvalidRef);
    let fields: Vec<_> = refusal.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["list", "also"]);
    // A field that is not sent is not looked at on update.
    world.create("cards", "c1", json!({"title": "One", "list": "l1"})).await;
    world.store.commit(&world.plan(Verb::Update, "cards", "c1", json!({"title": "Two"}))).await.unwrap();
    let bad = world.plan(Verb::Update, "cards", "c1", json!({"list": "nope"}));
    assert_eq!(code(world.store.commit(&bad).await), Code::InvalidRef);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unique_index_names_its_field_and_the_id_is_unique_too() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "One", "code": "x"})).await;
    for (id, code_value, field) in [("c2", "x", "code"), ("c1", "y", "id")] {
        let plan = world.plan(Verb::Create, "cards", id, json!({"title": "Two", "code": code_value}));
        let refusal = refused(world.store.commit(&plan).await);
        assert_eq!(refusal.code, Code::NotUnique);
        assert_eq!(refusal.violations[0].field, field);
    }
    let long: String = (0..4000_u32).map(|n| char::from_u32(0x4e00 + n).unwrap()).collect();
    let plan = world.plan(Verb::Create, "cards", "c3", json!({"title": "Long", "code": long}));
    assert_eq!(code(world.store.commit(&plan).await), Code::InvalidValue);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_rule_that_needs_other_records_is_decided_before_the_row_is_there() {
    let world = World::new().await;
    let only_the_first = |world: &World| {
        let plan = world.plan(Verb::Create, "cards", "c1", json!({"title": "One"}));
        let model = &plan.app.definition.model;
        let (auth, now) = (AuthFacts::nobody(), chrono::DateTime::UNIX_EPOCH);
        let collection = model.collection("cards").unwrap();
        let scope = Scope { collection, model, now, auth: &auth, see_hidden: true };
        compile("title = 'One' && @collection.cards.id ?= ''", &scope).unwrap()
    };
    for (id, title, allowed) in [("c1", "Two", false), ("c1", "One", true), ("c2", "One", false)] {
        let mut plan = world.plan(Verb::Create, "cards", id, json!({"title": title}));
        plan.write.rule = Some(only_the_first(&world));
        let done = world.store.commit(&plan).await;
        if allowed {
            assert_eq!(done.unwrap().row["title"], title);
        } else {
            assert_eq!(code(done), Code::CreateRefused);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_and_fixed_filter_hide_rows_that_do_not_match() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "One", "points": 1})).await;
    let points_are = |points: f64| {
        let field = FieldRef::new(Walk::default(), "points", FieldClass::Number);
        Expr::Compare(Comparison {
            left: Operand::Field(field),
            op: Op::Eq,
            any: false,
            right: Operand::Number(points),
        })
    };
    for (rule, fixed) in [(Some(points_are(2.0)), None), (None, Some(points_are(2.0))), (Some(Expr::Never), None)] {
        for verb in [Verb::Update, Verb::Delete] {
            let mut plan = world.plan(verb, "cards", "c1", json!({}));
            (plan.write.rule, plan.write.fixed) = (rule.clone(), fixed.clone());
            assert_eq!(code(world.store.commit(&plan).await), Code::NotFound);
        }
    }
    let mut plan = world.plan(Verb::Update, "cards", "c1", json!({"title": "Two"}));
    (plan.write.rule, plan.write.fixed) = (Some(points_are(1.0)), Some(points_are(1.0)));
    world.store.commit(&plan).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn increments_of_many_at_once_all_count_and_keep_the_fields_rules() {
    let world = Arc::new(World::new().await);
    world.create("cards", "c1", json!({"title": "One", "points": 1})).await;
    let add = |world: &World, amount: serde_json::Value| {
        let mut plan = world.plan(Verb::Update, "cards", "c1", json!({}));
        plan.write.increments.insert("points".into(), amount);
        plan
    };
    let all: Vec<_> = (0..20)
        .map(|_| {
            let world = world.clone();
            let plan = add(&world, json!(2));
            tokio::spawn(async move { world.store.commit(&plan).await.unwrap() })
        })
        .collect();
    for one in all {
        one.await.unwrap();
    }
    let done = world.store.commit(&add(&world, json!(-1))).await.unwrap();
    assert_eq!(done.row["points"], json!(40));
    for (amount, rule) in [(json!(61), "at most 100"), (json!(0.5), "whole number")] {
        let refusal = refused(world.store.commit(&add(&world, amount)).await);
        assert_eq!(refusal.code, Code::InvalidNumber);
        assert!(refusal.violations[0].expected.as_ref().unwrap().contains(rule));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_follows_every_kind_of_reference() {
    let world = World::new().await;
    world.create("lists", "l1", json!({"title": "To Do"})).await;
    world.create("lists", "l2", json!({"title": "Done"})).await;
    world.create("cards", "c1", json!({"title": "One", "list": "l1"})).await;
    world.create("cards", "c2", json!({"title": "Two", "list": "l2", "also": ["l2", "l1"]})).await;
    world.create("notes", "n1", json!({"card": "c1"})).await;
    let before = world.traces().await;
    // c1 would go with l1, but a note needs c1.
    let refusal = refused(world.store.commit(&world.plan(Verb::Delete, "lists", "l1", json!({}))).await);
    assert_eq!(refusal.code, Code::RecordReferenced);
    assert!(refusal.who_can_fix.as_ref().is_some_and(|who| who.contains("notes.card")), "{refusal:?}");
    assert_eq!(world.traces().await, before, "all of it is rolled back");
    world.store.commit(&world.plan(Verb::Delete, "notes", "n1", json!({}))).await.unwrap();
    world.store.commit(&world.plan(Verb::Delete, "lists", "l1", json!({}))).await.unwrap();
    let admin = world.db.admin().await;
    let rows = admin.query(&format!("SELECT id, also FROM {}", world.table("cards")), &[]).await.unwrap();
    let rows: Vec<(String, Vec<String>)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(rows, [("c2".to_owned(), vec!["l2".to_owned()])]);
    let events =
        admin.query("SELECT collection, record, verb FROM inn.changes ORDER BY id DESC LIMIT 3", &[]).await.unwrap();
    let mut events: Vec<String> = events
        .iter()
        .map(|row| format!("{} {} {}", row.get::<_, &str>(2), row.get::<_, &str>(0), row.get::<_, &str>(1)))
        .collect();
    events.sort();
    assert_eq!(events, ["delete cards c1", "delete lists l1", "update cards c2"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reference_made_while_its_record_is_deleted_never_dangles() {
    let world = Arc::new(World::new().await);
    for round in 0..40 {
        let list = format!("l{round}");
        world.create("lists", &list, json!({"title": "To Do"})).await;
        let spawn = |plan: inn_ports::Plan| {
            let world = world.clone();
            tokio::spawn(async move { world.store.commit(&plan).await.map(|_| ()) })
        };
        let mut writers = Vec::new();
        for writer in 0..3 {
            let id = format!("c{round}x{writer}");
            writers.push(spawn(world.plan(
                Verb::Create,
                "cards",
                &id,
                json!({"title": "One", "also": [list.clone()]}),
            )));
        }
        let delete = spawn(world.plan(Verb::Delete, "lists", &list, json!({})));
        for writer in writers {
            match writer.await.unwrap() {
                Ok(()) => {}
                Err(StoreError::Refused(refusal)) => assert_eq!(refusal.code, Code::InvalidRef),
                Err(other) => panic!("{other:?}"),
            }
        }
        delete.await.unwrap().unwrap();
    }
    assert_eq!(world.count(&format!("{} WHERE also <> '{{}}'", world.table("cards"))).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_during_the_commit_is_unknown() {
    let world = Arc::new(World::new().await);
    let mut admin = world.db.admin().await;
    // Holds the grant's row, so that the write waits inside its one statement.
    let tx = admin.transaction().await.unwrap();
    tx.execute("SELECT 1 FROM inn.grants FOR UPDATE", &[]).await.unwrap();
    let writer = {
        let world = world.clone();
        tokio::spawn(async move { world.store.commit(&world.card("c1", "One")).await.map(|done| done.row) })
    };
    let second = world.db.admin().await;
    let struck = async {
        loop {
            let found = second
                .query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'", &[])
                .await
                .unwrap();
            if !found.is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), struck).await.unwrap();
    let result = writer.await.unwrap();
    assert!(matches!(result, Err(StoreError::Unknown)), "{result:?}");
    tx.rollback().await.unwrap();
    // The pool has healed.
    world.create("cards", "c1", json!({"title": "One"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_has_moved_on_is_stale_and_not_an_error() {
    let world = World::new().await;
    world.create("cards", "c1", json!({"title": "One"})).await;
    world
        .db
        .admin()
        .await
        .batch_execute(&format!("ALTER TABLE {} RENAME COLUMN code TO gone", world.table("cards")))
        .await
        .unwrap();
    let result = world.store.commit(&world.card("c2", "Two")).await;
    assert!(matches!(result, Err(StoreError::Stale)), "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_texts_are_values_and_never_sql() {
    let world = World::new().await;
    let nasty = "'; DROP TABLE cards; -- \" \\ $1 \u{202e} \u{1f600}";
    let done = world.create("cards", nasty, json!({"title": nasty, "extra": {nasty: nasty}})).await;
    assert_eq!(done.row["title"], nasty);
    assert_eq!(done.row["id"], nasty);
    assert_eq!(code(world.store.commit(&world.card("c\0", "x")).await), Code::NotFound);
    assert_eq!(code(world.store.commit(&world.card("c1", "x\0y")).await), Code::InvalidString);
    let plan = world.plan(Verb::Create, "cards", "c1", json!({"title": "x", "list": "a\0b"}));
    assert!(matches!(world.store.commit(&plan).await, Err(StoreError::Refused(_))));
    let mut plan = world.card("c1", "x");
    plan.record.draft.target = "cards/\0".into();
    world.store.commit(&plan).await.unwrap();
}
