use std::sync::Arc;
use std::time::Duration;

use inn_ports::{Ledger, Register};
use inn_protocol::register::{CallOutcome, EntrySearch, Head, Verification};
use inn_protocol::{CallId, Digest, TenantId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::PgStore;
use crate::commit::fixture::{World, bare};
use crate::testdb::TestDb;

/// Reads written one after the other, so that the order of the chain is known.
async fn entries(store: &PgStore, tenant: TenantId, count: usize) -> Vec<CallId> {
    let mut calls = Vec::new();
    for _ in 0..count {
        let call = bare(tenant, "records.list");
        calls.push(call.draft.call);
        store.record(call, CallOutcome::Done).await.unwrap();
    }
    calls
}

async fn sealed(store: &PgStore, tenant: TenantId, count: usize) -> Head {
    let mut total = 0;
    // Another test's open transaction may hold the sealer back for a moment: transaction ids are the server's.
    for _ in 0..200 {
        total += store.seal_once(tenant).await.unwrap();
        if total >= count {
            return store.head(tenant).await.unwrap().unwrap();
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{total} of {count} were sealed");
}

fn problem(found: &Verification) -> &str {
    assert!(!found.ok);
    found.problems.first().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_chained_in_order_and_the_register_verifies() {
    let (store, _db) = TestDb::new().await;
    let tenant = TenantId::new();
    let found = store.verify(tenant, None).await.unwrap();
    assert!(found.ok && found.head.is_none(), "{found:?}");
    let calls = entries(&store, tenant, 5).await;
    let unsealed = store.verify(tenant, None).await.unwrap();
    assert!(unsealed.ok, "{unsealed:?}");
    assert_eq!((unsealed.entries, unsealed.sealed), (5, 0));
    let first = sealed(&store, tenant, 5).await;
    assert_eq!(first.seq, 5);
    entries(&store, tenant, 3).await;
    let second = sealed(&store, tenant, 3).await;
    assert_eq!(second.seq, 8);
    let found = store.verify(tenant, Some(&first)).await.unwrap();
    assert!(found.ok, "{found:?}");
    assert_eq!((found.entries, found.sealed, found.head.as_ref().map(|head| head.head)), (8, 8, Some(second.head)));
    assert!(found.heads >= 2);
    for (place, call) in calls.iter().enumerate() {
        let entry = store.entry(tenant, *call).await.unwrap().unwrap();
        assert_eq!(entry.seq, Some(i64::try_from(place).unwrap() + 1));
    }
    assert_eq!(store.seal_once(tenant).await.unwrap(), 0, "nothing is sealed twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_and_receipts_can_be_neither_changed_nor_removed() {
    let world = World::new().await;
    world.create("lists", "l1", json!({"title": "To Do"})).await;
    let admin = world.db.admin().await;
    for statement in [
        "UPDATE inn.entries SET outcome = 'refused:forbidden'",
        "DELETE FROM inn.entries",
        "TRUNCATE inn.entries",
        "UPDATE inn.receipts SET sentence = 'x'",
        "DELETE FROM inn.receipts",
        "TRUNCATE inn.receipts CASCADE",
    ] {
        let error = admin.batch_execute(statement).await.unwrap_err();
        assert_eq!(error.code().unwrap().code(), "INN02", "{statement}");
    }
    // Not through the partitions either.
    let partitions = admin
        .query(
            "SELECT tableoid::regclass::text FROM inn.entries UNION SELECT tableoid::regclass::text FROM inn.receipts",
            &[],
        )
        .await
        .unwrap();
    assert_eq!(partitions.len(), 2);
    for partition in &partitions {
        let name: &str = partition.get(0);
        assert!(!name.ends_with("_default"), "this month has a partition of its own");
        for statement in [format!("DELETE FROM {name}"), format!("TRUNCATE {name}")] {
            let error = admin.batch_execute(&statement).await.unwrap_err();
            assert_eq!(error.code().unwrap().code(), "INN02", "{statement}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_tampering_is_found() {
    // One database a case: each starts from a sealed register that verifies.
    let cases: [(&str, &str); 9] = [
        ("UPDATE inn.entries SET facts = replace(facts, 'records.create', 'records.delete') WHERE call = $1", "was changed"),
        (
            "UPDATE inn.entries SET outcome = 'refused:forbidden', digest = sha256(convert_to(facts || E'\\nrefused:forbidden\\n' || \
             ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n' || encode(effect, 'hex'), 'UTF8')) WHERE call = $1",
            "is not what was sealed",
        ),
        ("DELETE FROM inn.entries WHERE call = $1", "was removed"),
        ("UPDATE inn.receipts SET \"row\" = '{\"id\":\"l1\",\"title\":\"Forged\"}' WHERE call = $1", "receipt"),
        (
            "WITH a AS (DELETE FROM inn.entries WHERE call = $1) DELETE FROM inn.sealed WHERE call = $1",
            "of the chain are missing",
        ),
        ("DELETE FROM inn.receipts WHERE call = $1", "was removed"),
        ("UPDATE inn.sealed SET chain = sha256('x') WHERE call = $1", "is not what was sealed"),
        ("UPDATE inn.heads SET head = sha256('x') WHERE $1::uuid IS NOT NULL", "not signed"),
        (
            "INSERT INTO inn.entries (call, tenant, at, txid, caller, action, target, facts, outcome, digest)
             SELECT gen_random_uuid(), tenant, at, txid, caller, action, target, facts, outcome,
                sha256(convert_to(facts || E'\\n' || outcome || E'\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n', 'UTF8'))
             FROM inn.entries WHERE call = $1",
            "put in after",
        ),
    ];
    for (forgery, expected) in cases {
        let world = World::new().await;
        entries(&world.store, world.tenant, 2).await;
        let plan = world.plan(inn_protocol::receipt::Verb::Create, "lists", "l1", json!({"title": "To Do"}));
        world.store.commit(&plan).await.unwrap();
        entries(&world.store, world.tenant, 2).await;
        // The deploy of the fixture has an entry, too.
        sealed(&world.store, world.tenant, 6).await;
        let found = world.store.verify(world.tenant, None).await.unwrap();
        assert!(found.ok, "{found:?}");
        let admin = world.db.admin().await;
        // What only the owner of the database can do.
        admin.batch_execute("SET session_replication_role = replica").await.unwrap();
        let changed = admin.execute(forgery, &[&plan.record.draft.call.uuid()]).await.unwrap();
        assert!(changed > 0, "{forgery}");
        let found = world.store.verify(world.tenant, None).await.unwrap();
        assert!(!found.ok, "{forgery}");
        assert!(problem(&found).contains(expected), "{forgery}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_cut_off_or_a_chain_written_anew_shows_against_an_exported_head() {
    let (store, db) = TestDb::new().await;
    let tenant = TenantId::new();
    entries(&store, tenant, 4).await;
    let exported = sealed(&store, tenant, 4).await;
    let admin = db.admin().await;
    admin
        .batch_execute(
            "SET session_replication_role = replica;
             DELETE FROM inn.entries WHERE call IN (SELECT call FROM inn.sealed WHERE seq > 2);
             DELETE FROM inn.sealed WHERE seq > 2; DELETE FROM inn.heads; DELETE FROM inn.seal_state;",
        )
        .await
        .unwrap();
    let found = store.verify(tenant, Some(&exported)).await.unwrap();
    assert!(problem(&found).contains("cut off"), "{found:?}");
    // With everything gone, too.
    admin.batch_execute("DELETE FROM inn.entries; DELETE FROM inn.sealed").await.unwrap();
    let found = store.verify(tenant, Some(&exported)).await.unwrap();
    assert!(problem(&found).contains("cut off"), "{found:?}");
    assert!(store.verify(tenant, None).await.unwrap().ok, "without a head from outside nobody can know");
    // A new history of the same length.
    entries(&store, tenant, 4).await;
    sealed(&store, tenant, 4).await;
    let found = store.verify(tenant, Some(&exported)).await.unwrap();
    assert!(problem(&found).contains("does not match"), "{found:?}");
    // Heads that somebody made up.
    let mut forged = store.head(tenant).await.unwrap().unwrap();
    forged.signature = "AAAA".into();
    assert!(problem(&store.verify(tenant, Some(&forged)).await.unwrap()).contains("not signed"));
    let other = Head { tenant: TenantId::new(), head: Digest([1; 32]), ..exported };
    assert!(problem(&store.verify(tenant, Some(&other)).await.unwrap()).contains("is about"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_sealers_at_work_do_not_fork_the_chain() {
    let (store, db) = TestDb::new().await;
    let second = db.store().await;
    let tenant = TenantId::PLATFORM;
    let cancel = CancellationToken::new();
    let sealers: Vec<_> = [store.clone(), second.clone(), store.clone()]
        .into_iter()
        .map(|store| {
            let cancel = cancel.clone();
            tokio::spawn(async move {
                while !cancel.is_cancelled() {
                    store.seal_all().await.unwrap();
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let store = if writer % 2 == 0 { store.clone() } else { second.clone() };
            tokio::spawn(async move { entries(&store, tenant, 40).await })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    let done = async {
        while store.head(tenant).await.unwrap().is_none_or(|head| head.seq < 320) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), done).await.unwrap();
    cancel.cancel();
    for sealer in sealers {
        sealer.await.unwrap();
    }
    let found = second.verify(tenant, None).await.unwrap();
    assert!(found.ok, "{found:?}");
    assert_eq!((found.entries, found.sealed), (320, 320));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_two_entries_does_not_stop_the_sealer() {
    // A commit that was unknown to the node, and what the node wrote about it afterwards.
    let (store, _db) = TestDb::new().await;
    let tenant = TenantId::new();
    let call = bare(tenant, "x");
    store.record(call.clone(), CallOutcome::Done).await.unwrap();
    store.record(call.clone(), CallOutcome::Refused { code: "outcome_unknown" }).await.unwrap();
    sealed(&store, tenant, 2).await;
    let found = store.verify(tenant, None).await.unwrap();
    assert!(found.ok, "{found:?}");
    assert_eq!((found.entries, found.sealed), (2, 2));
    let entries = store.entries(tenant, &EntrySearch { limit: 10, ..EntrySearch::default() }).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [Some(2), Some(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_commits_late_is_sealed_after_those_before_it() {
    let (store, db) = TestDb::new().await;
    let tenant = TenantId::new();
    let mut slow = db.store().await.client().await.unwrap();
    let call = bare(tenant, "slow");
    let late = call.draft.call;
    let step = store.begin(&mut slow, &call).await.unwrap();
    // The transaction gets its number now and commits last.
    step.outbox("test", None, json!({})).await.unwrap();
    entries(&store, tenant, 3).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 0, "nothing past the oldest running transaction is sealed");
    step.commit("Done late".into(), serde_json::Map::new()).await.unwrap();
    let head = sealed(&store, tenant, 4).await;
    assert_eq!(head.seq, 4);
    assert_eq!(store.entry(tenant, late).await.unwrap().unwrap().seq, Some(1), "it has the lowest number");
    assert!(store.verify(tenant, None).await.unwrap().ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sealer_seals_within_a_second_and_once_more_at_the_end() {
    let world = Arc::new(World::new().await);
    let cancel = CancellationToken::new();
    let sealer = {
        let (world, cancel) = (world.clone(), cancel.clone());
        tokio::spawn(async move { world.store.run_sealer(cancel).await })
    };
    let call = entries(&world.store, world.tenant, 1).await[0];
    let done = async {
        while world.store.entry(world.tenant, call).await.unwrap().unwrap().seq.is_none() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    // Generous: other tests share the machine.
    tokio::time::timeout(Duration::from_secs(20), done).await.unwrap();
    cancel.cancel();
    tokio::time::timeout(Duration::from_secs(20), sealer).await.unwrap().unwrap();
    assert!(world.store.verify(world.tenant, None).await.unwrap().ok);
}

/// Entries as if they had been written by these transactions, all of them long over.
async fn written_by(store: &PgStore, admin: &tokio_postgres::Client, tenant: TenantId, numbers: &[u64]) -> Vec<CallId> {
    let calls = entries(store, tenant, numbers.len()).await;
    admin.batch_execute("SET session_replication_role = replica").await.unwrap();
    for (call, number) in calls.iter().zip(numbers) {
        let text = "UPDATE inn.entries SET txid = $2::text::xid8 WHERE call = $1";
        admin.execute(text, &[&call.uuid(), &number.to_string()]).await.unwrap();
    }
    calls
}

async fn places(store: &PgStore, tenant: TenantId, calls: &[CallId]) -> Vec<Option<i64>> {
    let mut places = Vec::new();
    for call in calls {
        places.push(store.entry(tenant, *call).await.unwrap().unwrap().seq);
    }
    places
}

#[tokio::test(flavor = "multi_thread")]
async fn sealing_goes_on_across_a_power_of_ten_of_the_transaction_id() {
    let (store, db) = TestDb::new().await;
    let admin = db.admin().await;
    let tenant = TenantId::new();
    let calls = written_by(&store, &admin, tenant, &[8, 9, 10, 11, 99, 100, 101]).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 7);
    assert_eq!(places(&store, tenant, &calls).await, (1..=7).map(Some).collect::<Vec<_>>(), "as numbers, not as text");
    let later = written_by(&store, &admin, tenant, &[102, 103]).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 2);
    assert_eq!(places(&store, tenant, &later).await, [Some(8), Some(9)]);
    let found = store.verify(tenant, None).await.unwrap();
    assert!(found.ok, "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_place_behind_the_end_of_the_chain_heals_itself() {
    let (store, db) = TestDb::new().await;
    let admin = db.admin().await;
    let tenant = TenantId::new();
    let calls = written_by(&store, &admin, tenant, &[9, 10, 11]).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 3);
    // As a sealer that sorted 9 after 11 left it: everything is in the chain, the place is that of the first.
    let text = "UPDATE inn.seal_state SET txid = '9', call = $2 WHERE tenant = $1";
    admin.execute(text, &[&tenant.uuid(), &calls[0].uuid()]).await.unwrap();
    let found = store.verify(tenant, None).await.unwrap();
    assert!(found.ok && found.entries == 3, "{found:?}");
    assert_eq!(store.seal_once(tenant).await.unwrap(), 0, "sealed already");
    let place = "SELECT txid::text FROM inn.seal_state WHERE tenant = $1";
    assert_eq!(
        admin.query_one(place, &[&tenant.uuid()]).await.unwrap().get::<_, String>(0),
        "11",
        "the place moved on"
    );
    admin.execute(text, &[&tenant.uuid(), &calls[0].uuid()]).await.unwrap();
    let more = written_by(&store, &admin, tenant, &[12, 13]).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 2);
    assert_eq!(places(&store, tenant, &more).await, [Some(4), Some(5)]);
    // The place lost altogether.
    admin.batch_execute("DELETE FROM inn.seal_state").await.unwrap();
    let last = written_by(&store, &admin, tenant, &[14]).await;
    assert_eq!(store.seal_once(tenant).await.unwrap(), 1);
    assert_eq!(places(&store, tenant, &last).await, [Some(6)]);
    let found = store.verify(tenant, None).await.unwrap();
    assert!(found.ok, "{found:?}");
    assert_eq!((found.entries, found.sealed), (6, 6));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_cannot_be_sealed_does_not_stop_the_others() {
    let world = World::new().await;
    let (store, admin) = (&world.store, world.db.admin().await);
    // The one without tenants comes last, the broken one first.
    let bad = entries(store, world.tenant, 1).await;
    let good = written_by(store, &admin, TenantId::PLATFORM, &[20]).await;
    admin.batch_execute("SET session_replication_role = replica").await.unwrap();
    admin.execute("UPDATE inn.entries SET digest = '\\x00' WHERE call = $1", &[&bad[0].uuid()]).await.unwrap();
    let mut answered = Ok(0);
    for _ in 0..200 {
        answered = store.seal_all().await;
        if answered.is_err() {
            break;
        }
        // Another test's open transaction may hold the sealer back for a moment.
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert!(answered.is_err(), "the failure is told");
    assert_eq!(places(store, TenantId::PLATFORM, &good).await, [Some(1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_wait_for_more_than_a_minute_to_be_sealed_are_a_problem() {
    let (store, db) = TestDb::new().await;
    let admin = db.admin().await;
    let tenant = TenantId::new();
    written_by(&store, &admin, tenant, &[20, 21]).await;
    assert!(store.verify(tenant, None).await.unwrap().ok, "they are a moment old");
    // The same two minutes ago, digest and all.
    let age = "UPDATE inn.entries SET at = at - interval '2 minutes', digest =
        sha256(convert_to(facts || E'\\n' || outcome || E'\\n' || ((extract(epoch FROM at - interval '2 minutes') * 1000000)::bigint)::text || E'\\n', 'UTF8'))";
    admin.batch_execute(age).await.unwrap();
    let found = store.verify(tenant, None).await.unwrap();
    assert_eq!(found.problems.len(), 1, "{found:?}");
    assert!(problem(&found).starts_with("2 entries have waited"), "{found:?}");
    // A transaction that still runs has the number of these: the sealer must wait, and that is nobody's fault.
    let running =
        "UPDATE inn.entries SET txid = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1000000)::text::xid8";
    admin.batch_execute(running).await.unwrap();
    assert!(store.verify(tenant, None).await.unwrap().ok);
    admin.batch_execute("UPDATE inn.entries SET txid = '20'").await.unwrap();
    assert_eq!(store.seal_once(tenant).await.unwrap(), 2);
    assert!(store.verify(tenant, None).await.unwrap().ok);
}
