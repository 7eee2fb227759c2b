//! The agent token file of a single machine.

use inn_tests::{Papers, TestHost, kanban};
use serde_json::json;

#[tokio::test]
async fn one_token_drives_an_app_end_to_end() {
    let host = TestHost::start().await;
    let door = host.door();
    let token = host.loopback_token(kanban::SLUG);
    let by = || Papers::Loopback(token.clone());
    let (board, list) = kanban::board(door, by()).await;
    let card = kanban::card(door, by(), &list, "Eat chicken").await;
    door.post("/apps/kanban/api/ops/cards.archive", &json!({"id": card})).by(by()).send().await.expect(200);
    door.patch(kanban::record("boards", &board), &json!({"name": "Flat"})).by(by()).send().await.expect(200);
    let me = door.get("/apps/kanban/api/_a2app/whoami").by(by()).send().await.expect(200);
    assert!(me["credentialId"].is_string(), "{me}");
    // The other name of the header, and the app's own origin.
    let lui =
        door.get("/api/collections/boards/records").on_app(kanban::SLUG).header("x-lui-token", &token).send().await;
    assert_eq!(lui.expect(200)["items"][0]["name"], "Flat");
    // It is an agent, not a person: what destroys waits for one.
    let gone = door.post("/apps/kanban/api/ops/cards.delete-archived", &json!({"id": card})).by(by()).send().await;
    gone.refused(428, "approval_required");
}

#[tokio::test]
async fn it_is_refused_when_the_call_came_through_a_proxy() {
    let host = TestHost::start().await;
    let token = host.loopback_token(kanban::SLUG);
    for header in
        ["forwarded", "x-forwarded-for", "x-forwarded-host", "cf-ray", "cf-connecting-ip", "cf-visitor", "cdn-loop"]
    {
        let call = host.door().get(kanban::records("boards")).by(Papers::Loopback(token.clone()));
        call.header(header, "1.2.3.4").send().await.refused(401, "agent_token_required");
    }
}

#[tokio::test]
async fn it_opens_its_own_app_only_and_not_the_platform() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    host.deploy(&owner, "second", kanban::files()).await;
    let by = || Papers::Loopback(host.loopback_token(kanban::SLUG));
    let reply = door.get("/apps/second/api/collections/boards/records").by(by()).send().await;
    assert!(matches!(reply.status, 401 | 403), "{}", reply.text());
    for path in ["/v1/apps", "/v1/audit", "/v1/members", "/v1/session"] {
        let reply = door.get(path).by(by()).send().await;
        assert!(matches!(reply.status, 401 | 403), "{path}: {}", reply.text());
    }
    door.get(kanban::records("boards"))
        .by(Papers::Loopback("lui_wrong".into()))
        .send()
        .await
        .refused(401, "agent_token_required");
}

#[tokio::test]
async fn it_is_a_grant_the_owner_sees_and_revokes() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let by = || Papers::Loopback(host.loopback_token(kanban::SLUG));
    let grants = door.get("/v1/grants").by(&owner).send().await.expect(200);
    let grant =
        grants["items"].as_array().unwrap().iter().find(|grant| grant["loopback"] == true).expect("a visible grant");
    let used = door.get(kanban::records("boards")).by(by()).send().await;
    used.expect(200);
    let page =
        door.get(format!("/v1/audit?grant={}", grant["id"].as_str().unwrap())).by(&owner).send().await.expect(200);
    let entry =
        page["items"].as_array().unwrap().iter().find(|entry| entry["call"] == used.call_id()).expect("an entry");
    assert_eq!(entry["facts"]["via"], "loopback_token");
    door.delete(format!("/v1/grants/{}", grant["id"].as_str().unwrap())).by(&owner).send().await.expect(200);
    door.get(kanban::records("boards")).by(by()).send().await.refused(401, "agent_token_required");
}
