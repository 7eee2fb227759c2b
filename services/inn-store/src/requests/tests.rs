mod claims;
mod fairness;
mod holding;
mod operating;
mod sweeping;

use inn_ports::Requests;
use inn_protocol::call::Idempotency;
use inn_protocol::people::Role;
use inn_protocol::request::{NewRequest, RequestState};
use inn_protocol::{AppId, Code, Digest, RequestId};
use serde_json::json;

use crate::people::fixture::{World, code, refusal};

#[tokio::test]
async fn a_request_is_kept_as_it_was_asked() {
    let world = World::new().await;
    let mut new = world.request();
    new.payload = json!({ "z": 1, "a": ["\u{0}", null, 1.5], "constructor": {} });
    let asked = world.store.ask(&world.call("requests.ask"), &world.app, &new).await.unwrap();
    assert_eq!(asked.receipt.stored["request"], json!(new.id));
    let kept = world.store.request(world.app.id, new.id).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.payload, kept.requester), (RequestState::Submitted, new.payload, Some(world.owner)));
    assert_eq!((kept.attempt, kept.attempts, kept.epoch, kept.app_slug.as_str()), (0, 3, 0, "board"));
    assert!(
        world.store.request(AppId::new(), new.id).await.unwrap().is_none(),
        "apps do not see each other's requests"
    );
    assert_eq!(world.entries("requests.ask").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM inn.outbox WHERE topic = 'requests.submitted'").await, 1);
}

#[tokio::test]
async fn an_app_may_have_so_many_open_requests_and_no_more() {
    let world = World::new().await;
    let limited = || NewRequest { max_open: 3, ..world.request() };
    let first = world.asked(&limited()).await;
    world.asked(&limited()).await;
    world.asked(&limited()).await;
    let refused = refusal(world.store.ask(&world.call("x"), &world.app, &limited()).await);
    assert_eq!(refused.code, Code::RateLimited);
    assert!(refused.retry_after_seconds.is_some());
    world.store.cancel(&world.call("x"), world.app.id, first.id, "no longer needed").await.unwrap();
    world.asked(&limited()).await;
}

#[tokio::test]
async fn what_was_not_consented_cannot_be_asked() {
    let world = World::new().await;
    let other = NewRequest { capability: "send-money".to_owned(), ..world.request() };
    assert_eq!(code(world.store.ask(&world.call("x"), &world.app, &other).await), Code::NotConsented);
    world.admin.batch_execute("UPDATE inn.apps SET status = 'removed'").await.unwrap();
    assert_eq!(code(world.store.ask(&world.call("x"), &world.app, &world.request()).await), Code::NotConsented);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_many_times_at_once_is_one_request() {
    let world = World::new().await;
    let racers: Vec<_> = (0..50)
        .map(|_| {
            let (store, app, new) = (world.store.clone(), world.app.clone(), world.request());
            let mut call = world.call("requests.ask");
            call.idempotency = Some(Idempotency {
                scope: "ada".to_owned(),
                route: "POST tasks".to_owned(),
                key: "k1".to_owned(),
                body: Digest::of(b"same"),
            });
            tokio::spawn(async move { store.ask(&call, &app, &new).await.map(|asked| asked.request.id) })
        })
        .collect();
    let (mut asked, mut named) = (Vec::new(), Vec::new());
    for racer in racers {
        match racer.await.unwrap() {
            Ok(id) => asked.push(id.to_string()),
            Err(error) => {
                let refused = refusal::<()>(Err(error));
                assert!(matches!(refused.code, Code::DuplicateRequest | Code::InProgress), "{refused:?}");
                named.extend(refused.id);
            }
        }
    }
    assert_eq!(asked.len(), 1);
    assert!(named.iter().all(|id| *id == asked[0]), "a duplicate names the request");
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 1);
}

