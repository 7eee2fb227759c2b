mod limits;

use std::collections::BTreeSet;

use inn_ports::{Consent, Grants, NewAgent, NewGrantRequest, People, Requests, StoreError};
use inn_protocol::grant::GrantRequestStatus;
use inn_protocol::people::Role;
use inn_protocol::request::{HoldCommand, RequestState};
use inn_protocol::{Code, Digest, GrantId, TenantId, UserId};
use serde_json::json;

use crate::people::fixture::{World, agent_number, code, consent, offer, refusal};

const ASKED: [&str; 3] = ["data:cards:read", "data:cards:write", "queue:summarise-board"];

#[tokio::test]
async fn registering_a_key_again_changes_its_name_only() {
    let world = World::new().await;
    let mut agent = NewAgent { id: agent_number(1), public_key: [1; 32], name: "First".to_owned() };
    let first = world.store.register_agent(&world.call("x"), &agent).await.unwrap();
    assert_eq!(first.public_key, "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE");
    agent.name = "Second".to_owned();
    let second = world.store.register_agent(&world.call("x"), &agent).await.unwrap();
    assert_eq!((second.name.as_str(), second.registered_at), ("Second", first.registered_at));
    agent.public_key = [2; 32];
    assert_eq!(code(world.store.register_agent(&world.call("x"), &agent).await), Code::Conflict);
    for name in ["", " ", &"x".repeat(101), "a\0b", "a\u{1b}[31m"] {
        agent.name = name.to_owned();
        assert_eq!(
            code(world.store.register_agent(&world.call("x"), &agent).await),
            Code::InvalidParameter,
            "{name:?}"
        );
    }
}

#[tokio::test]
async fn a_person_grants_part_of_what_was_asked() {
    let world = World::new().await;
    let wish = world.wish(&ASKED);
    let asked = world.store.request_grant(&world.call("grants.request"), &wish).await.unwrap();
    assert_eq!(
        (asked.status, asked.app_slug.as_str(), asked.agent_name.as_str()),
        (GrantRequestStatus::Pending, "board", "Robo")
    );
    let yes = consent(world.owner, &ASKED[..1]);
    let grant = world.store.approve(&world.call("grants.approve"), wish.id, &yes).await.unwrap();
    assert_eq!((grant.id, &grant.scopes), (yes.grant, &yes.scopes));
    assert_eq!((grant.user_email.as_str(), grant.app_slug.as_str()), ("Ada@Example.org", "board"));
    let decided = world.store.grant_request(wish.id).await.unwrap().unwrap();
    assert_eq!((decided.status, decided.grant), (GrantRequestStatus::Approved, Some(grant.id)));
    assert_eq!(world.store.grants(world.tenant, None, None).await.unwrap().len(), 1);
    assert_eq!(world.store.grants(world.tenant, Some(UserId::new()), None).await.unwrap().len(), 0);
    assert_eq!(world.store.grants(world.tenant, None, Some(&agent_number(9))).await.unwrap().len(), 0);
    assert_eq!(world.store.grants(TenantId::new(), None, None).await.unwrap().len(), 0);
    assert_eq!(world.store.agents(world.tenant).await.unwrap().len(), 1);
    assert_eq!(world.store.agents(TenantId::new()).await.unwrap().len(), 0);
}

