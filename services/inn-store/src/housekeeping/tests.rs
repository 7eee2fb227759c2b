use inn_protocol::TenantId;

use crate::Housekept;
use crate::commit::fixture::{bare, code, key};
use crate::testdb::TestDb;

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_goes_and_what_has_not_stays() {
    let (store, db) = TestDb::new().await;
    let admin = db.admin().await;
    admin
        .batch_execute(
            "INSERT INTO inn.nonces SELECT 'a', n::text, now() - interval '2 minutes' FROM generate_series(1, 12000) n;
             INSERT INTO inn.nonces VALUES ('a', 'fresh', now() + interval '10 seconds'), ('a', 'grace', now() - interval '10 seconds');
             INSERT INTO inn.changes (app, verb, collection, record, \"row\", at) VALUES
                 (gen_random_uuid(), 'create', 'notes', 'old', '{}', now() - interval '61 minutes'),
                 (gen_random_uuid(), 'create', 'notes', 'new', '{}', now() - interval '59 minutes');
             INSERT INTO inn.outbox (tenant, topic, body, at) VALUES
                (gen_random_uuid(), 'x', '{}', now() - interval '4 days'), (gen_random_uuid(), 'x', '{}', now());",
        )
        .await
        .unwrap();
    for name in ["old", "new"] {
        let mut call = bare(TenantId::new(), "x");
        call.idempotency = Some(key(name, b"body"));
        let mut client = store.client().await.unwrap();
        store.begin(&mut client, &call).await.unwrap().commit("x".into(), serde_json::Map::new()).await.unwrap();
    }
    admin
        .execute("UPDATE inn.idempotency SET created_at = now() - interval '25 hours' WHERE key = 'old'", &[])
        .await
        .unwrap();
    let done = store.housekeeping().await.unwrap();
    assert_eq!(
        done,
        Housekept { partitions: 0, nonces: 12_000, idempotency_keys: 1, outbox_events: 1, changes: 1, account_rows: 0 }
    );
    let left: Vec<String> = admin
        .query("SELECT nonce FROM inn.nonces ORDER BY 1", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    assert_eq!(left, ["fresh", "grace"]);
    let mut again = bare(TenantId::new(), "x");
    again.idempotency = Some(key("new", b"body"));
    let mut client = store.client().await.unwrap();
    assert_eq!(code(store.begin(&mut client, &again).await.map(|_| ())), inn_protocol::Code::DuplicateRequest);
    assert_eq!(store.housekeeping().await.unwrap(), Housekept::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_made_ahead_once_and_a_month_that_began_in_the_default_is_left_alone() {
    let (store, db) = TestDb::new().await;
    let admin = db.admin().await;
    let partitions = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'inn.entries'::regclass";
    let count = async || admin.query_one(partitions, &[]).await.unwrap().get::<_, i64>(0);
    // This month, the next two, and the default.
    assert_eq!(count().await, 4);
    let made: i32 = admin.query_one("SELECT inn.ensure_partitions(4)", &[]).await.unwrap().get(0);
    assert!(made >= 4 && made % 2 == 0, "two months of every partitioned table: {made}");
    assert_eq!(count().await, 6);
    assert_eq!(store.housekeeping().await.unwrap().partitions, 0);
    admin
        .batch_execute(
            "INSERT INTO inn.entries (call, tenant, at, caller, action, target, facts, outcome, digest)
             VALUES (gen_random_uuid(), gen_random_uuid(), now() + interval '5 months 1 day', 'x', 'x', 'x', 'x', 'x', 'x');
             SELECT inn.ensure_partitions(6)",
        )
        .await
        .unwrap();
    assert!(count().await < 8, "the month with rows in the default has no partition of its own");
}
