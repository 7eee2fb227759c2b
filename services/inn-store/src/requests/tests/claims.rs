use std::collections::BTreeSet;

use inn_ports::{Directory, Grants, People, Requests, StoreError};
use inn_protocol::Code;
use inn_protocol::people::Role;
use inn_protocol::request::{NewRequest, RequestState};

use crate::people::fixture::{CAPABILITY, World, agent_number, claim_with, code, offer};

#[tokio::test]
async fn a_claim_takes_the_oldest_first_and_no_more_than_was_wanted() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(world.asked(&world.request()).await.id);
    }
    let mut taken = Vec::new();
    for max in [1, 3, 7, 37, 50] {
        let claimed = world.claim(&world.agent, &[offer(&grant)], max).await.unwrap();
        taken.extend(claimed.iter().map(|request| request.id));
        let expected = usize::try_from(max).unwrap().min(claimed.len());
        assert_eq!(claimed.len(), expected);
        for request in claimed {
            assert_eq!((request.state, request.attempt, request.epoch), (RequestState::Working, 1, 1));
            assert_eq!(request.holder.as_ref(), Some(&world.agent));
            let lease = request.lease_until.unwrap() - request.updated_at;
            assert_eq!(lease, chrono::Duration::seconds(15), "until its holder speaks");
            assert!(!request.acknowledged);
            assert_eq!(request.hard_until.unwrap() - request.updated_at, chrono::Duration::hours(1));
        }
    }
    assert_eq!(taken, ids);
    assert_eq!(world.entries("requests.claim").await, 5);
}

#[tokio::test]
async fn an_empty_claim_leaves_nothing_behind() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let before = world.count("SELECT count(*) FROM inn.entries").await;
    assert!(world.claim(&world.agent, &[offer(&grant)], 5).await.unwrap().is_empty());
    assert!(world.claim(&world.agent, &[], 5).await.unwrap().is_empty());
    assert_eq!(world.store.reserve(&world.agent, &[offer(&grant)], 5, true).await.unwrap(), None);
    assert_eq!(world.count("SELECT count(*) FROM inn.entries").await, before);
    world.asked(&world.request()).await;
    assert!(world.store.reserve(&world.agent, &[offer(&grant)], 5, true).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_claimers_at_once_never_share_a_request() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let mut all = BTreeSet::new();
    for _ in 0..50 {
        all.insert(world.asked(&world.request()).await.id);
    }
    let claimers: Vec<_> = (0..50)
        .map(|_| {
            let (store, call, agent, offer) =
                (world.store.clone(), world.call("x"), world.agent.clone(), offer(&grant));
            tokio::spawn(async move { claim_with(&store, &call, &agent, &[offer], 1).await.unwrap() })
        })
        .collect();
    let mut taken = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.unwrap().into_iter().map(|request| request.id));
    }
    let distinct: BTreeSet<_> = taken.iter().copied().collect();
    assert_eq!(distinct.len(), taken.len(), "no request went to two");
    assert_eq!(distinct, all, "fifty claimers, fifty requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_claimers_of_one_request_on_two_nodes_never_both_hold_it() {
    let world = World::new().await;
    let grants = [world.queue_grant().await, {
        world.register(&agent_number(1)).await;
        world.granted(&agent_number(1), world.owner, &["queue:summarise-board"], true).await
    }];
    let other_node = world.db.store().await;
    for _ in 0..20 {
        let asked = world.asked(&world.request()).await;
        let racers = [(&world.store, &grants[0]), (&other_node, &grants[1])].map(|(store, grant)| {
            let (store, grant, call) = (store.clone(), grant.clone(), world.call("x"));
            tokio::spawn(async move { claim_with(&store, &call, &grant.agent, &[offer(&grant)], 1).await.unwrap() })
        });
        let mut holders = Vec::new();
        for racer in racers {
            holders.extend(racer.await.unwrap());
        }
        assert_eq!(holders.len(), 1);
        assert_eq!(holders[0].id, asked.id);
    }
}

