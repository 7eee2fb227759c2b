//! When delivery stops.

use inn_grants::token::{Narrowing, attenuate};
use inn_tests::{AgentClient, Papers, Stream, kanban};
use serde_json::json;

use super::{Chat, SLUG};

#[tokio::test]
async fn revoking_the_grant_ends_the_agents_stream_and_no_other() {
    let chat = Chat::start().await;
    let host = &chat.host;
    let agent = host.agent(&chat.owner, &["data:boards:read"]).await;
    let (revoked, stays) =
        (Stream::open(host.door(), kanban::SLUG).await, Stream::open(host.door(), kanban::SLUG).await);
    revoked.subscribe(&["boards/*"], &agent).await;
    stays.subscribe(&["boards/*"], &chat.owner).await;
    host.door().delete(format!("/v1/grants/{}", agent.grant)).by(&chat.owner).send().await.expect(200);
    let board = kanban::create(host.door(), "boards", &json!({"name": "x"}), &chat.owner).send().await.expect(200);
    assert_eq!(stays.told(1).await, [format!("create boards/{}", kanban::id(&board))]);
    revoked.wait_for_end().await;
    assert_eq!(revoked.events(), []);
    assert_eq!(revoked.try_subscribe(&["boards/*"], &agent).await.status, 401);
}

#[tokio::test]
async fn ending_the_session_ends_its_streams() {
    let chat = Chat::start().await;
    let editor = chat.host.editor().await;
    let stream = Stream::open(chat.host.door(), kanban::SLUG).await;
    stream.subscribe(&["boards/*"], &editor).await;
    chat.host.door().delete("/v1/session").by(&editor).send().await.expect(200);
    stream.wait_for_end().await;
}

#[tokio::test]
async fn a_new_password_and_a_deleted_account_end_its_streams() {
    let chat = Chat::start().await;
    let (ada, bob, eve) = (chat.sign_up("ada").await, chat.sign_up("bob").await, chat.sign_up("eve").await);
    let listen = |account| chat.listen(&["public/*"], account);
    let (of_ada, of_bob, of_eve) = (listen(&ada).await, listen(&bob).await, listen(&eve).await);
    let path = format!("/apps/{SLUG}/api/collections/users/sign-out");
    chat.host.door().post(path, &json!({})).by(&ada).send().await.expect(204);
    chat.delete("users", &bob.id).send().await.expect(204);
    of_ada.wait_for_end().await;
    of_bob.wait_for_end().await;
    let id = chat.create("public", &json!({})).await;
    assert_eq!(of_eve.told(1).await, [format!("create public/{id}")]);
}

#[tokio::test]
async fn a_token_that_runs_out_ends_the_stream_unless_another_was_shown() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let path = format!("/apps/{SLUG}/api/collections/users/impersonate/{}", ada.id);
    let short = chat.host.door().post(path, &json!({"duration": 2})).by(&chat.owner).send().await.expect(200);
    let short = Papers::Bearer(short["token"].as_str().unwrap().to_owned());
    let (ends, goes_on) =
        (chat.listen(&["public/*"], short.clone()).await, chat.listen(&["public/*"], short.clone()).await);
    goes_on.subscribe(&["public/*"], &ada).await;
    // A short token of somebody shortens no other stream of theirs.
    let other = chat.listen(&["public/*"], short).await;
    ends.wait_for_end().await;
    other.wait_for_end().await;
    let id = chat.create("public", &json!({})).await;
    assert_eq!(goes_on.told(1).await, [format!("create public/{id}")]);
    assert_eq!(ends.events(), []);
}

#[tokio::test]
async fn a_token_that_was_narrowed_to_end_earlier_ends_its_stream_then() {
    let chat = Chat::start().await;
    let agent = chat.host.agent(&chat.owner, &["data:boards:read"]).await;
    let expires = Some(chrono::Utc::now() + chrono::Duration::seconds(3));
    let token = attenuate(&agent.token, &Narrowing { expires, scopes: None }, rand::random()).unwrap();
    let stream = Stream::open(chat.host.door(), kanban::SLUG).await;
    stream.subscribe(&["boards/*"], &AgentClient { token, ..agent.clone() }).await;
    stream.wait_for_end().await;
    assert_eq!(stream.try_subscribe(&["boards/*"], &agent).await.status, 404, "the stream is no more");
}

#[tokio::test]
async fn removing_the_app_ends_every_stream_of_it() {
    let chat = Chat::start().await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    chat.host.door().delete(format!("/v1/apps/{SLUG}")).by(&chat.owner).send().await.expect(200);
    stream.wait_for_end().await;
}

#[tokio::test]
async fn a_member_who_is_removed_hears_nothing_more() {
    let chat = Chat::start().await;
    let (host, viewer) = (&chat.host, chat.host.viewer().await);
    let agent = host.agent(&viewer, &["data:boards:read"]).await;
    let (person, robot) =
        (Stream::open(host.door(), kanban::SLUG).await, Stream::open(host.door(), kanban::SLUG).await);
    person.subscribe(&["boards/*"], &viewer).await;
    robot.subscribe(&["boards/*"], &agent).await;
    host.door().delete(format!("/v1/members/{}", viewer.user)).by(&chat.owner).send().await.expect(200);
    kanban::board(host.door(), &chat.owner).await;
    person.wait_for_end().await;
    robot.wait_for_end().await;
    assert_eq!((person.events(), robot.events()), (Vec::new(), Vec::new()));
}
