use inn_tests::{Call, Person, TestHost, kanban};
use serde_json::{Value, json};

fn run(host: &TestHost, name: &str, params: &Value) -> Call {
    host.door().post(format!("/apps/kanban/api/ops/{name}"), params)
}

async fn with_card() -> (TestHost, Person, String, String) {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let card = kanban::card(host.door(), &owner, &list, "Eat chicken").await;
    (host, owner, list, card)
}

#[tokio::test]
async fn crud_operations_run_by_name() {
    let (host, owner, list, card) = with_card().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let added = run(&host, "cards.add", &json!({"title": "Buy milk", "list": list, "priority": "urgent"}))
        .by(&agent)
        .send()
        .await;
    assert_eq!(added.expect(200)["title"], "Buy milk");
    assert!(added.header("innkeeper-receipt").is_some());
    let urgent = run(&host, "cards.list-urgent", &json!({})).by(&agent).send().await.expect(200);
    assert_eq!((&urgent["totalItems"], &urgent["items"][0]["title"]), (&json!(1), &json!("Buy milk")));
    let archived = run(&host, "cards.archive", &json!({"id": card})).by(&agent).send().await.expect(200);
    assert_eq!(archived["archived"], true);
    // The fixed filter is part of the operation: what is archived cannot be archived again, or moved.
    run(&host, "cards.archive", &json!({"id": card})).by(&agent).send().await.refused(404, "not_found");
    run(&host, "cards.move", &json!({"id": card, "list": list})).by(&agent).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn params_are_checked_all_at_once() {
    let (host, owner, _, _) = with_card().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let params = json!({"priority": "whenever", "due_date": 7, "unheard": true, "__proto__": 1});
    let body = run(&host, "cards.add", &params).by(&agent).send().await.expect(400);
    let fields: Vec<&str> =
        body["violations"].as_array().unwrap().iter().map(|v| v["field"].as_str().unwrap()).collect();
    for field in ["title", "list", "priority", "due_date", "unheard", "__proto__"] {
        assert!(fields.contains(&field), "{field} is missing in {body}");
    }
    for body in ["[]", "{", "\"x\""] {
        let call = host.door().call(reqwest::Method::POST, "/apps/kanban/api/ops/cards.add");
        call.body(body).by(&agent).send().await.refused(400, "invalid_body");
    }
}

#[tokio::test]
async fn a_destructive_operation_by_an_agent_waits_for_a_person_and_does_nothing() {
    let (host, owner, _, card) = with_card().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    run(&host, "cards.archive", &json!({"id": card})).by(&owner).send().await.expect(200);
    let params = json!({"id": card});
    let refusal =
        run(&host, "cards.delete-archived", &params).by(&agent).send().await.refused(428, "approval_required");
    assert!(refusal["whoCanFix"].is_string(), "{refusal}");
    host.door().get(kanban::record("cards", &card)).by(&owner).send().await.expect(200);
    run(&host, "cards.delete-archived", &params).by(&owner).send().await.expect(204);
    host.door().get(kanban::record("cards", &card)).by(&owner).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn an_operation_needs_its_own_scope() {
    let (host, owner, list, _) = with_card().await;
    let params = json!({"title": "x", "list": list});
    let agent = host.agent(&owner, &["data:cards:read", "data:cards:write"]).await;
    let refusal = run(&host, "cards.add", &params).by(&agent).send().await;
    assert_eq!(refusal.refused(403, "insufficient_scope")["scope"], "op:cards.add");
    // And the scope of an operation is no scope on the records behind it.
    let agent = host.agent(&owner, &["op:cards.add"]).await;
    run(&host, "cards.add", &params).by(&agent).send().await.expect(200);
    kanban::create(host.door(), "cards", &params, &agent).send().await.refused(403, "insufficient_scope");
    run(&host, "cards.add", &params).by(&host.viewer().await).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn what_is_not_declared_is_told_apart_from_what_is_called_wrongly() {
    let (host, owner, _, _) = with_card().await;
    run(&host, "nothing", &json!({})).by(&owner).send().await.refused(404, "unknown_operation");
    let reply = host.door().get("/apps/kanban/api/ops/cards.add").by(&owner).send().await;
    reply.refused(405, "method_not_allowed");
}

#[tokio::test]
async fn an_operation_answers_at_its_declared_path_too() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut files = kanban::files();
    let mut operations: Value = serde_json::from_slice(&files["operations.json"]).unwrap();
    operations["operations"].as_array_mut().unwrap().push(json!({
        "name": "board.rebuild",
        "description": "Rebuild the board.",
        "params": {},
        "executor": {"type": "http", "method": "POST", "path": "/api/board/rebuild"},
    }));
    files.insert("operations.json".to_owned(), operations.to_string().into_bytes());
    host.deploy(&owner, "paths", files).await;
    let door = host.door();
    // This host does not run scripts yet: it says so under either name, and never pretends.
    for path in ["/apps/paths/api/board/rebuild", "/apps/paths/api/ops/board.rebuild"] {
        door.post(path, &json!({})).by(&owner).send().await.refused(501, "not_implemented");
    }
    door.get("/apps/paths/api/board/rebuild").by(&owner).send().await.refused(405, "method_not_allowed");
    door.post("/api/board/rebuild", &json!({})).on_app("paths").by(&owner).send().await.refused(501, "not_implemented");
}
