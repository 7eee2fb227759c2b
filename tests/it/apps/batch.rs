//! `POST /api/batch`: writes that stand or fall together.

use inn_tests::{Papers, Person, TestHost, kanban};
use serde_json::{Value, json};

const BATCH: &str = "/apps/kanban/api/batch";
const CARDS: &str = "/api/collections/cards/records";

#[allow(clippy::needless_pass_by_value, reason = "every call builds its body")]
fn write(method: &str, url: impl Into<String>, body: Value) -> Value {
    json!({"method": method, "url": url.into(), "body": body})
}

async fn send(host: &TestHost, by: impl Into<Papers>, writes: &[Value]) -> inn_tests::Reply {
    host.door().post(BATCH, &json!({"requests": writes})).by(by).send().await
}

async fn count(host: &TestHost, owner: &Person) -> Value {
    host.door().get(kanban::records("cards")).by(owner).send().await.expect(200)["totalItems"].clone()
}

#[tokio::test]
async fn each_write_sees_what_those_before_it_did() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (board, list) = kanban::board(host.door(), &owner).await;
    let id = "batchcard000001";
    let label = "batchlabel00001";
    let reply = send(
        &host,
        &owner,
        &[
            write("POST", "/api/collections/labels/records", json!({"id": label, "name": "Food", "board": board})),
            write(
                "POST",
                format!("{CARDS}?fields=title,labels"),
                json!({"id": id, "title": "A", "list": list, "labels": [label]}),
            ),
            write("PATCH", format!("{CARDS}/{id}?fields=title,position"), json!({"position+": 2})),
            write("PATCH", format!("{CARDS}/{id}?fields=labels"), json!({"labels-": label})),
            write("PUT", format!("{CARDS}?fields=title,position&expand=list"), json!({"id": id, "title": "B"})),
            write(
                "PUT",
                format!("{CARDS}?expand=list&fields=title,expand.list.title"),
                json!({"title": "C", "list": list}),
            ),
            write("DELETE", format!("{CARDS}/{id}"), Value::Null),
        ],
    )
    .await;
    let mut answers = reply.expect(200);
    assert_eq!(answers[0]["body"]["name"], "Food");
    answers[0] = Value::Null;
    assert_eq!(
        answers,
        json!([
            null,
            {"status": 200, "body": {"title": "A", "labels": [label]}},
            {"status": 200, "body": {"title": "A", "position": 2}},
            {"status": 200, "body": {"labels": []}},
            {"status": 200, "body": {"title": "B", "position": 2}},
            {"status": 200, "body": {"title": "C", "expand": {"list": {"title": "To Do"}}}},
            {"status": 204, "body": null},
        ])
    );
    assert_eq!(count(&host, &owner).await, 1);
}

#[tokio::test]
async fn one_refused_write_keeps_all_of_them_from_happening() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let good = || write("POST", CARDS, json!({"title": "A", "list": list}));
    for (wrong, status, code) in [
        (write("POST", CARDS, json!({"title": "", "list": list})), 400, "missing_required"),
        (write("POST", CARDS, json!({"title": "x", "list": list, "due_date": "tomorrow"})), 400, "invalid_date"),
        (write("POST", CARDS, json!({"title": "x", "list": "nowhere00000000"})), 400, "invalid_ref"),
        (write("POST", CARDS, json!({"title": "x", "list": list, "id": "batchcard000001"})), 400, "not_unique"),
        (write("PATCH", format!("{CARDS}/nowhere00000000"), json!({"title": "x"})), 404, "not_found"),
        (write("PATCH", format!("{CARDS}/nowhere00000000"), json!({"labels+": "x"})), 404, "not_found"),
        (write("DELETE", format!("{CARDS}/nowhere00000000"), Value::Null), 404, "not_found"),
        (write("POST", "/api/collections/nope/records", json!({})), 404, "unknown_entity"),
        (write("GET", CARDS, Value::Null), 400, "invalid_body"),
        (write("POST", format!("http://elsewhere.example{CARDS}"), json!({})), 400, "invalid_body"),
        (write("POST", "/api/health", json!({})), 400, "invalid_body"),
        (write("PUT", format!("{CARDS}/batchcard000001"), json!({})), 400, "invalid_body"),
    ] {
        let first = write("POST", CARDS, json!({"id": "batchcard000001", "title": "A", "list": list}));
        let reply = send(&host, &owner, &[good(), first, wrong.clone(), good()]).await;
        let refused = reply.refused(400, "batch_failed");
        assert_eq!((&refused["message"], &refused["status"]), (&json!("Batch transaction failed."), &json!(400)));
        let told = &refused["data"]["requests"]["2"];
        assert_eq!(
            (&told["code"], &told["message"]),
            (&json!("batch_request_failed"), &json!("Batch request failed."))
        );
        assert_eq!(
            (&told["response"]["status"], &refused["refusal"]["code"]),
            (&json!(status), &json!(code)),
            "{wrong}"
        );
        let members: Vec<_> = told["response"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            (members, &refused["write"]),
            (vec!["status", "message", "data"], &json!(2)),
            "as PocketBase tells it"
        );
        assert_eq!(refused["data"]["requests"].as_object().unwrap().len(), 1);
    }
    assert_eq!(count(&host, &owner).await, 0);
}

