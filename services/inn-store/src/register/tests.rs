use std::collections::HashSet;

use inn_ports::{Ledger, Register};
use inn_protocol::register::{CallOutcome, EntrySearch};
use inn_protocol::{AgentId, AppId, CallId, GrantId, TenantId, UserId};
use serde_json::Map;

use crate::commit::fixture::bare;
use crate::testdb::TestDb;

#[tokio::test(flavor = "multi_thread")]
async fn a_search_combines_its_conditions_and_pages_backwards() {
    let (store, _db) = TestDb::new().await;
    let tenant = TenantId::new();
    let (app, user, grant) = (AppId::new(), UserId::new(), GrantId::new());
    let agent = AgentId::parse("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k").unwrap();
    for turn in 0..12 {
        let mut call = bare(tenant, if turn % 2 == 0 { "records.list" } else { "records.view" });
        call.draft.app = (turn < 6).then_some(app);
        call.draft.user = (turn % 3 == 0).then_some(user);
        call.draft.grant = (turn % 4 == 0).then_some(grant);
        call.draft.agent = (turn < 3).then(|| agent.clone());
        let outcome = if turn == 11 { CallOutcome::Refused { code: "forbidden" } } else { CallOutcome::Done };
        store.record(call, outcome).await.unwrap();
    }
    store.record(bare(TenantId::new(), "records.list"), CallOutcome::Done).await.unwrap();
    let all = EntrySearch { limit: 100, ..EntrySearch::default() };
    let count = async |search: EntrySearch| store.entries(tenant, &search).await.unwrap().len();
    assert_eq!(count(all.clone()).await, 12);
    assert_eq!(count(EntrySearch { app: Some(app), ..all.clone() }).await, 6);
    assert_eq!(count(EntrySearch { user: Some(user), ..all.clone() }).await, 4);
    assert_eq!(count(EntrySearch { grant: Some(grant), ..all.clone() }).await, 3);
    assert_eq!(count(EntrySearch { agent: Some(agent), ..all.clone() }).await, 3);
    assert_eq!(count(EntrySearch { action: Some("records.view".into()), ..all.clone() }).await, 6);
    assert_eq!(count(EntrySearch { action: Some("records.view".into()), app: Some(app), ..all.clone() }).await, 3);
    for outcome in ["refused", "refused:forbidden"] {
        assert_eq!(count(EntrySearch { outcome: Some(outcome.into()), ..all.clone() }).await, 1);
    }
    assert_eq!(count(EntrySearch { outcome: Some("done".into()), ..all.clone() }).await, 11);
    assert_eq!(count(EntrySearch { action: Some("a\0'; --".into()), ..all.clone() }).await, 0);
    let entries = store.entries(tenant, &all).await.unwrap();
    assert!(entries.is_sorted_by(|a, b| (a.at, a.call) > (b.at, b.call)), "newest first");
    assert_eq!(count(EntrySearch { since: Some(entries[3].at), ..all.clone() }).await, 4);

    let mut seen = HashSet::new();
    let mut page = EntrySearch { limit: 5, ..EntrySearch::default() };
    loop {
        let found = store.entries(tenant, &page).await.unwrap();
        assert!(found.len() <= 5);
        let Some(last) = found.last() else { break };
        page.before = Some((last.at, last.call));
        seen.extend(found.iter().map(|entry| entry.call));
    }
    assert_eq!(seen.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_receipt_of_a_step_reads_the_same_for_ever() {
    let (store, _db) = TestDb::new().await;
    let tenant = TenantId::new();
    let call = bare(tenant, "grants.approve");
    let mut client = store.client().await.unwrap();
    let step = store.begin(&mut client, &call).await.unwrap();
    let stored: Map<String, serde_json::Value> =
        serde_json::from_str(r#"{"z": 1.0, "a": {"y": null, "x": [1, "é"]}}"#).unwrap();
    let now = step.commit("Granted it".into(), stored).await.unwrap();
    let later = store.receipt(tenant, call.draft.call).await.unwrap().unwrap();
    assert_eq!(serde_json::to_string(&now).unwrap(), serde_json::to_string(&later).unwrap());
    assert_eq!(later.sentence, "Granted it");
    assert!(store.receipt(tenant, CallId::new()).await.unwrap().is_none());
    assert!(store.entry(tenant, CallId::from_uuid(uuid::Uuid::max())).await.unwrap().is_none());
}
