use inn_ports::Requests;
use inn_protocol::people::Role;
use inn_protocol::request::{HoldCommand, NewRequest, RequestState, Unique, UniqueMode};
use inn_protocol::{Digest, RequestId};
use serde_json::json;

use crate::people::fixture::{CAPABILITY, World, claim_with, offer};

async fn claim_one(world: &World, offers: &[inn_protocol::request::ClaimOffer]) -> Option<RequestId> {
    world.claim(&world.agent, offers, 1).await.unwrap().first().map(|request| request.id)
}

#[tokio::test]
async fn a_single_request_is_next_however_many_another_requester_has() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    for _ in 0..10 {
        world.asked(&world.request()).await;
    }
    let other = NewRequest { requester: None, requester_label: "visitor".to_owned(), ..world.request() };
    let single = world.asked(&other).await;
    let offers = [offer(&grant)];
    let first_two = [claim_one(&world, &offers).await.unwrap(), claim_one(&world, &offers).await.unwrap()];
    assert!(first_two.contains(&single.id), "{first_two:?}");
}

#[tokio::test]
async fn priority_counts_ten_minutes_a_step_so_nothing_waits_for_ever() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let mut asked = Vec::new();
    for (priority, minutes) in [(5_u8, 0), (3, 0), (1, 0), (5, 50), (3, 25)] {
        let request = world.asked(&NewRequest { priority, ..world.request() }).await;
        let back = "UPDATE inn.requests SET rank = rank - make_interval(mins => $2) WHERE id = $1";
        world.admin.execute(back, &[&request.id.uuid(), &minutes]).await.unwrap();
        asked.push(request.id);
    }
    let mut served = Vec::new();
    for _ in 0..5 {
        served.extend(claim_one(&world, &[offer(&grant)]).await);
    }
    // An old one of the lowest priority comes before a new one of the highest.
    assert_eq!(served, [asked[3], asked[4], asked[2], asked[1], asked[0]]);
}

