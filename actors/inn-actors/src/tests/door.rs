//! Who gets in, and what the register says of those who do not.

use chrono::TimeDelta;
use inn_grants::SigningKey;
use inn_ports::GrantState;
use inn_protocol::Code;
use inn_protocol::call::{Action, Papers};
use inn_protocol::people::Role;
use serde_json::json;

use super::support::{World, create, new_note, noon};

const NONCE: &str = "nonce-0123456789abcdef";

#[actix_rt::test]
async fn a_signed_agent_with_a_live_grant_reads_and_leaves_an_entry() {
    let world = World::new();
    let call = world.call(Action::ListRecords { entity: "notes".to_owned() }, world.signed(&world.agent, NONCE));
    world.gateway.read(call, |admitted| async move { Ok(admitted.caller.kind()) }).await.unwrap();
    assert_eq!(world.outcomes(), ["agent records.list done"]);
}

#[actix_rt::test]
async fn a_replayed_nonce_is_refused_on_read_and_write_and_both_are_registered() {
    let world = World::new();
    let papers = world.signed(&world.agent, NONCE);
    let list = || world.call(Action::ListRecords { entity: "notes".to_owned() }, papers.clone());
    world.gateway.read(list(), |_| async { Ok(()) }).await.unwrap();
    let again = world.gateway.read(list(), |_| async { Ok(()) }).await.unwrap_err();
    assert_eq!(again.code, Code::ReplayedNonce);
    let write = world.gateway.write(world.call(create(), papers.clone()), new_note(json!({"title": "x"}))).await;
    assert_eq!(write.err().map(|refusal| refusal.code), Some(Code::ReplayedNonce));
    assert_eq!(world.core.rows(), 0);
    assert_eq!(
        world.outcomes(),
        [
            "agent records.list done",
            "agent records.list refused:replayed_nonce",
            "agent records.create refused:replayed_nonce"
        ]
    );
}

#[actix_rt::test]
async fn a_token_signed_for_by_another_key_is_refused_and_only_counted() {
    let world = World::new();
    let thief = SigningKey::from_seed([8; 32]);
    world.core.put_agent(inn_ports::AgentState { agent: thief.public().thumbprint(), public_key: thief.public() });
    let call = world.call(create(), world.signed(&thief, NONCE));
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await;
    assert_eq!(refused.err().map(|refusal| refusal.code), Some(Code::InvalidToken));
    assert!(world.outcomes().is_empty(), "strangers cannot fill the register");
    assert_eq!(world.gateway.strangers(), 1);
}

#[actix_rt::test]
async fn an_expired_signature_and_an_expired_token_are_told_apart() {
    let world = World::new();
    world.clock.set(noon() + TimeDelta::seconds(61));
    let call = world.call(create(), world.signed(&world.agent, NONCE));
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await;
    assert_eq!(refused.err().map(|refusal| refusal.code), Some(Code::SignatureExpired));
}

#[actix_rt::test]
async fn a_revoked_grant_stops_the_next_call_even_when_it_is_still_cached() {
    let world = World::new();
    let first = world.call(create(), world.signed(&world.agent, NONCE));
    world.gateway.write(first, new_note(json!({"title": "one"}))).await.unwrap();
    world.core.put_grant(GrantState { revoked: true, epoch: 9, ..world.grant.clone() }, None);
    let second = world.call(create(), world.signed(&world.agent, "nonce-another-012345"));
    let refused = world.gateway.write(second, new_note(json!({"title": "two"}))).await;
    assert_eq!(refused.err().map(|refusal| refusal.code), Some(Code::TokenRevoked));
    assert_eq!(world.core.rows(), 1);
    // Key and token were genuine, so whose call it was is known: the register says so.
    assert_eq!(world.outcomes().last().map(String::as_str), Some("agent records.create refused:token_revoked"));
}

#[actix_rt::test]
async fn lowering_the_person_lowers_the_agent_at_once() {
    let world = World::new();
    let first = world.call(create(), world.signed(&world.agent, NONCE));
    world.gateway.write(first, new_note(json!({"title": "one"}))).await.unwrap();
    let mut viewer = world.owner.clone();
    (viewer.role, viewer.epoch) = (Role::Viewer, 10);
    world.core.put_member(viewer);
    let second = world.call(create(), world.signed(&world.agent, "nonce-another-012345"));
    let refused = world.gateway.write(second, new_note(json!({"title": "two"}))).await.err().unwrap();
    assert_eq!((refused.code, refused.leg), (Code::Forbidden, Some("user")));
    assert_eq!(world.outcomes().last().map(String::as_str), Some("agent records.create refused:forbidden"));
}

#[actix_rt::test]
async fn a_destructive_operation_needs_approval_from_an_agent_and_none_from_a_person() {
    let world = World::new();
    let wipe = Action::RunOperation { operation: "notes.wipe".to_owned() };
    let call = world.call(wipe.clone(), world.signed(&world.agent, NONCE));
    let refused = world.gateway.read(call, |_| async { Ok(()) }).await.unwrap_err();
    assert_eq!(refused.code, Code::ApprovalRequired);
    let call = world.call(wipe, world.session());
    world.gateway.read(call, |_| async { Ok(()) }).await.unwrap();
}

#[actix_rt::test]
async fn nobody_gets_nothing_off_loopback_and_leaves_no_entry() {
    let world = World::new();
    for papers in
        [Papers::None, Papers::Loopback { token: "guess".to_owned() }, Papers::Bearer { token: world.token() }]
    {
        let call = world.call(create(), papers);
        let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await.err().unwrap();
        assert_eq!(refused.code.status(), 401, "{refused}");
    }
    assert!(world.outcomes().is_empty());
}

#[actix_rt::test]
async fn a_full_node_refuses_before_anything_is_looked_at() {
    let world = World::with_limits(crate::AdmissionLimits { node: 0, tenant: 1, app: 1 });
    let call = world.call(create(), world.signed(&world.agent, NONCE));
    let refused = world.gateway.write(call, new_note(json!({"title": "x"}))).await.err().unwrap();
    assert_eq!((refused.code, refused.retry_after_seconds), (Code::Overloaded, Some(1)));
}
