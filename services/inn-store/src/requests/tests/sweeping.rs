use inn_ports::{Requests, StoreError};
use inn_protocol::Code;
use inn_protocol::request::{HoldCommand, NewRequest, RequestState};
use serde_json::json;

use crate::people::fixture::{World, code, offer};

const EXPIRE: &str =
    "UPDATE inn.requests SET acknowledged = true, lease_until = now() - interval '1 ms' WHERE state = 'working'";

#[tokio::test]
async fn a_holder_that_died_loses_its_lease_and_the_next_one_gets_the_work() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let asked = world.asked(&world.request()).await;
    let first = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    assert!(world.store.sweep_requests().await.unwrap().is_empty(), "a live lease is left alone");
    world.admin.batch_execute(EXPIRE).await.unwrap();
    world.store.sweep_requests().await.unwrap();
    let back = world.store.request(world.app.id, asked.id).await.unwrap().unwrap();
    assert_eq!((back.state, back.attempt, back.holder), (RequestState::Submitted, 1, None));
    assert_eq!(back.reason.as_deref(), Some("lease_lost"));
    assert_eq!(world.entries("requests.sweep").await, 1, "the platform's own effects are in the register too");
    let late =
        world.store.hold(&world.call("x"), asked.id, &world.agent, first.epoch, &HoldCommand::Complete(json!(1))).await;
    assert_eq!(code(late), Code::ClaimLost);

    world.admin.batch_execute("UPDATE inn.requests SET next_at = now()").await.unwrap();
    let ready = world.store.sweep_requests().await.unwrap();
    assert_eq!(ready, [world.app.id], "the end of a back-off is told");
    let second = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    assert!(second.epoch > first.epoch);
    let old =
        world.store.hold(&world.call("x"), asked.id, &world.agent, first.epoch, &HoldCommand::Complete(json!(1))).await;
    assert_eq!(code(old), Code::ClaimLost, "the old epoch is fenced");
    world
        .store
        .hold(&world.call("x"), asked.id, &world.agent, second.epoch, &HoldCommand::Complete(json!(2)))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_request_whose_attempts_are_used_up_ends_with_a_reason() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let asked = world.asked(&NewRequest { attempts: 1, ..world.request() }).await;
    world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();
    world.admin.batch_execute(EXPIRE).await.unwrap();
    world.store.sweep_requests().await.unwrap();
    let ended = world.store.request(world.app.id, asked.id).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (RequestState::Failed, Some("attempts_exhausted: lease_lost")));
}

#[tokio::test]
async fn nothing_waits_for_ever_and_a_removed_app_leaves_no_queue() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let (old, held) = (world.asked(&world.request()).await, world.asked(&world.request()).await);
    let text = "UPDATE inn.requests SET waits_until = now() - interval '2 minutes' WHERE id = $1";
    world.admin.execute(text, &[&old.id.uuid()]).await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 1);
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 0);
    let ended = world.store.request(world.app.id, old.id).await.unwrap().unwrap();
    assert_eq!(ended.state, RequestState::Failed);
    assert!(ended.reason.unwrap().starts_with("nobody_came"));

    world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();
    let text = "UPDATE inn.apps SET status = 'removed', updated_at = now() - interval '2 minutes'";
    world.admin.batch_execute(text).await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 1);
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 0);
    let ended = world.store.request(world.app.id, held.id).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (RequestState::Canceled, Some("app_removed")));
}

