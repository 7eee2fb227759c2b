use std::sync::Arc;

use inn_ports::{Grants, Ledger, Register, StoreError};
use inn_protocol::register::{CallOutcome, EntrySearch, entry_digest};
use inn_protocol::{Code, TenantId};

use crate::commit::fixture::{World, bare, code};
use crate::testdb::TestDb;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_are_all_written_and_each_is_told_its_own_result() {
    let world = Arc::new(World::new().await);
    let readers: Vec<_> = (0..600)
        .map(|reader| {
            let world = world.clone();
            tokio::spawn(async move {
                let mut call = world.call("records.list");
                // A third share their nonce with one other, a third are out of date.
                match reader % 3 {
                    0 => call.nonce = Some(world.nonce(&format!("n{}", reader / 6))),
                    1 => call.live.grant.as_mut().unwrap().1 += 1,
                    _ => {}
                }
                (reader % 3, world.store.record(call, CallOutcome::Done).await)
            })
        })
        .collect();
    let (mut written, mut replayed) = (0, 0);
    for reader in readers {
        match reader.await.unwrap() {
            (1, result) => assert!(matches!(result, Err(StoreError::Stale)), "{result:?}"),
            (_, Ok(())) => written += 1,
            (0, result) => {
                assert_eq!(code(result), Code::ReplayedNonce);
                replayed += 1;
            }
            (_, other) => panic!("{other:?}"),
        }
    }
    assert_eq!((written, replayed), (300, 100));
    assert_eq!(world.count("inn.entries WHERE action = 'records.list'").await, 300);
    assert_eq!(world.count("inn.nonces").await, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_says_what_was_asked_and_its_digest_holds() {
    let world = World::new().await;
    let mut call = world.call("records.view");
    call.draft.target = "cards/\0x".into();
    call.draft.claimed_agent = Some("Clippy \u{0}".into());
    let facts = call.draft.canonical();
    world.store.record(call.clone(), CallOutcome::Refused { code: "forbidden" }).await.unwrap();
    let entry = world.store.entry(world.tenant, call.draft.call).await.unwrap().unwrap();
    assert_eq!(entry.outcome, "refused:forbidden");
    assert_eq!(entry.facts["claimedAgent"], "Clippy \u{0}");
    assert_eq!(entry.digest, entry_digest(&facts, "refused:forbidden", entry.at, None));
    let search = EntrySearch { agent: Some(world.agent.clone()), limit: 5, ..EntrySearch::default() };
    assert_eq!(world.store.entries(world.tenant, &search).await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_written_even_when_what_it_was_refused_for_is_gone() {
    let world = World::new().await;
    world.store.revoke(&bare(world.tenant, "grants.revoke"), world.tenant, world.grant).await.unwrap();
    let mut call = world.call("records.list");
    call.nonce = Some(world.nonce("n1"));
    assert!(matches!(world.store.record(call.clone(), CallOutcome::Done).await, Err(StoreError::Stale)));
    world.store.record(call, CallOutcome::Refused { code: "token_revoked" }).await.unwrap();
    // Its nonce is used up, and only the entry of the replay itself gets past that.
    let mut replay = world.call("records.list");
    replay.nonce = Some(world.nonce("n1"));
    let result = world.store.record(replay.clone(), CallOutcome::Refused { code: "token_revoked" }).await;
    assert_eq!(code(result), Code::ReplayedNonce);
    world.store.record(replay, CallOutcome::Refused { code: Code::ReplayedNonce.as_str() }).await.unwrap();
    assert_eq!(world.count("inn.entries WHERE outcome LIKE 'refused:%'").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_counts_once_across_reads_and_writes() {
    let world = World::new().await;
    let mut read = world.call("records.list");
    read.nonce = Some(world.nonce("n1"));
    world.store.record(read, CallOutcome::Done).await.unwrap();
    let mut write = world.card("c1", "One");
    write.record.nonce = Some(world.nonce("n1"));
    assert_eq!(code(world.store.commit(&write).await), Code::ReplayedNonce);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_writer_says_unavailable_and_loses_nothing_it_took() {
    let (store, db) = TestDb::new().await;
    let mut admin = db.admin().await;
    let tx = admin.transaction().await.unwrap();
    tx.batch_execute("LOCK TABLE inn.entries IN EXCLUSIVE MODE").await.unwrap();
    let tenant = TenantId::new();
    let readers: Vec<_> = (0..6000)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move { store.record(bare(tenant, "x"), CallOutcome::Done).await })
        })
        .collect();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    tx.commit().await.unwrap();
    let (mut written, mut refused) = (0_i64, 0);
    for reader in readers {
        match reader.await.unwrap() {
            Ok(()) => written += 1,
            Err(StoreError::Unavailable) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(written >= 4096 && refused > 0, "{written} written, {refused} refused");
    let kept: i64 = db.admin().await.query_one("SELECT count(*) FROM inn.entries", &[]).await.unwrap().get(0);
    assert_eq!(kept, written);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_entry_the_database_cannot_take_costs_the_others_nothing() {
    let (world, mut readers) = (Arc::new(World::new().await), Vec::new());
    for reader in 0..40 {
        let world = world.clone();
        readers.push(tokio::spawn(async move {
            let mut call = world.call("records.list");
            // PostgreSQL takes no U+0000 in a text.
            call.nonce = Some(world.nonce(&if reader % 10 == 0 { format!("{reader}\0") } else { reader.to_string() }));
            (reader % 10 == 0, world.store.record(call, CallOutcome::Done).await)
        }));
    }
    for reader in readers {
        match reader.await.unwrap() {
            (true, result) => assert!(matches!(result, Err(StoreError::Broken)), "{result:?}"),
            (false, result) => result.unwrap(),
        }
    }
    assert_eq!(world.count("inn.entries WHERE action = 'records.list'").await, 36);
}
