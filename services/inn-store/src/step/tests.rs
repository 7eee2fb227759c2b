use inn_ports::{Register, StoreError};
use inn_protocol::{Code, Refusal, TenantId};
use serde_json::{Map, json};

use crate::commit::fixture::{World, bare, code, key, refused};
use crate::testdb::TestDb;

#[tokio::test(flavor = "multi_thread")]
async fn a_step_keeps_effect_event_entry_and_receipt_or_nothing() {
    let world = World::new().await;
    let before = world.traces().await;
    for commit in [false, true] {
        let mut call = world.call("requests.claim");
        call.nonce = Some(world.nonce("n1"));
        call.idempotency = Some(key("k1", b"body"));
        let mut client = world.store.client().await.unwrap();
        let step = world.store.begin(&mut client, &call).await.unwrap();
        step.tx()
            .execute("INSERT INTO inn.tenants (id, slug, name) VALUES ($1, 'x', 'X')", &[&TenantId::new().uuid()])
            .await
            .unwrap();
        step.outbox("requests", Some(world.app.id), json!({"n": 1})).await.unwrap();
        if commit {
            let receipt = step.commit("Claimed it".into(), Map::new()).await.unwrap();
            assert_eq!(receipt.id, call.draft.call);
            let entry = world.store.entry(world.tenant, call.draft.call).await.unwrap().unwrap();
            assert_eq!(entry.outcome, "done");
        } else {
            let error = step.refuse(Refusal::not_found()).await;
            assert!(matches!(error, StoreError::Refused(_)));
            assert_eq!(world.traces().await, before);
        }
    }
    let after: Vec<i64> = world.traces().await.iter().zip(&before).map(|(after, before)| after - before).collect();
    assert_eq!(after, [1, 1, 1, 1, 1, 0, 0]);
    assert_eq!(world.count("inn.tenants WHERE slug = 'x'").await, 1);

    let mut again = world.call("requests.claim");
    again.idempotency = Some(key("k1", b"body"));
    let mut client = world.store.client().await.unwrap();
    let refusal = refused(world.store.begin(&mut client, &again).await.map(|_| ()));
    assert_eq!(refusal.code, Code::DuplicateRequest);
    assert!(refusal.id.unwrap().starts_with("call_"), "without a record the receipt is named");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_step_rolls_back_and_its_connection_is_good_again() {
    let world = World::new().await;
    let before = world.traces().await;
    for _ in 0..20 {
        let mut call = world.call("x");
        call.nonce = Some(world.nonce("n1"));
        let mut client = world.store.client().await.unwrap();
        drop(world.store.begin(&mut client, &call).await.unwrap());
    }
    assert_eq!(world.traces().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_step_under_the_same_key_does_not_wait() {
    let (store, _db) = TestDb::new().await;
    let mut call = bare(TenantId::new(), "x");
    call.idempotency = Some(key("k1", b"body"));
    let (mut one, mut two) = (store.client().await.unwrap(), store.client().await.unwrap());
    let first = store.begin(&mut one, &call).await.unwrap();
    assert_eq!(code(store.begin(&mut two, &call).await.map(|_| ())), Code::InProgress);
    first.abandon().await;
    store.begin(&mut two, &call).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_lost_before_the_commit_means_that_nothing_happened() {
    let (store, db) = TestDb::new().await;
    let mut client = store.client().await.unwrap();
    let step = store.begin(&mut client, &bare(TenantId::new(), "x")).await.unwrap();
    let pid: i32 = step.tx().query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    db.admin().await.execute("SELECT pg_terminate_backend($1)", &[&pid]).await.unwrap();
    let result = step.outbox("x", None, json!({})).await;
    assert!(matches!(result, Err(StoreError::Unavailable)), "{result:?}");
}