#[tokio::test]
async fn an_agent_gets_only_requests_of_its_person_unless_others_were_consented() {
    let world = World::new().await;
    let call = world.call("x");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Editor).await.unwrap();
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap().user;
    let mine = world.asked(&world.request()).await;
    let bobs = world.asked(&NewRequest { requester: Some(bob), ..world.request() }).await;
    let visitors = world.asked(&NewRequest { requester: None, ..world.request() }).await;

    let narrow = world.granted(&world.agent, world.owner, &["queue:summarise-board"], false).await;
    let claim = |offers| {
        let world = &world;
        async move { world.claim(&world.agent, &[offers], 10).await }
    };
    let mut cheat = offer(&narrow);
    cheat.others = true;
    assert!(matches!(claim(cheat).await, Err(StoreError::Stale)), "an offer cannot be wider than its grant");
    let claimed = claim(offer(&narrow)).await.unwrap();
    assert_eq!(claimed.iter().map(|request| request.id).collect::<Vec<_>>(), [mine.id]);
    assert!(claim(offer(&narrow)).await.unwrap().is_empty());

    let wide = world.granted(&world.agent, world.owner, &["queue:summarise-board"], true).await;
    let claimed = claim(offer(&wide)).await.unwrap();
    assert_eq!(claimed.iter().map(|request| request.id).collect::<Vec<_>>(), [bobs.id, visitors.id]);
}

