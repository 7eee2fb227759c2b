use inn_tests::{TestHost, kanban, snapshot};
use serde_json::json;

#[tokio::test]
async fn a_token_is_for_the_key_that_was_granted() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:cards:read", "data:boards:read"]).await;
    let other = host.new_agent().await;
    let door = host.door();
    let body = json!({"grant": agent.grant});
    door.post("/v1/token", &body).by(other.key_papers()).send().await.refused(404, "not_found");
    door.post("/v1/token", &body).send().await.refused(401, "signature_required");
    door.post("/v1/token", &body).by(&owner).send().await.refused(403, "forbidden");
    door.post("/v1/token", &json!({"grant": "nonsense"}))
        .by(agent.key_papers())
        .send()
        .await
        .refused(400, "invalid_body");
    let reply = agent.take_token().send().await;
    let mut shown = reply.expect(200);
    shown["token"] = "[token]".into();
    insta::assert_snapshot!(snapshot::body(&shown, door));
}

#[tokio::test]
async fn a_token_may_hold_a_part_of_the_scopes_and_never_more() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut agent = host.agent(&owner, &["data:cards:read", "data:boards:read"]).await;
    let door = host.door();
    let body = json!({"grant": agent.grant, "scopes": ["data:cards:read", "data:lists:read"]});
    let answer = door.post("/v1/token", &body).by(agent.key_papers()).send().await.expect(200);
    assert_eq!(answer["scopes"], json!(["data:cards:read"]));
    agent.token = answer["token"].as_str().unwrap().to_owned();
    door.get(kanban::records("cards")).by(&agent).send().await.expect(200);
    door.get(kanban::records("boards")).by(&agent).send().await.refused(403, "insufficient_scope");
    door.get(kanban::records("lists")).by(&agent).send().await.refused(403, "insufficient_scope");
}

#[tokio::test]
async fn taking_a_token_twice_gives_two_that_work() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut agent = host.agent(&owner, &["data:cards:read"]).await;
    let second = agent.new_token().await;
    assert_ne!(agent.token, second);
    host.door().get(kanban::records("cards")).by(&agent).send().await.expect(200);
    agent.token = second;
    host.door().get(kanban::records("cards")).by(&agent).send().await.expect(200);
}