#[tokio::test]
async fn more_than_was_asked_or_nothing_at_all_is_not_granted() {
    let world = World::new().await;
    let wish = world.wish(&ASKED);
    world.store.request_grant(&world.call("x"), &wish).await.unwrap();
    for scopes in [&["data:boards:read"][..], &["data:cards:read", "op:clear"], &[]] {
        let refused = world.store.approve(&world.call("x"), wish.id, &consent(world.owner, scopes)).await;
        assert_eq!(code(refused), Code::InvalidParameter, "{scopes:?}");
    }
    assert_eq!(world.count("SELECT count(*) FROM inn.grants").await, 0);
    assert_eq!(world.store.grant_request(wish.id).await.unwrap().unwrap().status, GrantRequestStatus::Pending);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_yes_many_times_at_once_is_one_grant() {
    let world = World::new().await;
    let wish = world.wish(&ASKED);
    world.store.request_grant(&world.call("x"), &wish).await.unwrap();
    let racers: Vec<_> = (0..12)
        .map(|_| {
            let (store, call, yes) = (world.store.clone(), world.call("grants.approve"), consent(world.owner, &ASKED));
            tokio::spawn(async move { store.approve(&call, wish.id, &yes).await.unwrap().id })
        })
        .collect();
    let mut grants = BTreeSet::new();
    for racer in racers {
        grants.insert(racer.await.unwrap());
    }
    assert_eq!(grants.len(), 1);
    assert_eq!(world.count("SELECT count(*) FROM inn.grants").await, 1);
    assert_eq!(world.entries("grants.approve").await, 12, "each call has its entry");
    let other = world.store.approve(&world.call("x"), wish.id, &consent(world.owner, &ASKED[..1])).await;
    let refused = refusal(other);
    assert_eq!((refused.code, refused.id), (Code::Conflict, grants.first().map(ToString::to_string)));
}

#[tokio::test]
async fn only_a_pending_request_in_its_time_can_be_approved_and_only_by_a_member() {
    let world = World::new().await;
    let wish = world.wish(&ASKED);
    world.store.request_grant(&world.call("x"), &wish).await.unwrap();
    let yes = consent(world.owner, &ASKED);
    let stranger = Consent { user: UserId::new(), ..yes.clone() };
    assert_eq!(code(world.store.approve(&world.call("x"), wish.id, &stranger).await), Code::NotFound);
    world.store.refuse(&world.call("grants.refuse"), wish.id).await.unwrap();
    assert_eq!(code(world.store.approve(&world.call("x"), wish.id, &yes).await), Code::Conflict);
    let again = world.store.refuse(&world.call("grants.refuse"), wish.id).await.unwrap();
    assert_eq!(again.status, GrantRequestStatus::Refused);

    let late = world.wish(&ASKED);
    world.store.request_grant(&world.call("x"), &late).await.unwrap();
    let text = "UPDATE inn.grant_requests SET expires_at = now() - interval '1 s' WHERE id = $1";
    world.admin.execute(text, &[&late.id.uuid()]).await.unwrap();
    assert_eq!(world.store.grant_request(late.id).await.unwrap().unwrap().status, GrantRequestStatus::Expired);
    assert_eq!(code(world.store.approve(&world.call("x"), late.id, &yes).await), Code::Conflict);
    assert_eq!(
        code(world.store.approve(&world.call("x"), inn_protocol::GrantRequestId::new(), &yes).await),
        Code::NotFound
    );
    let mut foreigner = world.call("x");
    foreigner.draft.user = Some(UserId::new());
    assert_eq!(code(world.store.refuse(&foreigner, late.id).await), Code::NotFound);
}

#[tokio::test]
async fn an_agent_has_twenty_pending_requests_per_app_at_most() {
    let world = World::new().await;
    let ask = |wish: NewGrantRequest| {
        let world = &world;
        async move { world.store.request_grant(&world.call("x"), &wish).await }
    };
    for _ in 0..20 {
        ask(world.wish(&ASKED)).await.unwrap();
    }
    let refused = refusal(ask(world.wish(&ASKED)).await);
    assert_eq!(refused.code, Code::RateLimited);
    assert!(refused.retry_after_seconds.is_some());
    world.admin.batch_execute("UPDATE inn.grant_requests SET expires_at = now()").await.unwrap();
    ask(world.wish(&ASKED)).await.unwrap();
    assert_eq!(code(ask(NewGrantRequest { agent: agent_number(9), ..world.wish(&ASKED) }).await), Code::UnknownAgent);
    assert_eq!(code(ask(NewGrantRequest { tenant: TenantId::new(), ..world.wish(&ASKED) }).await), Code::UnknownApp);
    assert_eq!(code(ask(world.wish(&[])).await), Code::InvalidParameter);
}

#[tokio::test]
async fn a_revocation_says_what_it_stopped_and_counts_once() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let soon = chrono::Utc::now() + chrono::Duration::minutes(15);
    for (name, expires) in [("a", soon), ("b", soon), ("c", soon - chrono::Duration::minutes(20))] {
        let token = Digest::of(name.as_bytes());
        world.store.token_minted(&world.call("tokens.take"), grant.id, token, expires).await.unwrap();
    }
    let request = world.asked(&world.request()).await;
    let claims = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();

    let foreign = world.store.revoke(&world.call("x"), TenantId::new(), grant.id).await;
    assert_eq!(code(foreign), Code::NotFound, "of another tenant");
    let first = world.store.revoke(&world.call("grants.revoke"), world.tenant, grant.id).await.unwrap();
    assert_eq!((first.claims_fenced, first.tokens_ended), (1, 2));
    let second = world.store.revoke(&world.call("grants.revoke"), world.tenant, grant.id).await.unwrap();
    assert_eq!((second.revoked_at, second.claims_fenced, second.tokens_ended), (first.revoked_at, 0, 0));
    assert_eq!(code(world.store.revoke(&world.call("x"), world.tenant, GrantId::new()).await), Code::NotFound);

    let after = world.store.grant_view(grant.id).await.unwrap().unwrap();
    assert_eq!(after.revoked_at, Some(first.revoked_at));
    assert!(after.epoch > grant.epoch);
    let back = world.store.request(world.app.id, request.id).await.unwrap().unwrap();
    assert_eq!((back.state, back.attempt, back.holder), (RequestState::Submitted, 0, None));
    let done = HoldCommand::Complete(json!({}));
    let held = world.store.hold(&world.call("x"), request.id, &world.agent, claims[0].epoch, &done).await;
    assert_eq!(code(held), Code::ClaimLost);
    let token = world.store.token_minted(&world.call("x"), grant.id, Digest::of(b"d"), soon).await;
    assert_eq!(code(token), Code::TokenRevoked);
    let claim = world.claim(&world.agent, &[offer(&grant)], 1).await;
    assert!(matches!(claim, Err(StoreError::Stale)), "{claim:?}");
}

