use std::collections::BTreeSet;

use futures_util::future::join_all;
use inn_tests::{Papers, TestHost, kanban};
use serde_json::json;

#[tokio::test]
async fn fifty_at_once_with_one_key_make_one_record() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let race = (0..50).map(|_| kanban::create(door, "boards", &json!({"name": "Once"}), &agent).key("one-key").send());
    let replies = join_all(race).await;
    let mut ids = BTreeSet::new();
    let mut made = 0;
    for reply in &replies {
        let body = reply.json();
        match (reply.status, body["code"].as_str()) {
            (200, _) => {
                made += 1;
                ids.insert(kanban::id(&body));
            }
            (409, Some("duplicate_request")) => {
                ids.insert(body["id"].as_str().unwrap_or_else(|| panic!("names the record: {body}")).to_owned());
            }
            (409, Some("in_progress")) | (503, Some("overloaded")) => {
                assert!(reply.header("retry-after").is_some(), "{body}");
            }
            other => panic!("{other:?}: {body}"),
        }
    }
    assert_eq!(made, 1);
    assert_eq!(ids.len(), 1, "everybody is told the same record: {ids:?}");
    let page = door.get(kanban::records("boards")).by(&agent).send().await.expect(200);
    assert_eq!((&page["totalItems"], &page["items"][0]["id"]), (&json!(1), &json!(ids.first())));
    // Later the key still answers for the record.
    let late = kanban::create(door, "boards", &json!({"name": "Once"}), &agent).key("one-key").send().await;
    assert_eq!(late.refused(409, "duplicate_request")["id"], json!(ids.first()));
}

#[tokio::test]
async fn another_body_under_the_same_key_is_refused() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    kanban::create(door, "boards", &json!({"name": "One"}), &owner).key("k").send().await.expect(200);
    kanban::create(door, "boards", &json!({"name": "Two"}), &owner).key("k").send().await.refused(422, "key_reused");
    assert_eq!(door.get(kanban::records("boards")).by(&owner).send().await.expect(200)["totalItems"], 1);
}

#[tokio::test]
async fn keys_of_different_callers_and_routes_do_not_meet() {
    let host = TestHost::start().await;
    let (owner, editor) = (host.owner().await, host.editor().await);
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let papers: [Papers; 3] = [(&owner).into(), (&editor).into(), (&agent).into()];
    for by in papers {
        kanban::create(door, "boards", &json!({"name": "Mine"}), by).key("k").send().await.expect(200);
    }
    let board = kanban::create(door, "boards", &json!({"name": "Other"}), &owner).key("k2").send().await.expect(200);
    let list = json!({"title": "To Do", "board": kanban::id(&board)});
    kanban::create(door, "lists", &list, &owner).key("k2").send().await.expect(200);
    assert_eq!(door.get(kanban::records("boards")).by(&owner).send().await.expect(200)["totalItems"], 4);
}

#[tokio::test]
async fn a_refused_write_does_not_use_up_its_key() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    kanban::create(door, "boards", &json!({"nme": "Typo"}), &owner).key("k").send().await.refused(400, "unknown_field");
    kanban::create(door, "boards", &json!({"name": "Right"}), &owner).key("k").send().await.expect(200);
    for key in ["", &"k".repeat(201)] {
        kanban::create(door, "boards", &json!({"name": "x"}), &owner)
            .key(key)
            .send()
            .await
            .refused(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn updates_deletes_operations_and_tasks_are_once_too() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (board, list) = kanban::board(door, &owner).await;
    let path = kanban::record("boards", &board);
    let rename = || door.patch(&path, &json!({"name": "Flat"})).by(&owner).key("u");
    rename().send().await.expect(200);
    rename().send().await.refused(409, "duplicate_request");
    let run = || {
        door.post("/apps/kanban/api/ops/cards.add", &json!({"title": "Eat chicken", "list": list})).by(&owner).key("o")
    };
    run().send().await.expect(200);
    run().send().await.refused(409, "duplicate_request");
    assert_eq!(door.get(kanban::records("cards")).by(&owner).send().await.expect(200)["totalItems"], 1);
    let ask = json!({"capability": "summarise-board", "payload": {"board": board}});
    let ask = || door.post("/apps/kanban/api/_a2app/tasks", &ask).by(&owner).key("t");
    let first = ask().send().await.expect(201);
    assert_eq!(ask().send().await.refused(409, "duplicate_request")["id"], first["id"]);
    let delete = || door.delete(&path).by(&owner).key("d");
    delete().send().await.expect(204);
    let again = delete().send().await;
    assert!(matches!(again.status, 404 | 409), "{}", again.text());
}
