use inn_tests::{TestHost, kanban, snapshot};
use serde_json::{Value, json};

const TASKS: &str = "/apps/kanban/api/_a2app/tasks";

#[tokio::test]
async fn a_user_asks_and_looks_how_it_goes() {
    let host = TestHost::start().await;
    let editor = host.editor().await;
    let door = host.door();
    let (board, _) = kanban::board(door, &editor).await;
    let body = json!({"capability": "summarise-board", "payload": {"board": board}});
    let asked = door.post(TASKS, &body).by(&editor).send().await;
    let task = asked.expect(201);
    insta::assert_snapshot!(snapshot::of(&asked, door));
    let path = format!("{TASKS}/{}", kanban::id(&task));
    assert_eq!(door.get(&path).by(&editor).send().await.expect(200)["status"], "submitted");
    let list = door.get(format!("{TASKS}?status=submitted")).by(&editor).send().await.expect(200);
    assert_eq!(list["tasks"][0]["id"], task["id"]);
    assert_eq!(door.get(format!("{TASKS}?status=completed")).by(&editor).send().await.expect(200)["tasks"], json!([]));
    door.get(format!("{TASKS}?status=lost")).by(&editor).send().await.refused(400, "invalid_parameter");
    let cancel = || door.post(format!("{path}/cancel"), &json!({})).by(&editor);
    assert_eq!(cancel().send().await.expect(200)["status"], "canceled");
    let again = cancel().send().await;
    assert!(matches!(again.status, 200 | 409), "{}", again.text());
}

#[tokio::test]
async fn what_is_asked_must_fit_what_is_declared() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let ask = |capability: &str, payload: &Value| {
        door.post(TASKS, &json!({"capability": capability, "payload": payload})).by(&owner)
    };
    ask("dig-a-hole", &json!({})).send().await.refused(403, "not_declared");
    for payload in [
        json!(null),
        json!({}),
        json!({"board": 1}),
        json!({"board": "short"}),
        json!({"board": "a".repeat(15), "more": 1}),
    ] {
        let reply = ask("summarise-board", &payload).send().await;
        assert_eq!(reply.status, 400, "{payload}: {}", reply.text());
        assert!(!reply.json()["violations"].as_array().unwrap().is_empty(), "{}", reply.text());
    }
    for body in ["{}", "[]", "{\"capability\":1}", "{\"capability\":\"summarise-board\",\"payload\":{},\"x\":1}"] {
        door.call(reqwest::Method::POST, TASKS).body(body).by(&owner).send().await.refused(400, "invalid_body");
    }
    assert_eq!(host.count("SELECT count(*) FROM inn.requests").await, 0);
}

#[tokio::test]
async fn viewers_and_agents_do_not_ask() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let body = json!({"capability": "summarise-board", "payload": {"board": "a".repeat(15)}});
    host.door().post(TASKS, &body).by(&host.viewer().await).send().await.refused(403, "forbidden");
    let reply = host.door().post(TASKS, &body).by(&agent).send().await;
    assert_eq!(reply.status, 403, "{}", reply.text());
    host.door().post(TASKS, &body).send().await.refused(401, "agent_token_required");
}

#[tokio::test]
async fn a_full_queue_is_refused_until_there_is_room() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let body = json!({"capability": "summarise-board", "payload": {"board": "a".repeat(15)}});
    let mut first = String::new();
    // The manifest allows 50 open requests.
    for _ in 0..50 {
        first = kanban::id(&door.post(TASKS, &body).by(&owner).send().await.expect(201));
    }
    let full = door.post(TASKS, &body).by(&owner).send().await;
    assert!(matches!(full.status, 429 | 503), "{}", full.text());
    full.refused(full.status, full.json()["code"].as_str().unwrap());
    door.post(format!("{TASKS}/{first}/cancel"), &json!({})).by(&owner).send().await.expect(200);
    door.post(TASKS, &body).by(&owner).send().await.expect(201);
}

#[tokio::test]
async fn tasks_of_others_are_for_editors_and_nobody_below() {
    let host = TestHost::start().await;
    let (owner, viewer, rival) = (host.owner().await, host.viewer().await, host.rival().await);
    let door = host.door();
    let (board, _) = kanban::board(door, &owner).await;
    let path = format!("{TASKS}/{}", kanban::ask(door, &owner, &board).await);
    door.get(&path).by(&host.editor().await).send().await.expect(200);
    door.get(&path).by(&viewer).send().await.refused(404, "not_found");
    assert_eq!(door.get(&path).by(&rival).send().await.status, 404);
    assert_eq!(door.get(TASKS).by(&viewer).send().await.expect(200)["tasks"], json!([]));
    door.get(format!("{TASKS}/req_nonsense")).by(&owner).send().await.refused(404, "not_found");
}
