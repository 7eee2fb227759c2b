//! An agent acts in the app as the record its person proved to be.

use inn_tests::{AgentClient, Papers, Person, host};
use serde_json::{Value, json};

use super::{Account, Club};

async fn granted(club: &Club, person: &Person, more: &Value) -> (AgentClient, u16, Value) {
    let mut agent = club.host.new_agent().await;
    let request = agent.ask_for_grant("club", &["data:notes:read", "data:notes:write"]).await;
    let mut yes = json!({"password": host::PASSWORD});
    yes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let path = format!("/v1/grant-requests/{}/approve", request["id"].as_str().unwrap());
    let reply = club.host.door().post(path, &yes).by(person).send().await;
    let grant = reply.json();
    if reply.status == 201 {
        grant["id"].as_str().unwrap().clone_into(&mut agent.grant);
        agent.token = agent.new_token().await;
    }
    (agent, reply.status, grant)
}

async fn notes(club: &Club, by: impl Into<Papers>) -> Value {
    club.get("notes/records").by(by).send().await.expect(200)["totalItems"].clone()
}

async fn note(club: &Club, of: &Account) {
    let body = json!({"text": "mine", "owner": of.id});
    club.post("notes/records", &body).by(of).send().await.expect(200);
}

#[tokio::test]
async fn a_member_links_the_record_they_are_signed_in_as_and_the_agent_is_that() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    note(&club, &ada).await;
    note(&club, &bob).await;
    let editor = club.host.editor().await;
    let (agent, status, grant) = granted(&club, &editor, &json!({"appToken": ada.token})).await;
    assert_eq!((status, &grant["appRecord"]), (201, &json!(format!("users/{}", ada.id))), "{grant}");
    assert_eq!(notes(&club, &agent).await, 1, "hers and nobody else's");
    let forged = json!({"text": "x", "owner": bob.id});
    assert_eq!(club.post("notes/records", &forged).by(&agent).send().await.status / 100, 4);
    let own = json!({"text": "by the agent", "owner": ada.id});
    let made = club.post("notes/records", &own).by(&agent).send().await;
    made.expect(200);
    let id = made.call_id().parse::<inn_protocol::CallId>().unwrap().uuid();
    let row = club.host.sql().await.query_one("SELECT facts FROM inn.entries WHERE call = $1", &[&id]).await.unwrap();
    let facts: Value = serde_json::from_str(row.get(0)).unwrap();
    assert_eq!(facts["appUser"], json!(format!("users/{}", ada.id)));
}

#[tokio::test]
async fn without_a_proof_only_owners_link_a_record_and_a_token_that_does_not_hold_is_none() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    let editor = club.host.editor().await;
    let (_, status, refusal) = granted(&club, &editor, &json!({"appRecord": ada.id})).await;
    assert_eq!((status, &refusal["code"]), (403, &json!("forbidden")), "{refusal}");
    club.post("users/sign-out", &json!({})).by(&bob).send().await.expect(204);
    for token in [bob.token.as_str(), "a.b.c", "", ada.token.trim_end_matches(|c: char| c.is_alphanumeric())] {
        let (_, status, refusal) = granted(&club, &editor, &json!({"appToken": token})).await;
        assert_eq!((status, &refusal["violations"][0]["field"]), (400, &json!("appToken")), "{refusal}");
    }
    let (agent, status, _) = granted(&club, &club.owner, &json!({"appRecord": ada.id})).await;
    assert_eq!(status, 201);
    note(&club, &ada).await;
    assert_eq!(notes(&club, &agent).await, 1);
    let (agent, status, _) = granted(&club, &editor, &json!({})).await;
    assert_eq!(status, 201);
    assert_eq!(notes(&club, &agent).await, 0, "without a record nobody is signed in");
}
