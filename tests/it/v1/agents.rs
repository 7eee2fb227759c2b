use inn_tests::{AgentClient, Papers, TestHost, kanban, snapshot};
use serde_json::json;

#[tokio::test]
async fn registering_is_free_and_gives_nothing() {
    let host = TestHost::start().await;
    let agent = AgentClient::unknown(host.door());
    let reply = agent.registration("Robo").send().await;
    reply.expect(201);
    insta::assert_snapshot!(snapshot::of(&reply, host.door()));
    let refusal =
        host.door().get(kanban::records("boards")).by(agent.key_papers()).send().await.refused(401, "unauthenticated");
    assert!(refusal["whoCanFix"].as_str().unwrap().contains("grant"), "{refusal}");
    agent.queue("claim", &json!({})).send().await.refused(403, "insufficient_scope");
}

#[tokio::test]
async fn registering_again_changes_the_name_only() {
    let host = TestHost::start().await;
    let agent = host.new_agent().await;
    let first = agent.registration("Robo").send().await.expect(201);
    let again = agent.registration("Robo the second").send().await.expect(201);
    assert_eq!((&first["id"], &first["publicKey"]), (&again["id"], &again["publicKey"]));
    assert_eq!(again["name"], "Robo the second");
    assert_eq!(host.count("SELECT count(*) FROM inn.agents").await, 1);
}

#[tokio::test]
async fn a_key_registers_only_itself() {
    let host = TestHost::start().await;
    let (mine, other) = (AgentClient::unknown(host.door()), AgentClient::unknown(host.door()));
    let body = json!({"publicKey": other.key.public().to_base64url(), "name": "Not me"});
    let door = host.door();
    door.post("/v1/agents", &body).by(mine.key_papers()).send().await.refused(401, "invalid_signature");
    door.post("/v1/agents", &body).send().await.refused(401, "signature_required");
    door.post("/v1/agents", &body).by(&host.owner().await).send().await.refused(403, "forbidden");
    for key in ["", "AAAA", &"A".repeat(43), &"é".repeat(43)] {
        let body = json!({"publicKey": key, "name": "Broken"});
        let reply = door.post("/v1/agents", &body).by(mine.key_papers()).send().await;
        assert_eq!(reply.status, 400, "{key}: {}", reply.text());
    }
    let body = json!({"publicKey": mine.key.public().to_base64url(), "name": "\u{7}"});
    door.post("/v1/agents", &body).by(mine.key_papers()).send().await.refused(400, "invalid_parameter");
    assert_eq!(host.count("SELECT count(*) FROM inn.agents").await, 0, "nothing was kept");
}

#[tokio::test]
async fn an_unregistered_key_is_told_how_to_register() {
    let host = TestHost::start().await;
    let agent = AgentClient::unknown(host.door());
    let refusal = host.door().post("/v1/token", &json!({"grant": "grt_00000000000000000000000000000000"}));
    let refusal = refusal.by(agent.key_papers()).send().await.refused(401, "unknown_agent");
    assert!(refusal["message"].as_str().unwrap().contains("/v1/agents"), "{refusal}");
}

#[tokio::test]
async fn members_see_the_agents_that_have_grants_here() {
    let host = TestHost::start().await;
    let (owner, rival) = (host.owner().await, host.rival().await);
    let agent = host.agent(&owner, &["data:cards:read"]).await;
    let _other = host.new_agent().await;
    let door = host.door();
    let seen =
        |list: serde_json::Value| list["items"].as_array().unwrap().iter().any(|item| item["id"] == agent.id.as_str());
    assert!(seen(door.get("/v1/agents").by(&owner).send().await.expect(200)));
    assert!(!seen(door.get("/v1/agents").by(&rival).send().await.expect(200)));
    door.get("/v1/agents").by(&host.viewer().await).send().await.expect(200);
    door.get("/v1/agents").by(Papers::Nobody).send().await.refused(401, "unauthenticated");
}
