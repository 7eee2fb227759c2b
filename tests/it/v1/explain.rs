use inn_tests::{TestHost, kanban, snapshot};
use serde_json::{Value, json};

async fn ask(host: &TestHost, by: &inn_tests::Person, body: Value) -> Value {
    host.door().post("/v1/explain", &body).by(by).send().await.expect(200)
}

#[tokio::test]
async fn each_leg_says_yes_or_no_and_who_can_change_it() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:cards:read"]).await;
    let question = json!({"app": kanban::SLUG, "action": "records.create", "entity": "cards", "grant": agent.grant});
    let reply = host.door().post("/v1/explain", &question).by(&owner).send().await;
    reply.expect(200);
    insta::assert_snapshot!(snapshot::of(&reply, host.door()));
}

#[tokio::test]
async fn what_is_explained_is_what_is_decided() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let viewer = host.viewer().await;
    let agent = host.agent(&owner, &["data:cards:read", "op:cards.delete-archived"]).await;
    let door = host.door();
    let app = kanban::SLUG;
    for (action, detail, legs) in [
        ("records.list", json!({"entity": "cards"}), [true, true, true]),
        ("records.list", json!({"entity": "boards"}), [true, false, true]),
        ("records.create", json!({"entity": "cards"}), [true, false, true]),
        ("records.list", json!({"entity": "nothing"}), [true, false, false]),
        ("app.describe", json!({}), [true, true, true]),
    ] {
        let mut question = json!({"app": app, "action": action, "grant": agent.grant});
        question.as_object_mut().unwrap().extend(detail.as_object().unwrap().clone());
        let answer = ask(&host, &owner, question.clone()).await;
        let found: Vec<(&str, bool)> = answer["legs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|leg| (leg["leg"].as_str().unwrap(), leg["ok"].as_bool().unwrap()))
            .collect();
        assert_eq!(answer["allowed"], legs.iter().all(|&ok| ok), "{question}: {answer}");
        let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["user", "grant", "app"], "{answer}");
        let first_no = found.iter().find(|(_, ok)| !ok).map(|(name, _)| *name);
        let expected = ["user", "grant", "app"].into_iter().zip(legs).find(|(_, ok)| !ok).map(|(name, _)| name);
        assert_eq!(first_no, expected, "{question}: {answer}");
    }
    let as_viewer = ask(&host, &viewer, json!({"app": app, "action": "records.create", "entity": "cards"})).await;
    assert_eq!(as_viewer["allowed"], false);
    kanban::create(door, "cards", &json!({}), &viewer).send().await.refused(403, "forbidden");

    door.delete(format!("/v1/grants/{}", agent.grant)).by(&owner).send().await.expect(200);
    let revoked = ask(&host, &owner, json!({"app": app, "action": "app.describe", "grant": agent.grant})).await;
    assert_eq!((&revoked["allowed"], &revoked["legs"][0]["leg"]), (&json!(false), &json!("grant")));
}

#[tokio::test]
async fn a_question_that_cannot_be_read_is_refused() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let post = |body: Value| host.door().post("/v1/explain", &body).by(&owner);
    post(json!({"app": kanban::SLUG, "action": "everything"})).send().await.refused(400, "invalid_parameter");
    post(json!({"app": kanban::SLUG, "action": "records.list"})).send().await.refused(400, "invalid_parameter");
    post(json!({"app": "nothing", "action": "app.describe"})).send().await.refused(404, "unknown_app");
    let rival = host.rival().await;
    let other = json!({"app": kanban::SLUG, "action": "app.describe"});
    host.door().post("/v1/explain", &other).by(&rival).send().await.refused(404, "unknown_app");
}