#[tokio::test]
async fn a_lease_nobody_sweeps_counts_as_stuck() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.asked(&world.request()).await;
    world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 0);
    world.admin.batch_execute("UPDATE inn.requests SET lease_until = now() - interval '2 minutes'").await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 1);
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sweepers_take_every_lost_lease_back_exactly_once() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let text = "INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_label, lease_seconds, attempts,
            state, attempt, epoch, holder, holder_grant, lease_until)
        SELECT gen_random_uuid(), $1, $2, 'summarise-board', '{}', 'x', 60, 3, 'working', 1, 1, $3, $4, now() - interval '1 s'
        FROM generate_series(1, 500)";
    let agent = world.agent.as_str();
    world.admin.execute(text, &[&world.tenant.uuid(), &world.app.id.uuid(), &agent, &grant.id.uuid()]).await.unwrap();
    let sweepers: Vec<_> = (0..4)
        .map(|_| {
            let store = world.store.clone();
            tokio::spawn(async move { store.sweep_requests().await.unwrap() })
        })
        .collect();
    for sweeper in sweepers {
        sweeper.await.unwrap();
    }
    let back = "SELECT count(*) FROM inn.requests WHERE state = 'submitted' AND attempt = 1 AND holder IS NULL";
    assert_eq!(world.count(back).await, 500);
    let told = "SELECT sum(json_array_length(\"row\"::json -> 'requeued'))::bigint FROM inn.receipts WHERE action = 'requests.sweep'";
    assert_eq!(world.count(told).await, 500, "each in exactly one receipt");
}

#[tokio::test]
async fn ended_requests_never_change_and_move_to_the_history() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let asked = world.asked(&world.request()).await;
    let held = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    world
        .store
        .hold(&world.call("x"), asked.id, &world.agent, held.epoch, &HoldCommand::Complete(json!({ "ok": 1 })))
        .await
        .unwrap();
    let change = world.admin.batch_execute("UPDATE inn.requests SET result = '{}'").await.unwrap_err();
    assert!(change.as_db_error().unwrap().message().contains("cannot be changed"));
    world.admin.batch_execute("DELETE FROM inn.requests").await.unwrap_err();
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 1, "it stays in sight for a while");

    // Ten minutes later.
    let later = "ALTER TABLE inn.requests DISABLE TRIGGER requests_final;
        UPDATE inn.requests SET ended_at = ended_at - interval '11 minutes';
        ALTER TABLE inn.requests ENABLE TRIGGER requests_final";
    world.admin.batch_execute(later).await.unwrap();
    let before = world.store.request(world.app.id, asked.id).await.unwrap().unwrap();
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM inn.requests_history").await, 1);
    let after = world.store.request(world.app.id, asked.id).await.unwrap().unwrap();
    assert_eq!(format!("{after:?}"), format!("{before:?}"), "the same answer from either place");
    assert_eq!(world.store.requests(world.app.id, Some(RequestState::Completed), None, 10).await.unwrap().len(), 1);
    assert!(world.store.held_request(&world.agent, asked.id).await.unwrap().is_some());
    let late = world.store.hold(&world.call("x"), asked.id, &world.agent, held.epoch, &HoldCommand::Heartbeat).await;
    assert_eq!(code(late), Code::ClaimLost);
    assert_eq!(code(world.store.cancel(&world.call("x"), world.app.id, asked.id, "x").await), Code::Conflict);
    world.admin.batch_execute("UPDATE inn.requests_history SET result = '{}'").await.unwrap_err();
    world.admin.batch_execute("DELETE FROM inn.requests_history").await.unwrap_err();
}

#[tokio::test]
async fn the_queue_is_refused_and_not_lost_when_the_grant_in_the_call_moved() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let asked = world.asked(&world.request()).await;
    let held = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    let mut call = world.call("x");
    call.live.grant = Some((grant.id, grant.epoch - 1));
    let refused = world.store.hold(&call, asked.id, &world.agent, held.epoch, &HoldCommand::Heartbeat).await;
    assert!(matches!(refused, Err(StoreError::Stale)), "{refused:?}");
}

#[tokio::test]
async fn a_pause_nobody_ends_counts_as_stuck_and_the_sweep_ends_it() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.asked(&world.request()).await;
    let pause = "UPDATE inn.requests SET ready = false, next_at = now() - interval '2 minutes'";
    world.admin.batch_execute(pause).await.unwrap();
    assert!(world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().is_empty());
    assert_eq!(world.store.stuck().await.unwrap(), 1);
    assert_eq!(world.store.sweep_requests().await.unwrap(), [world.app.id]);
    assert_eq!(world.store.stuck().await.unwrap(), 0);
    assert_eq!(world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().len(), 1);
}
