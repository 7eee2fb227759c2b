//! A helper's key with and without its parent's signed delegation.

use chrono::{TimeDelta, Utc};
use inn_grants::delegation;
use inn_grants::token::{Narrowing, attenuate};
use inn_protocol::Digest;
use inn_tests::{AgentClient, Papers, TestHost, kanban};
use serde_json::json;

fn papers(helper: &AgentClient, token: &str, delegation: Option<String>) -> Papers {
    Papers::Agent { key: helper.key.clone(), token: token.to_owned(), delegation }
}

/// What the parent signs: this token, this helper, until then.
fn statement(parent: &AgentClient, token: &str, helper: &AgentClient, seconds: i64) -> String {
    let helper = inn_protocol::AgentId::parse(&helper.id).unwrap();
    delegation::sign(&parent.key, Digest::of(token.as_bytes()), &helper, inn_tests::call::now() + seconds).unwrap()
}

#[tokio::test]
async fn a_helper_needs_its_parents_signed_word() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let parent = host.agent(&owner, &["data:boards:read", "data:boards:write"]).await;
    let (helper, other) = (host.new_agent().await, host.new_agent().await);
    let door = host.door();
    let narrowing = Narrowing {
        scopes: Some(["data:boards:read".parse().unwrap()].into()),
        expires: Some(Utc::now() + TimeDelta::minutes(5)),
    };
    let narrow = attenuate(&parent.token, &narrowing, rand::random()).unwrap();
    let read = |papers: Papers| door.get(kanban::records("boards")).by(papers);

    // Whoever holds a token can append blocks, so blocks alone prove nothing.
    read(papers(&helper, &narrow, None)).send().await.refused(401, "invalid_token");
    read(papers(&helper, &parent.token, None)).send().await.refused(401, "invalid_token");

    let word = statement(&parent, &narrow, &helper, 300);
    let done = read(papers(&helper, &narrow, Some(word.clone()))).send().await;
    done.expect(200);
    let write = kanban::create(door, "boards", &json!({"name": "x"}), papers(&helper, &narrow, Some(word.clone())));
    write.send().await.refused(403, "insufficient_scope");

    for (what, token, delegation) in [
        ("for another token", parent.token.as_str(), word.clone()),
        ("for another helper", narrow.as_str(), statement(&parent, &narrow, &other, 300)),
        ("expired", narrow.as_str(), statement(&parent, &narrow, &helper, -1)),
        ("signed by the helper itself", narrow.as_str(), statement(&helper, &narrow, &helper, 300)),
        ("nonsense", narrow.as_str(), "nonsense".to_owned()),
        ("too long", narrow.as_str(), "a".repeat(600)),
    ] {
        let reply = read(papers(&helper, token, Some(delegation))).send().await;
        assert_eq!(reply.json()["code"], "invalid_delegation", "{what}: {}", reply.text());
        reply.refused(401, "invalid_delegation");
    }
    // A word that was not covered by the signature, but slipped in, counts for nothing.
    let slipped = read(papers(&helper, &narrow, None)).late_header("innkeeper-delegation", word.clone());
    slipped.send().await.refused(401, "invalid_signature");

    // A helper cannot turn what it was lent into something of its parent's.
    let token =
        door.post("/v1/token", &json!({"grant": parent.grant})).by(papers(&helper, &narrow, Some(word.clone())));
    let reply = token.send().await;
    assert!(matches!(reply.status, 401 | 403 | 404), "{}", reply.text());

    let entry = host
        .sql()
        .await
        .query_one("SELECT facts FROM inn.entries WHERE call = $1", &[&uuid(done.call_id())])
        .await
        .unwrap();
    let facts: serde_json::Value = serde_json::from_str(entry.get(0)).unwrap();
    assert_eq!((&facts["agent"], &facts["helper"]), (&json!(parent.id), &json!(helper.id)));

    // The parent's grant ends, and with it the helper's way in.
    door.delete(format!("/v1/grants/{}", parent.grant)).by(&owner).send().await.expect(200);
    read(papers(&helper, &narrow, Some(word))).send().await.refused(401, "token_revoked");
}

fn uuid(call: &str) -> uuid::Uuid {
    call.parse::<inn_protocol::CallId>().unwrap().uuid()
}