#[tokio::test]
async fn an_offer_that_its_grant_does_not_carry_claims_nothing() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.asked(&world.request()).await;
    let mut old = offer(&grant);
    old.grant_epoch -= 1;
    let mut other_capability = offer(&grant);
    other_capability.capability = "send-money".to_owned();
    let mut other_app = offer(&grant);
    other_app.app = inn_protocol::AppId::new();
    for wrong in [other_capability, other_app] {
        let claimed = world.claim(&world.agent, std::slice::from_ref(&wrong), 1).await;
        assert!(matches!(claimed, Ok(none) if none.is_empty()), "{wrong:?}");
    }
    for wrong in [old] {
        let claim = world.claim(&world.agent, std::slice::from_ref(&wrong), 1).await;
        assert!(matches!(claim, Err(StoreError::Stale)), "{wrong:?}: {claim:?}");
    }
    let claim = world.claim(&agent_number(5), &[offer(&grant)], 1).await;
    assert!(matches!(claim, Err(StoreError::Stale)), "another agent's grant: {claim:?}");
    let many = vec![offer(&grant); 501];
    assert_eq!(code(world.claim(&world.agent, &many, 1).await), Code::InvalidParameter);
    assert_eq!(world.count("SELECT count(*) FROM inn.requests WHERE state = 'working'").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_revocation_racing_with_claims_leaves_no_claim_behind() {
    let world = World::new().await;
    for _ in 0..10 {
        let grant = world.queue_grant().await;
        for _ in 0..10 {
            world.asked(&world.request()).await;
        }
        let claimers: Vec<_> = (0..6)
            .map(|_| {
                let (store, call, agent, offer) =
                    (world.store.clone(), world.call("x"), world.agent.clone(), offer(&grant));
                tokio::spawn(async move { claim_with(&store, &call, &agent, &[offer], 2).await })
            })
            .collect();
        let revoked = world.store.revoke(&world.call("x"), world.tenant, grant.id).await.unwrap();
        let mut claimed = 0_i64;
        for claimer in claimers {
            match claimer.await.unwrap() {
                Ok(requests) => claimed += i64::try_from(requests.len()).unwrap(),
                Err(StoreError::Stale) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(claimed, revoked.claims_fenced, "every claim made before the revocation was fenced by it");
        assert_eq!(world.count("SELECT count(*) FROM inn.requests WHERE state = 'working'").await, 0);
        world
            .admin
            .batch_execute("UPDATE inn.requests SET state = 'canceled', ended_at = now() WHERE ended_at IS NULL")
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_claim_walks_the_index_of_waiting_rows_however_many_there_are() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let text =
        "INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_label, lease_seconds, attempts)
        SELECT gen_random_uuid(), $1, $2, $3, '{}', 'x', 60, 3 FROM generate_series(1, 20000)";
    world.admin.execute(text, &[&world.tenant.uuid(), &world.app.id.uuid(), &CAPABILITY]).await.unwrap();
    world.admin.batch_execute("ANALYZE inn.requests; SET plan_cache_mode = force_generic_plan").await.unwrap();
    let types: Vec<_> = super::super::claim::types().iter().map(|of| of.name().replace('_', "")).collect();
    let arrays = super::super::claim::types().iter().map(|of| of.name().starts_with('_')).collect::<Vec<_>>();
    let types: Vec<_> =
        types.iter().zip(&arrays).map(|(of, array)| if *array { format!("{of}[]") } else { of.clone() }).collect();
    let text = super::super::claim::claim_text();
    world.admin.batch_execute(&format!("PREPARE claim ({}) AS {text}", types.join(", "))).await.unwrap();
    let explain = format!(
        "EXPLAIN EXECUTE claim ({}, '{{{}}}', '{{{CAPABILITY}}}', '{{~x}}', '{{-infinity}}', '{{20}}', '{{{}}}', '{{{}}}', '{{{}}}', '{{true}}', '{}')",
        vec!["NULL"; 28].join(", "),
        grant.app.uuid(),
        grant.id.uuid(),
        grant.epoch,
        grant.user.uuid(),
        grant.agent
    );
    let rows = world.admin.query(&explain, &[]).await.unwrap();
    let plan = rows.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n");
    assert!(plan.contains("requests_waiting_idx"), "{plan}");
    assert!(!plan.contains("Seq Scan on requests"), "{plan}");
}

#[tokio::test]
async fn an_agent_answers_requests_only_while_its_person_is_an_editor_at_least() {
    let world = World::new().await;
    let bob = world.member("bob@example.org", Role::Editor).await;
    let grant = world.granted(&world.agent, bob, &["queue:summarise-board"], true).await;
    world.asked(&world.request()).await;
    let offered = || async { world.store.queue_grants(&world.agent).await.unwrap().len() };
    let claim = || async { world.claim(&world.agent, &[offer(&grant)], 1).await };
    assert_eq!(offered().await, 1);
    let takes_away = [
        "UPDATE inn.members SET role = 'viewer' WHERE user_id = $1",
        "UPDATE inn.members SET removed_at = now() WHERE user_id = $1",
        "UPDATE inn.users SET disabled_at = now() WHERE id = $1",
    ];
    let gives_back = [
        "UPDATE inn.members SET role = 'editor' WHERE user_id = $1",
        "UPDATE inn.members SET removed_at = NULL WHERE user_id = $1",
        "UPDATE inn.users SET disabled_at = NULL WHERE id = $1",
    ];
    for (taken, given) in takes_away.into_iter().zip(gives_back) {
        world.admin.execute(taken, &[&bob.uuid()]).await.unwrap();
        assert_eq!(offered().await, 0, "{taken}");
        let refused = claim().await;
        assert!(matches!(refused, Err(StoreError::Stale)), "{taken}: {refused:?}");
        world.admin.execute(given, &[&bob.uuid()]).await.unwrap();
    }
    assert_eq!(offered().await, 1);
    assert_eq!(claim().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_waits_for_the_change_of_its_persons_role() {
    let world = World::new().await;
    let bob = world.member("bob@example.org", Role::Editor).await;
    let grant = world.granted(&world.agent, bob, &["queue:summarise-board"], true).await;
    world.asked(&world.request()).await;
    let lowers = "BEGIN; UPDATE inn.members SET role = 'viewer' WHERE role = 'editor'";
    world.admin.batch_execute(lowers).await.unwrap();
    let claim = tokio::spawn({
        let (store, call, agent, offer) = (world.store.clone(), world.call("x"), world.agent.clone(), offer(&grant));
        async move { claim_with(&store, &call, &agent, &[offer], 1).await }
    });
    let watcher = world.db.admin().await;
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..400 {
        if watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    world.admin.batch_execute("COMMIT").await.unwrap();
    let claimed = claim.await.unwrap();
    assert!(matches!(claimed, Err(StoreError::Stale)), "{claimed:?}");
    assert_eq!(world.count("SELECT count(*) FROM inn.requests WHERE state = 'working'").await, 0);
}
