use inn_tests::{Consent, TestHost, kanban, snapshot};
use serde_json::json;

#[tokio::test]
async fn a_revoked_grant_stops_token_call_and_claim_at_once() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let agent = host.agent(&owner, &["data:cards:read", "data:boards:write", "queue:summarise-board"]).await;
    let (board, _) = kanban::board(door, &owner).await;
    kanban::ask(door, &owner, &board).await;
    let claimed = agent.claim().await.expect("a request");
    door.get(kanban::records("cards")).by(&agent).send().await.expect(200);

    let reply = door.delete(format!("/v1/grants/{}", agent.grant)).by(&owner).send().await;
    let revocation = reply.expect(200);
    assert_eq!((&revocation["claimsFenced"], &revocation["tokensEnded"]), (&json!(1), &json!(1)), "{revocation}");
    insta::assert_snapshot!(snapshot::of(&reply, door));

    door.get(kanban::records("cards")).by(&agent).send().await.refused(401, "token_revoked");
    kanban::create(door, "boards", &json!({"name": "x"}), &agent).send().await.refused(401, "token_revoked");
    agent.take_token().send().await.refused(401, "token_revoked");
    let (id, epoch) = (claimed["id"].as_str().unwrap(), &claimed["epoch"]);
    let body = json!({"epoch": epoch, "result": {"summary": "late"}});
    agent.queue(&format!("{id}/complete"), &body).send().await.refused(409, "claim_lost");
    agent.queue("claim", &json!({})).send().await.refused(403, "insufficient_scope");
    // The work is not lost: it waits for somebody else.
    let back = door.get(format!("/v1/requests/{id}?app={}", kanban::SLUG)).by(&owner).send().await.expect(200);
    assert_eq!(back["state"], "submitted");
}

#[tokio::test]
async fn revoking_twice_says_what_is_so() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:cards:read"]).await;
    let revoke = || host.door().delete(format!("/v1/grants/{}", agent.grant)).by(&owner);
    let first = revoke().send().await.expect(200);
    let again = revoke().send().await;
    // Either a second receipt of the same fact or a clear conflict; never a second revocation.
    if again.status == 200 {
        assert_eq!(again.json()["revokedAt"], first["revokedAt"]);
        assert_eq!(again.json()["tokensEnded"], 0);
    } else {
        again.refused(409, "conflict");
    }
}

#[tokio::test]
async fn one_grant_ends_and_the_others_stay() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (one, other) = (host.agent(&owner, &["data:cards:read"]).await, host.agent(&owner, &["data:cards:read"]).await);
    host.door().delete(format!("/v1/grants/{}", one.grant)).by(&owner).send().await.expect(200);
    host.door().get(kanban::records("cards")).by(&other).send().await.expect(200);
    host.door().get(kanban::records("cards")).by(&one).send().await.refused(401, "token_revoked");
}

#[tokio::test]
async fn grants_are_listed_and_shown_in_sentences() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut agent = host.new_agent().await;
    let consent = Consent { others_requests: true, plain_token: true };
    agent.obtain(&owner, kanban::SLUG, &["data:cards:write", "queue:summarise-board"], &consent).await;
    let door = host.door();
    let reply = door.get(format!("/v1/grants/{}", agent.grant)).by(&owner).send().await;
    reply.expect(200);
    insta::assert_snapshot!(snapshot::of(&reply, door));
    let list = door.get(format!("/v1/grants?agent={}", agent.id)).by(&owner).send().await.expect(200);
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    door.get("/v1/grants?agent=nobody").by(&owner).send().await.refused(400, "invalid_parameter");
    door.get(format!("/v1/grants/{}", agent.grant)).by(&host.rival().await).send().await.refused(404, "not_found");
    door.delete(format!("/v1/grants/{}", agent.grant)).by(&host.rival().await).send().await.refused(404, "not_found");
    door.get("/v1/grants/grt_nonsense").by(&owner).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn an_agent_shrinks_with_its_person() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    // A second owner grants, then is lowered and removed.
    let raise =
        |role: &str| door.post("/v1/members", &json!({"email": "editor@acme.example", "role": role})).by(&owner);
    raise("owner").send().await.expect(200);
    let person = host.editor().await;
    let agent = host.agent(&person, &["data:boards:read", "data:boards:write"]).await;
    let write = || kanban::create(door, "boards", &json!({"name": "x"}), &agent);
    write().send().await.expect(200);
    raise("viewer").send().await.expect(200);
    let refusal = write().send().await.refused(403, "forbidden");
    assert_eq!(refusal["leg"], "user");
    door.get(kanban::records("boards")).by(&agent).send().await.expect(200);
    raise("editor").send().await.expect(200);
    write().send().await.expect(200);
    door.delete(format!("/v1/members/{}", person.user)).by(&owner).send().await.expect(200);
    write().send().await.refused(401, "token_revoked");
    agent.take_token().send().await.refused(401, "token_revoked");
}