#[tokio::test]
async fn of_identical_requests_one_waits_and_the_others_join_it() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let same = |mode| NewRequest { unique: Some(Unique { mode, key: Digest::of(b"b1") }), ..world.request() };
    let first = world.asked(&same(UniqueMode::Queued)).await;
    let call = world.call("requests.ask");
    let joined = world.store.ask(&call, &world.app, &same(UniqueMode::Queued)).await.unwrap();
    assert_eq!((joined.request.id, joined.receipt.stored["joined"].clone()), (first.id, json!(first.id)));
    let other = Unique { mode: UniqueMode::Queued, key: Digest::of(b"b2") };
    assert_ne!(world.asked(&NewRequest { unique: Some(other), ..world.request() }).await.id, first.id);
    assert_ne!(world.asked(&world.request()).await.id, first.id, "without a key everything is new");
    // Once it is worked on, the next one waits.
    assert_eq!(claim_one(&world, &[offer(&grant)]).await, Some(first.id));
    let second = world.asked(&same(UniqueMode::Queued)).await;
    assert_ne!(second.id, first.id);
    // And what comes back stays beside it.
    let release = HoldCommand::Release { reason: "busy".to_owned() };
    world.store.hold(&world.call("x"), first.id, &world.agent, 1, &release).await.unwrap();
    let third = world.asked(&same(UniqueMode::Queued)).await;
    assert!([first.id, second.id].contains(&third.id));
    assert_eq!(world.entries("requests.ask").await, 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_identical_requests_at_once_are_one() {
    let world = World::new().await;
    let askers: Vec<_> = (0..50)
        .map(|_| {
            let (store, app, call) = (world.store.clone(), world.app.clone(), world.call("requests.ask"));
            let unique = Some(Unique { mode: UniqueMode::Both, key: Digest::of(b"b1") });
            let new = NewRequest { unique, ..world.request() };
            tokio::spawn(async move {
                loop {
                    match store.ask(&call, &app, &new).await {
                        Err(inn_ports::StoreError::Stale) => {}
                        asked => break asked.unwrap().request.id,
                    }
                }
            })
        })
        .collect();
    let mut ids = std::collections::BTreeSet::new();
    for asker in askers {
        ids.insert(asker.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_identical_requests_one_is_worked_on_at_a_time() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let mut asked = Vec::new();
    for _ in 0..10 {
        let unique = Some(Unique { mode: UniqueMode::Running, key: Digest::of(b"b1") });
        asked.push(world.asked(&NewRequest { unique, ..world.request() }).await.id);
    }
    let free = world.asked(&world.request()).await;
    let claimed = world.claim(&world.agent, &[offer(&grant)], 50).await.unwrap();
    assert_eq!(claimed.iter().map(|request| request.id).collect::<Vec<_>>(), [asked[0], free.id]);
    let racers: Vec<_> = (0..8)
        .map(|_| {
            let (store, call, agent, offer) =
                (world.store.clone(), world.call("x"), world.agent.clone(), offer(&grant));
            tokio::spawn(async move { claim_with(&store, &call, &agent, &[offer], 3).await.unwrap() })
        })
        .collect();
    for racer in racers {
        assert!(racer.await.unwrap().is_empty());
    }
    let done = HoldCommand::Complete(json!({ "summary": "x" }));
    world.store.hold(&world.call("x"), asked[0], &world.agent, 1, &done).await.unwrap();
    assert_eq!(claim_one(&world, &[offer(&grant)]).await, Some(asked[1]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn caps_hold_for_app_capability_person_and_agent_even_against_racing_claims() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let bob = world.member("bob@example.org", Role::Editor).await;
    for person in [world.owner, bob] {
        for _ in 0..10 {
            world.asked(&NewRequest { requester: Some(person), ..world.request() }).await;
        }
    }
    let app = world.app.id.uuid();
    let owner = world.owner.uuid().to_string();
    for (kind, of_app, subject, most) in [
        ("app", Some(app), "", 3),
        ("capability", Some(app), CAPABILITY, 4),
        ("person", None, owner.as_str(), 2),
        ("agent", None, world.agent.as_str(), 5),
    ] {
        world.admin.batch_execute("DELETE FROM inn.queue_limits").await.unwrap();
        let text = "INSERT INTO inn.queue_limits (tenant, kind, app, subject, most) VALUES ($1, $2, $3, $4, $5)";
        world.admin.execute(text, &[&world.tenant.uuid(), &kind, &of_app, &subject, &most]).await.unwrap();
        // Every node sees it by its next look; a fresh one looks first.
        let store = world.db.store().await;
        let racers: Vec<_> = (0..12)
            .map(|_| {
                let (store, call, agent, offer) = (store.clone(), world.call("x"), world.agent.clone(), offer(&grant));
                tokio::spawn(async move { claim_with(&store, &call, &agent, &[offer], 2).await.unwrap() })
            })
            .collect();
        let mut held = Vec::new();
        for racer in racers {
            held.extend(racer.await.unwrap());
        }
        let counted = held.iter().filter(|request| kind != "person" || request.requester == Some(world.owner)).count();
        assert_eq!(counted, usize::try_from(most).unwrap(), "{kind}");
        assert!(kind != "person" || held.len() > counted, "others are served meanwhile");
        for request in held {
            let release = HoldCommand::Release { reason: "next".to_owned() };
            store.hold(&world.call("x"), request.id, &world.agent, request.epoch, &release).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_look_finds_requesters_round_the_ring_however_many_there_are() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let text =
        "INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_label, lease_seconds, attempts)
        SELECT gen_random_uuid(), $1, $2, $3, '{}', 'visitor ' || n, 60, 3 FROM generate_series(1, 300) n";
    world.admin.execute(text, &[&world.tenant.uuid(), &world.app.id.uuid(), &CAPABILITY]).await.unwrap();
    let mut served = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let claimed = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();
        served.extend(claimed.into_iter().map(|request| request.requester_label));
    }
    assert_eq!(served.len(), 300);
    assert_eq!(world.count("SELECT count(*) FROM inn.requests WHERE state = 'submitted'").await, 0);
}

#[tokio::test]
async fn an_old_transaction_does_not_hide_what_waits() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    // Its snapshot keeps every row version that dies from now on.
    let old = world.db.admin().await;
    old.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM inn.requests").await.unwrap();
    for round in 0..5 {
        let mut asked = std::collections::BTreeSet::new();
        for _ in 0..20 {
            asked.insert(world.asked(&world.request()).await.id);
        }
        let claimed = world.claim(&world.agent, &[offer(&grant)], 20).await.unwrap();
        assert_eq!(claimed.len(), 20, "round {round}");
        for request in claimed {
            assert!(asked.contains(&request.id) && request.state == RequestState::Working);
            let done = HoldCommand::Complete(json!({ "summary": "x" }));
            world.store.hold(&world.call("x"), request.id, &world.agent, request.epoch, &done).await.unwrap();
        }
    }
    old.batch_execute("ROLLBACK").await.unwrap();
}