#[tokio::test]
async fn a_request_is_taken_back_once_even_from_under_a_claim() {
    let world = World::new().await;
    let (waiting, held) = (world.asked(&world.request()).await, world.asked(&world.request()).await);
    let grant = world.queue_grant().await;
    world.store.cancel(&world.call("requests.cancel"), world.app.id, waiting.id, "changed my mind").await.unwrap();
    let claimed = world.claim(&world.agent, &[crate::people::fixture::offer(&grant)], 5).await.unwrap();
    assert_eq!(claimed.iter().map(|request| request.id).collect::<Vec<_>>(), [held.id]);
    let canceled = world.store.cancel(&world.call("x"), world.app.id, held.id, "stop\0it").await.unwrap();
    assert_eq!((canceled.state, canceled.reason.as_deref()), (RequestState::Canceled, Some("stop\u{fffd}it")));
    let beat = inn_protocol::request::HoldCommand::Heartbeat;
    let late = world.store.hold(&world.call("x"), held.id, &world.agent, claimed[0].epoch, &beat).await;
    assert_eq!(code(late), Code::ClaimLost);
    let again = world.store.cancel(&world.call("x"), world.app.id, held.id, "x").await;
    assert_eq!(code(again), Code::Conflict);
    assert_eq!(code(world.store.cancel(&world.call("x"), AppId::new(), held.id, "x").await), Code::NotFound);
    assert_eq!(code(world.store.cancel(&world.call("x"), world.app.id, RequestId::new(), "x").await), Code::NotFound);
}

#[tokio::test]
async fn a_list_is_newest_first_by_state_and_bounded() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(world.asked(&world.request()).await.id);
    }
    ids.reverse();
    world.store.cancel(&world.call("x"), world.app.id, ids[0], "x").await.unwrap();
    let list = |state, limit| {
        let world = &world;
        async move {
            let found = world.store.requests(world.app.id, state, None, limit).await.unwrap();
            found.into_iter().map(|request| request.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(None, 100).await, ids);
    assert_eq!(list(None, 2).await, ids[..2]);
    assert_eq!(list(Some(RequestState::Submitted), 100).await, ids[1..]);
    assert_eq!(list(Some(RequestState::Canceled), 100).await, ids[..1]);
    assert_eq!(world.store.requests(AppId::new(), None, None, 10).await.unwrap().len(), 0);
}

#[tokio::test]
async fn what_a_person_asked_for_is_found_behind_any_number_of_newer_requests() {
    let world = World::new().await;
    let bob = world.member("bob@example.org", Role::Viewer).await;
    let mine = || NewRequest { requester: Some(bob), ..world.request() };
    let (first, second) = (world.asked(&mine()).await, world.asked(&mine()).await);
    for _ in 0..5 {
        world.asked(&world.request()).await;
    }
    let list = |requester, state, limit| {
        let world = &world;
        async move {
            let found = world.store.requests(world.app.id, state, requester, limit).await.unwrap();
            found.into_iter().map(|request| request.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(Some(bob), None, 2).await, [second.id, first.id]);
    assert_eq!(list(Some(bob), None, 1).await, [second.id]);
    world.store.cancel(&world.call("x"), world.app.id, second.id, "x").await.unwrap();
    assert_eq!(list(Some(bob), Some(RequestState::Submitted), 2).await, [first.id]);
    assert_eq!(list(Some(world.owner), None, 100).await.len(), 5);
    assert_eq!(list(None, None, 100).await.len(), 7);
    assert!(list(Some(inn_protocol::UserId::new()), None, 100).await.is_empty());
    // In the history, too.
    let text = "UPDATE inn.requests SET ended_at = now() - interval '1 hour' WHERE ended_at IS NOT NULL";
    world.admin.batch_execute(&format!("SET session_replication_role = replica; {text}")).await.unwrap();
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM inn.requests_history").await, 1);
    assert_eq!(list(Some(bob), None, 2).await, [second.id, first.id]);
}
