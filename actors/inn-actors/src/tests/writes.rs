//! What becomes of an admitted write.

use inn_protocol::Code;
use inn_protocol::call::Action;
use inn_protocol::receipt::Verb;
use serde_json::json;

use super::support::{World, create, new_note};
use crate::RecordWrite;

#[actix_rt::test]
async fn a_write_is_stored_with_receipt_and_entry() {
    let world = World::new();
    let (_, committed) = world
        .gateway
        .write(world.call(create(), world.session()), new_note(json!({"title": "Eat chicken"})))
        .await
        .unwrap();
    assert_eq!(committed.row["title"], "Eat chicken");
    assert!(committed.receipt.sentence.starts_with("Added \"Eat chicken\""), "{}", committed.receipt.sentence);
    assert_eq!(world.outcomes(), ["person records.create done"]);
}

#[actix_rt::test]
async fn the_guard_names_every_violation_and_nothing_is_stored() {
    let world = World::new();
    let body = json!({"title": 5, "rank": "many", "constructor": 1});
    let refused = world.gateway.write(world.call(create(), world.session()), new_note(body)).await.err().unwrap();
    let mut codes: Vec<&str> = refused.violations.iter().map(|violation| violation.code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["invalid_number", "invalid_string", "unknown_field"]);
    assert_eq!((world.core.rows(), world.outcomes().len()), (0, 1));
}

#[actix_rt::test]
async fn a_second_call_with_the_same_key_names_the_first_ones_record() {
    let world = World::new();
    let call = || {
        let mut call = world.call(create(), world.session());
        call.idempotency_key = Some("key-1".to_owned());
        call
    };
    let (_, first) = world.gateway.write(call(), new_note(json!({"title": "one"}))).await.unwrap();
    let again = world.gateway.write(call(), new_note(json!({"title": "one"}))).await.err().unwrap();
    assert_eq!((again.code, again.id), (Code::DuplicateRequest, first.receipt.record));
    assert_eq!(world.core.rows(), 1);
}

#[actix_rt::test]
async fn a_number_modifier_adds_to_the_stored_value() {
    let world = World::new();
    let (_, first) = world
        .gateway
        .write(world.call(create(), world.session()), new_note(json!({"title": "n", "rank": 2})))
        .await
        .unwrap();
    let id = first.receipt.record.unwrap();
    let action = Action::UpdateRecord { entity: "notes".to_owned(), id: id.clone() };
    let add = |_: &crate::Admitted| {
        Ok(RecordWrite {
            verb: Verb::Update,
            entity: "notes".to_owned(),
            id: Some(id.clone()),
            body: json!({"rank+": 3}),
            form: None,
            fixed: None,
        })
    };
    let (_, second) = world.gateway.write(world.call(action, world.session()), add).await.unwrap();
    assert_eq!(second.row["rank"].as_f64(), Some(5.0));
}
