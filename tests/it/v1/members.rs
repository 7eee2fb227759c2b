use inn_tests::host::PASSWORD;
use inn_tests::{TestHost, kanban};
use serde_json::json;

#[tokio::test]
async fn owners_manage_members_and_nobody_else_does() {
    let host = TestHost::start().await;
    let door = host.door();
    let new = json!({"email": "new@acme.example", "role": "viewer", "password": PASSWORD});
    for person in [host.viewer().await, host.editor().await] {
        let refusal = door.post("/v1/members", &new).by(&person).send().await.refused(403, "forbidden");
        assert_eq!(refusal["leg"], "user");
        assert!(refusal["whoCanFix"].as_str().unwrap().contains("owner"), "{refusal}");
        door.delete(format!("/v1/members/{}", person.user)).by(&person).send().await.refused(403, "forbidden");
        door.get("/v1/members").by(&person).send().await.expect(200);
    }
    let owner = host.owner().await;
    door.post("/v1/members", &new).by(&owner).send().await.expect(200);
    let members = door.get("/v1/members").by(&owner).send().await.expect(200);
    let mut roles: Vec<(&str, &str)> = members["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|member| (member["email"].as_str().unwrap(), member["role"].as_str().unwrap()))
        .collect();
    roles.sort_unstable();
    let expected = [
        ("editor@acme.example", "editor"),
        ("new@acme.example", "viewer"),
        ("owner@acme.example", "owner"),
        ("viewer@acme.example", "viewer"),
    ];
    assert_eq!(roles, expected);
    host.sign_in("new@acme.example").await;
}

#[tokio::test]
async fn roles_decide_what_a_member_does_with_an_app() {
    let host = TestHost::start().await;
    let door = host.door();
    let (owner, editor, viewer) = (host.owner().await, host.editor().await, host.viewer().await);
    let board = json!({"name": "House"});
    kanban::create(door, "boards", &board, &viewer).send().await.refused(403, "forbidden");
    kanban::create(door, "boards", &board, &editor).send().await.expect(200);
    kanban::create(door, "boards", &board, &owner).send().await.expect(200);
    for person in [&owner, &editor, &viewer] {
        let page = door.get(kanban::records("boards")).by(person).send().await.expect(200);
        assert_eq!(page["totalItems"], 2);
    }
    // A role that is lowered counts at once, in the session that is open already.
    door.post("/v1/members", &json!({"email": editor.email, "role": "viewer"})).by(&owner).send().await.expect(200);
    kanban::create(door, "boards", &board, &editor).send().await.refused(403, "forbidden");
    door.delete(format!("/v1/members/{}", editor.user)).by(&owner).send().await.expect(200);
    door.get(kanban::records("boards")).by(&editor).send().await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn the_last_owner_stays() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let lower = json!({"email": owner.email, "role": "editor"});
    host.door().post("/v1/members", &lower).by(&owner).send().await.refused(409, "conflict");
    host.door().delete(format!("/v1/members/{}", owner.user)).by(&owner).send().await.refused(409, "conflict");
    let raise = json!({"email": "editor@acme.example", "role": "owner"});
    host.door().post("/v1/members", &raise).by(&owner).send().await.expect(200);
    host.door().post("/v1/members", &lower).by(&owner).send().await.expect(200);
    host.door().delete(format!("/v1/members/{}", owner.user)).by(&owner).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_member_that_makes_no_sense_is_refused() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let set = |body| host.door().post("/v1/members", &body).by(&owner);
    set(json!({"email": "not an address", "role": "viewer", "password": PASSWORD}))
        .send()
        .await
        .refused(400, "invalid_parameter");
    set(json!({"email": "a@b.example", "role": "king", "password": PASSWORD}))
        .send()
        .await
        .refused(400, "invalid_body");
    set(json!({"email": "a@b.example", "role": "viewer", "password": "short"}))
        .send()
        .await
        .refused(400, "invalid_value");
    // Somebody new needs a password.
    let reply = set(json!({"email": "a@b.example", "role": "viewer"})).send().await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    let nobody = "usr_00000000000000000000000000000000";
    host.door().delete(format!("/v1/members/{nobody}")).by(&owner).send().await.refused(404, "not_found");
}