#[tokio::test]
async fn every_write_has_an_entry_and_a_receipt_of_its_own_and_so_has_the_whole() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let (_, list) = kanban::board(door, &owner).await;
    let card = |title: &str| write("POST", CARDS, json!({"title": title, "list": list}));
    let reply = send(&host, &agent, &[card("A"), card("B")]).await;
    let answers = reply.expect(200);
    let whole = door.get(format!("/v1/receipts/{}", reply.call_id())).by(&agent).send().await.expect(200);
    assert_eq!(
        (&whole["action"], &whole["sentence"]),
        (&json!("records.batch"), &json!("Carried out 2 writes together."))
    );
    for (place, listed) in whole["stored"]["writes"].as_array().unwrap().iter().enumerate() {
        assert_eq!(listed["record"], answers[place]["body"]["id"]);
        let path = format!("/v1/receipts/{}", listed["receipt"].as_str().unwrap());
        let receipt = door.get(path).by(&agent).send().await.expect(200);
        assert_eq!((&receipt["action"], &receipt["record"]), (&json!("records.create"), &listed["record"]));
    }
    let entries = |action: &'static str, outcome: &'static str| {
        let path = format!("/v1/audit?action={action}&outcome={outcome}&limit=100");
        let call = door.get(path).by(&owner);
        async move { call.send().await.expect(200)["items"].as_array().unwrap().len() }
    };
    let before = (entries("records.create", "done").await, entries("records.create", "refused").await);
    send(&host, &agent, &[card("C"), card("")]).await.refused(400, "batch_failed");
    let after = (entries("records.create", "done").await, entries("records.create", "refused").await);
    assert_eq!(after, (before.0, before.1 + 1), "what was rolled back has no entry, what was refused has one");
    assert_eq!(entries("records.batch", "refused").await, 1);
    let verified = door.get("/v1/audit/verify").by(&owner).send().await.expect(200);
    assert_eq!(verified["ok"], true, "{verified}");
}

#[tokio::test]
async fn an_agent_needs_the_scope_of_each_write_and_a_viewer_none_helps() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (board, list) = kanban::board(host.door(), &owner).await;
    let agent = host.agent(&owner, &["data:cards:write"]).await;
    let card = write("POST", CARDS, json!({"title": "A", "list": list}));
    let other = write("POST", "/api/collections/lists/records", json!({"title": "x", "board": board}));
    let answers = send(&host, &agent, std::slice::from_ref(&card)).await.expect(200);
    assert!(answers[0]["body"].get("title").is_none(), "without the scope to read nothing is read: {answers}");
    let refused = send(&host, &agent, &[card.clone(), other]).await.refused(400, "batch_failed");
    assert_eq!(refused["refusal"]["code"], "insufficient_scope");
    let viewer = host.viewer().await;
    let refused = send(&host, &viewer, std::slice::from_ref(&card)).await.refused(400, "batch_failed");
    assert_eq!(refused["refusal"]["code"], "forbidden");
    send(&host, Papers::Nobody, &[card]).await.refused(401, "agent_token_required");
    assert_eq!(count(&host, &owner).await, 1);
}

