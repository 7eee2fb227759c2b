//! What happens when things die.

use inn_ports::memory::Trouble;
use inn_protocol::{Code, Outcome, Retry};
use serde_json::json;

use super::support::{World, create, new_note};

#[actix_rt::test]
async fn a_connection_lost_in_the_commit_is_unknown_and_safe_to_retry_with_the_same_key() {
    let world = World::new();
    world.core.trouble_next(Trouble::Lost);
    let call = world.call(create(), world.session());
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await.err().unwrap();
    assert_eq!(
        (refused.code, refused.outcome, refused.retry),
        (Code::OutcomeUnknown, Outcome::Unknown, Retry::SameKey)
    );
    assert!(world.outcomes().is_empty(), "whether it happened is not known, so no entry may claim that it did not");
}

#[actix_rt::test]
async fn a_panic_in_the_commit_is_unknown_for_that_call_and_the_next_one_works() {
    let world = World::new();
    world.core.trouble_next(Trouble::Panic);
    let call = world.call(create(), world.session());
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await.err().unwrap();
    assert_eq!(refused.outcome, Outcome::Unknown);
    let call = world.call(create(), world.session());
    world.gateway.write(call, new_note(json!({"title": "y"}))).await.unwrap();
    assert_eq!(world.gateway.in_flight(), 0, "every permit came back");
}

#[actix_rt::test]
async fn an_app_whose_actor_died_gets_a_new_one_on_the_next_call() {
    let world = World::new();
    let write = || world.gateway.write(world.call(create(), world.session()), new_note(json!({"title": "x"})));
    write().await.unwrap();
    world.gateway.kill_app_actor(world.app.id);
    let mut after = write().await;
    // The message that killed it may still be on its way: the first write can meet the dying actor.
    if matches!(&after, Err(refusal) if refusal.outcome == Outcome::Unknown) {
        after = write().await;
    }
    after.unwrap();
}

#[actix_rt::test]
async fn a_write_past_its_deadline_is_not_started() {
    let world = World::new();
    let mut call = world.call(create(), world.session());
    call.deadline = std::time::Instant::now().checked_sub(std::time::Duration::from_secs(1)).unwrap();
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await.err().unwrap();
    assert_eq!(refused.code, Code::Timeout);
    assert_eq!(world.core.rows(), 0);
}
