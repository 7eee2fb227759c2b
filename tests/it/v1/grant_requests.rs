use inn_tests::host::PASSWORD;
use inn_tests::{TestHost, kanban, snapshot};
use serde_json::{Value, json};

fn approve(host: &TestHost, request: &Value, body: &Value) -> inn_tests::Call {
    let id = request["id"].as_str().unwrap();
    host.door().post(format!("/v1/grant-requests/{id}/approve"), body)
}

/// As if the session's password had been given ten minutes ago.
async fn age_sessions(host: &TestHost) {
    let age = "UPDATE inn.sessions SET authenticated_at = authenticated_at - interval '10 minutes'";
    host.sql().await.execute(age, &[]).await.unwrap();
}

#[tokio::test]
async fn a_request_tells_scopes_in_sentences_and_gives_a_code() {
    let host = TestHost::start().await;
    let agent = host.new_agent().await;
    let body = json!({"app": kanban::SLUG, "scopes": kanban::SCOPES, "reason": "to help"});
    let reply = host.door().post("/v1/grant-requests", &body).by(agent.key_papers()).send().await;
    reply.expect(201);
    insta::assert_snapshot!(snapshot::of(&reply, host.door()));
}

#[tokio::test]
async fn the_owner_grants_a_part_and_no_more_than_was_asked() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut agent = host.new_agent().await;
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read", "data:cards:write", "op:cards.move"]).await;
    let more = json!({"scopes": ["data:cards:read", "data:boards:read"], "password": PASSWORD});
    let reply = approve(&host, &request, &more).by(&owner).send().await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    let none = approve(&host, &request, &json!({"scopes": [], "password": PASSWORD})).by(&owner).send().await;
    assert_eq!(none.status, 400, "{}", none.text());

    let part = json!({"scopes": ["data:cards:read"], "password": PASSWORD});
    let reply = approve(&host, &request, &part).by(&owner).send().await;
    let grant = reply.expect(201);
    assert_eq!(grant["scopes"], json!(["data:cards:read"]));
    assert_eq!(grant["user"], owner.user.as_str());
    agent.grant = grant["id"].as_str().unwrap().to_owned();
    agent.token = agent.new_token().await;
    host.door().get(kanban::records("cards")).by(&agent).send().await.expect(200);
    let refusal = host.door().get(kanban::records("boards")).by(&agent).send().await.refused(403, "insufficient_scope");
    assert_eq!((&refusal["scope"], &refusal["leg"]), (&json!("data:boards:read"), &json!("grant")));
}

#[tokio::test]
async fn the_code_that_is_given_must_be_the_requests() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.new_agent().await;
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    let with_code = |code: &str| approve(&host, &request, &json!({"code": code, "password": PASSWORD})).by(&owner);
    with_code("AAAA-2222").send().await.refused(400, "invalid_parameter");
    assert_eq!(host.count("SELECT count(*) FROM inn.grants WHERE NOT loopback").await, 0);
    with_code(&request["code"].as_str().unwrap().to_lowercase()).send().await.expect(201);
}

#[tokio::test]
async fn a_decision_is_made_once() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.new_agent().await;
    let yes = json!({"password": PASSWORD});
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    let grant = approve(&host, &request, &yes).by(&owner).send().await.expect(201);
    // The same yes given twice is one grant; another yes is too late.
    assert_eq!(approve(&host, &request, &yes).by(&owner).send().await.expect(201)["id"], grant["id"]);
    let wider = json!({"password": PASSWORD, "othersRequests": true});
    approve(&host, &request, &wider).by(&owner).send().await.refused(409, "conflict");
    let id = request["id"].as_str().unwrap();
    let refuse = |id: &str| host.door().post(format!("/v1/grant-requests/{id}/refuse"), &json!({})).by(&owner);
    refuse(id).send().await.refused(409, "conflict");
    assert_eq!(host.count("SELECT count(*) FROM inn.grants WHERE NOT loopback").await, 1);

    let other = agent.ask_for_grant(kanban::SLUG, &["data:cards:write"]).await;
    let other = other["id"].as_str().unwrap();
    let refused = refuse(other).send().await.expect(200);
    assert_eq!(refused["status"], "refused");
    let seen = host.door().get(format!("/v1/grant-requests/{other}")).by(agent.key_papers()).send().await.expect(200);
    assert_eq!(seen["status"], "refused");
    host.door()
        .post(format!("/v1/grant-requests/{other}/approve"), &yes)
        .by(&owner)
        .send()
        .await
        .refused(409, "conflict");
}

#[tokio::test]
async fn consent_needs_the_password_given_just_now() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.new_agent().await;
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    age_sessions(&host).await;
    // The directory answers from memory until something moves; signing in anew shows the aged session for what it is.
    host.sign_in("viewer@acme.example").await;
    let door = host.door();
    let stale = TestHost::sign_in(&host, "owner@acme.example").await;
    age_sessions(&host).await;
    approve(&host, &request, &json!({})).by(&stale).send().await.refused(401, "unauthenticated");
    approve(&host, &request, &json!({"password": "wrong horse battery"}))
        .by(&stale)
        .send()
        .await
        .refused(401, "wrong_credentials");
    assert_eq!(host.count("SELECT count(*) FROM inn.grants WHERE NOT loopback").await, 0);
    door.post("/v1/session/confirm", &json!({"password": PASSWORD})).by(&stale).send().await.expect(200);
    approve(&host, &request, &json!({})).by(&stale).send().await.expect(201);
    drop(owner);
}