#[tokio::test]
async fn a_batch_that_cannot_be_read_is_told_as_pocketbase_tells_it() {
    let host = TestHost::with(|settings| settings.http.batch_requests = 2).await;
    let owner = host.owner().await;
    let post = |body: Value| host.door().post(BATCH, &body).by(&owner);
    for body in [json!({"requests": "x"}), json!([]), json!({"requests": [1]}), json!({"requests": [{"method": 1}]})] {
        let refused = post(body.clone()).send().await.refused(400, "invalid_body");
        assert_eq!(refused["message"], "Failed to read the submitted batch data.", "{body}");
        assert_eq!(refused["data"], json!({}));
    }
    for (body, data) in [
        (json!({}), json!({"code": "validation_required", "message": "Cannot be blank."})),
        (json!({"requests": []}), json!({"code": "validation_required", "message": "Cannot be blank."})),
        (
            json!({"requests": [{}, {}, {}]}),
            json!({"code": "validation_length_too_long", "message": "The length must be no more than 2.", "params": {"max": 2, "min": 0}}),
        ),
        (
            json!({"requests": [{"method": "POST", "url": CARDS}, {"method": "post"}]}),
            json!({"1": {
                "method": {"code": "validation_in_invalid", "message": "Must be a valid value."},
                "url": {"code": "validation_required", "message": "Cannot be blank."},
            }}),
        ),
    ] {
        let refused = post(body.clone()).send().await.refused(400, "invalid_body");
        assert_eq!(refused["message"], "Invalid batch request data.", "{body}");
        assert_eq!(refused["data"], json!({"requests": data}), "{body}");
    }
}

#[tokio::test]
async fn batches_can_be_switched_off() {
    let host = TestHost::with(|settings| settings.http.batch_requests = 0).await;
    let owner = host.owner().await;
    let refused = send(&host, &owner, &[write("POST", CARDS, json!({}))]).await.refused(403, "forbidden");
    assert_eq!(refused["message"], "Batch requests are not allowed.");
}

#[tokio::test]
async fn a_batch_sent_twice_under_one_key_is_done_once() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let body = json!({"requests": [write("POST", CARDS, json!({"title": "A", "list": list}))]});
    let post = || host.door().post(BATCH, &body).header("idempotency-key", "once").by(&owner).send();
    post().await.expect(200);
    post().await.refused(409, "duplicate_request");
    assert_eq!(count(&host, &owner).await, 1);
}

#[tokio::test]
async fn deleting_within_a_batch_takes_referrers_along() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let remove = write("DELETE", format!("/api/collections/lists/records/{list}"), Value::Null);
    let create = write("POST", CARDS, json!({"title": "A", "list": list}));
    send(&host, &owner, &[create.clone(), remove, create]).await.refused(400, "batch_failed");
    assert_eq!(count(&host, &owner).await, 0);
    let remove = write("DELETE", format!("/api/collections/lists/records/{list}"), Value::Null);
    let create = write("POST", CARDS, json!({"title": "A", "list": list}));
    send(&host, &owner, &[create, remove]).await.expect(200);
    assert_eq!(count(&host, &owner).await, 0);
    host.door().get(kanban::record("lists", &list)).by(&owner).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn batches_that_cross_each_other_all_land() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let (one, two) =
        (kanban::card(host.door(), &owner, &list, "A").await, kanban::card(host.door(), &owner, &list, "B").await);
    let add = |id: &str| write("PATCH", format!("{CARDS}/{id}"), json!({"position+": 1}));
    let crossing = (0..10).map(|number| {
        let writes = if number % 2 == 0 { [add(&one), add(&two)] } else { [add(&two), add(&one)] };
        let (host, owner) = (&host, &owner);
        async move { send(host, owner, &writes).await.expect(200) }
    });
    futures_util::future::join_all(crossing).await;
    for card in [&one, &two] {
        let card = host.door().get(kanban::record("cards", card)).by(&owner).send().await.expect(200);
        assert_eq!(card["position"], 10, "{card}");
    }
}