#[tokio::test]
async fn a_call_decided_from_a_grant_that_was_revoked_since_commits_nothing() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.store.revoke(&world.call("x"), world.tenant, grant.id).await.unwrap();
    let mut call = world.call("requests.ask");
    call.live.grant = Some((grant.id, grant.epoch));
    let asked = world.store.ask(&call, &world.app, &world.request()).await;
    assert!(matches!(asked, Err(StoreError::Stale)), "{asked:?}");
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 0);
}

#[tokio::test]
async fn the_loopback_grant_is_one_per_app_and_stays_revoked_for_the_platform() {
    let world = World::new().await;
    let mut person = world.call("apps.token");
    person.draft.user = Some(world.owner);
    let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
    let give = |call: inn_protocol::register::CallRecord, token| {
        let world = &world;
        async move { world.store.loopback_grant_for(&call, &world.app, world.owner, token).await.unwrap() }
    };
    let first = give(world.call("x"), one).await;
    assert!(first.loopback && first.agent_name == "Agent token file");
    assert_eq!(first.scopes.len(), 1, "what the release declares");
    let found = give(world.call("x"), two).await;
    assert_eq!(found.id, first.id);
    assert!(found.epoch > first.epoch, "a new file fences the old one");
    assert_eq!(give(world.call("x"), two).await.epoch, found.epoch);
    let tokens = "SELECT count(*) FROM inn.grants WHERE loopback_token = sha256('two')";
    assert_eq!(world.count(tokens).await, 1);
    assert_eq!(world.count("SELECT count(*) FROM inn.agents").await, 1, "a token file is not a key");

    world.store.revoke(&world.call("x"), world.tenant, first.id).await.unwrap();
    let restarted = give(world.call("x"), one).await;
    assert_eq!((restarted.id, restarted.revoked_at.is_some()), (first.id, true), "a start does not undo a revocation");
    let anew = give(person, one).await;
    assert!(anew.id != first.id && anew.revoked_at.is_none(), "the person may have a new one");

    let call = world.call("x");
    world.store.set_member(&call, world.tenant, "bob@example.org", Some("$x"), Role::Owner).await.unwrap();
    let bob = world.store.user_secret("bob@example.org").await.unwrap().unwrap().user;
    let bobs = world.store.loopback_grant_for(&world.call("x"), &world.app, bob, two).await.unwrap();
    assert_eq!(bobs.user, bob);
    assert!(world.store.grant_view(anew.id).await.unwrap().unwrap().revoked_at.is_some(), "one token file per app");
    let stranger = world.store.loopback_grant_for(&world.call("x"), &world.app, UserId::new(), one).await;
    assert_eq!(code(stranger), Code::Forbidden);
}