#[tokio::test]
async fn no_agent_and_no_stranger_decides() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, kanban::SLUG, &["data:cards:read"], &inn_tests::Consent::default()).await;
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:write"]).await;
    let yes = json!({"password": PASSWORD});
    approve(&host, &request, &yes).by(&host.rival().await).send().await.refused(404, "not_found");
    approve(&host, &request, &json!({})).send().await.refused(401, "unauthenticated");
    // No agent approves itself, with whatever papers it has.
    approve(&host, &request, &json!({})).by(&agent).send().await.refused(403, "forbidden");
    approve(&host, &request, &json!({})).by(agent.key_papers()).send().await.refused(403, "forbidden");
    let id = request["id"].as_str().unwrap();
    // Saying no for everybody is an owner's.
    let refuse = host.door().post(format!("/v1/grant-requests/{id}/refuse"), &json!({}));
    refuse.by(&host.editor().await).send().await.refused(403, "forbidden");
    let seen = host.door().get(format!("/v1/grant-requests/{id}")).by(&owner).send().await.expect(200);
    assert_eq!(seen["status"], "pending");
}

#[tokio::test]
async fn a_member_grants_for_themselves_and_the_agent_never_exceeds_them() {
    let host = TestHost::start().await;
    let (owner, viewer) = (host.owner().await, host.viewer().await);
    let agent = host.agent(&viewer, &["data:boards:read", "data:boards:write"]).await;
    let door = host.door();
    let grant = door.get(format!("/v1/grants/{}", agent.grant)).by(&owner).send().await.expect(200);
    assert_eq!(grant["user"], viewer.user.as_str());
    door.get(kanban::records("boards")).by(&agent).send().await.expect(200);
    let refusal = kanban::create(door, "boards", &json!({"name": "x"}), &agent).send().await.refused(403, "forbidden");
    assert_eq!(refusal["leg"], "user");
    // One's own grant one may revoke, others' not.
    let others = host.agent(&owner, &["data:boards:read"]).await;
    door.delete(format!("/v1/grants/{}", others.grant)).by(&viewer).send().await.refused(404, "not_found");
    door.delete(format!("/v1/grants/{}", agent.grant)).by(&viewer).send().await.expect(200);
    door.get(kanban::records("boards")).by(&agent).send().await.refused(401, "token_revoked");
}

#[tokio::test]
async fn a_request_that_waited_too_long_can_no_longer_be_granted() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.new_agent().await;
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    let expire = "UPDATE inn.grant_requests SET expires_at = clock_timestamp() - interval '1 second'";
    host.sql().await.execute(expire, &[]).await.unwrap();
    let reply = approve(&host, &request, &json!({"password": PASSWORD})).by(&owner).send().await;
    reply.refused(409, "conflict");
    let id = request["id"].as_str().unwrap();
    let seen = host.door().get(format!("/v1/grant-requests/{id}")).by(agent.key_papers()).send().await.expect(200);
    assert_eq!(seen["status"], "expired");
    let waiting = host.door().get("/v1/grant-requests").by(&owner).send().await.expect(200);
    assert_eq!(waiting["items"], json!([]));
}

#[tokio::test]
async fn a_request_is_seen_by_its_agent_and_the_tenants_members_only() {
    let host = TestHost::start().await;
    let (agent, other) = (host.new_agent().await, host.new_agent().await);
    let request = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    let path = format!("/v1/grant-requests/{}", request["id"].as_str().unwrap());
    host.door().get(&path).by(agent.key_papers()).send().await.expect(200);
    host.door().get(&path).by(&host.owner().await).send().await.expect(200);
    host.door().get(&path).by(other.key_papers()).send().await.refused(404, "not_found");
    host.door().get(&path).by(&host.rival().await).send().await.refused(404, "not_found");
    host.door().get(&path).by(&host.viewer().await).send().await.expect(200);
}

#[tokio::test]
async fn scopes_that_are_none_or_not_declared_are_named() {
    let host = TestHost::start().await;
    let agent = host.new_agent().await;
    let ask = |scopes: Value| {
        let body = json!({"app": kanban::SLUG, "scopes": scopes});
        host.door().post("/v1/grant-requests", &body).by(agent.key_papers())
    };
    for scope in ["data:cards:read", "data:nothing:read"] {
        let declared = ask(json!([scope, "op:nothing", "queue:nothing"])).send().await.refused(403, "not_declared");
        let got: Vec<&str> = declared["violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|violation| violation["got"].as_str().unwrap())
            .collect();
        assert!(
            got.contains(&"op:nothing") && got.contains(&"queue:nothing") && !got.contains(&"data:cards:read"),
            "{declared}"
        );
    }
    for scopes in [json!(["everything"]), json!(["data:*:read"]), json!([""]), json!([])] {
        ask(scopes).send().await.refused(400, "invalid_parameter");
    }
    let reply = host.door().post("/v1/grant-requests", &json!({"app": "nothing", "scopes": ["data:cards:read"]}));
    reply.by(agent.key_papers()).send().await.refused(404, "unknown_app");
}
