//! Several writes of one call.

use std::collections::BTreeMap;

use inn_protocol::call::Action;
use inn_protocol::{Code, Refusal};
use serde_json::{Value, json};

use super::support::World;
use crate::{Admitted, BatchVerb, BatchWrite};

const NOTE: &str = "note00000000001";

#[allow(clippy::unnecessary_wraps, reason = "as the gateway takes them")]
fn write(verb: BatchVerb, body: Value) -> Result<BatchWrite, Refusal> {
    Ok(BatchWrite {
        entity: "notes".to_owned(),
        verb,
        body,
        query: BTreeMap::new(),
        headers: BTreeMap::new(),
        form: None,
    })
}

fn batch(
    writes: Vec<Result<BatchWrite, Refusal>>,
) -> impl Fn(&Admitted) -> Result<Vec<Result<BatchWrite, Refusal>>, Refusal> {
    move |_| Ok(writes.clone())
}

#[actix_rt::test]
async fn each_write_is_a_call_of_its_own_and_so_is_the_whole() {
    let world = World::new();
    let writes = vec![
        write(BatchVerb::Create, json!({"id": NOTE, "title": "one", "rank": 1})),
        write(BatchVerb::Update(NOTE.to_owned()), json!({"rank+": 2})),
        write(BatchVerb::Upsert(NOTE.to_owned()), json!({"title": "two"})),
        write(BatchVerb::Upsert("note00000000002".to_owned()), json!({"id": "note00000000002", "title": "new"})),
        write(BatchVerb::Delete("note00000000002".to_owned()), Value::Null),
    ];
    let call = world.call(Action::Batch, world.signed(&world.agent, "nonce-0123456789ab"));
    let id = call.id;
    let (_, done) = world.gateway.batch(call, batch(writes)).await.unwrap();
    let verbs: Vec<&str> = done.writes.iter().map(|write| write.verb.as_str()).collect();
    assert_eq!(verbs, ["create", "update", "update", "create", "delete"]);
    assert_eq!((&done.writes[2].row["title"], done.writes[2].row["rank"].as_f64()), (&json!("two"), Some(3.0)));
    let mut calls: Vec<_> = done.writes.iter().map(|write| write.receipt.id).collect();
    calls.push(id);
    calls.sort_unstable();
    calls.dedup();
    assert_eq!((calls.len(), done.receipt.id), (6, id), "every one has an id of its own");
    let of_each = ["create", "update", "update", "create", "delete"].map(|verb| format!("agent records.{verb} done"));
    assert_eq!(world.outcomes()[..5], of_each);
    assert_eq!(world.outcomes()[5..], ["agent records.batch done"]);
}

#[actix_rt::test]
async fn nothing_is_kept_when_one_write_is_refused_and_both_refusals_are_entered() {
    let world = World::new();
    let good = || write(BatchVerb::Create, json!({"title": "good"}));
    for (wrong, code) in [
        (write(BatchVerb::Create, json!({"title": 5})), Code::InvalidString),
        (write(BatchVerb::Update("nowhere00000000".to_owned()), json!({"title": "x"})), Code::NotFound),
        (write(BatchVerb::Update("nowhere00000000".to_owned()), json!({"title": 5})), Code::NotFound),
    ] {
        let before = world.outcomes().len();
        let call = world.call(Action::Batch, world.session());
        let refused = world.gateway.batch(call, batch(vec![good(), wrong, good()])).await.err().unwrap();
        assert_eq!((refused.write, refused.at_fault(), refused.refusal.code), (Some(1), Some(1), code));
        assert_eq!(world.core.rows(), 0);
        let new = &world.outcomes()[before..];
        assert_eq!(new.len(), 2, "{new:?}");
        assert!(new[0].ends_with(&format!("refused:{}", code.as_str())), "{new:?}");
        assert_eq!(new[1], "person records.batch refused:batch_failed");
    }
}

#[actix_rt::test]
async fn a_write_that_cannot_be_made_out_is_refused_in_its_place() {
    let world = World::new();
    let unread = Err(Refusal::new(Code::InvalidBody, "What is that?"));
    let writes = vec![write(BatchVerb::Create, json!({"title": "good"})), unread];
    let refused = world.gateway.batch(world.call(Action::Batch, world.session()), batch(writes)).await.err().unwrap();
    assert_eq!((refused.write, refused.refusal.code), (Some(1), Code::InvalidBody));
    assert_eq!(world.outcomes(), ["person records.batch refused:batch_failed"]);
}

#[actix_rt::test]
async fn a_signature_counts_once_for_the_whole() {
    let world = World::new();
    let papers = world.signed(&world.agent, "nonce-0123456789ab");
    let writes =
        || vec![write(BatchVerb::Create, json!({"title": "a"})), write(BatchVerb::Create, json!({"title": "b"}))];
    world.gateway.batch(world.call(Action::Batch, papers.clone()), batch(writes())).await.unwrap();
    let again = world.gateway.batch(world.call(Action::Batch, papers), batch(writes())).await.err().unwrap();
    assert_eq!((again.write, again.refusal.code), (None, Code::ReplayedNonce));
    assert_eq!(world.core.rows(), 2);
}

#[actix_rt::test]
async fn an_agent_does_in_a_batch_what_its_scopes_let_it_do_alone() {
    let mut world = World::new();
    world.grant.scopes = std::sync::Arc::new(std::iter::once("data:notes:read".parse().unwrap()).collect());
    world.core.put_grant(world.grant.clone(), None);
    let call = world.call(Action::Batch, world.signed(&world.agent, "nonce-0123456789ab"));
    let writes = vec![write(BatchVerb::Create, json!({"title": "a"}))];
    let refused = world.gateway.batch(call, batch(writes)).await.err().unwrap();
    assert_eq!((refused.write, refused.refusal.code), (Some(0), Code::InsufficientScope));
    assert_eq!(world.outcomes()[0], "agent records.create refused:insufficient_scope");
}
