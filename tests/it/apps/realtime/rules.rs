//! Who hears of what: the rules and rights of the moment.

use inn_tests::{Papers, Stream, kanban};
use serde_json::json;

use super::{Chat, SLUG, files};

#[tokio::test]
async fn members_of_a_room_hear_its_messages_and_nobody_else_does() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let room = chat.room(&[&ada]).await;
    let (for_ada, for_bob) = (chat.listen(&["messages/*"], &ada).await, chat.listen(&["messages/*"], &bob).await);
    let first = chat.say(&room, "hello").await;
    assert_eq!(for_ada.told(1).await, [format!("create messages/{first}")]);
    // Membership is asked about at each event.
    chat.update("rooms", &room, &json!({"members": [bob.id]})).send().await.expect(200);
    let second = chat.say(&room, "again").await;
    assert_eq!(for_bob.told(1).await, [format!("create messages/{second}")]);
    assert_eq!(for_ada.events().len(), 1);
}

#[tokio::test]
async fn the_list_rule_decides_about_all_and_the_view_rule_about_one() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let room = chat.room(&[&ada]).await;
    let id = chat.say(&room, "hello").await;
    let one = format!("messages/{id}");
    let stream = chat.listen(&["messages/*", &one, "teamwork/*"], &ada).await;
    chat.update("messages", &id, &json!({"text": "private"})).send().await.expect(200);
    chat.update("messages", &id, &json!({"text": "open"})).send().await.expect(200);
    let events = stream.wait(3).await;
    assert_eq!(events.iter().filter(|event| event.name == "messages/*").count(), 2);
    let viewed: Vec<_> = events.iter().filter(|event| event.name == one).collect();
    assert_eq!((viewed.len(), &viewed[0].data["record"]["text"]), (1, &json!("open")));
}

#[tokio::test]
async fn rules_see_the_subscriber_as_its_record_is_now() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let stream = chat.listen(&["teamwork/*", "users/*"], &ada).await;
    chat.create("teamwork", &json!({"team": "red"})).await;
    let path = format!("{}/{}", Chat::records("users"), ada.id);
    chat.host.door().patch(path, &json!({"team": "red"})).by(&ada).send().await.expect(200);
    let seen = chat.create("teamwork", &json!({"team": "red"})).await;
    assert_eq!(stream.told(2).await, [format!("update users/{}", ada.id), format!("create teamwork/{seen}")]);
    assert_eq!(stream.events()[0].data["record"]["email"], "ada@chat.example", "her own address");
}

#[tokio::test]
async fn another_release_changes_the_rules_of_open_streams() {
    let chat = Chat::start().await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    let first = chat.create("public", &json!({"text": "open"})).await;
    assert_eq!(stream.told(1).await, [format!("create public/{first}")]);
    chat.host.deploy(&chat.owner, SLUG, files("team = 'blue'")).await;
    chat.create("public", &json!({"text": "not any more"})).await;
    let second = chat.create("public", &json!({"team": "blue"})).await;
    assert_eq!(stream.told(2).await[1], format!("create public/{second}"));
}

#[tokio::test]
async fn an_agent_hears_what_its_grant_covers_and_its_person_may_see() {
    let chat = Chat::start().await;
    let host = &chat.host;
    let agent = host.agent(&chat.owner, &["data:boards:read", "data:boards:write", "data:lists:read"]).await;
    let stream = Stream::open(host.door(), kanban::SLUG).await;
    stream.subscribe(&["boards/*", "lists/*", "cards/*"], &agent).await;
    let (board, list) = kanban::board(host.door(), &chat.owner).await;
    kanban::card(host.door(), &chat.owner, &list, "not covered").await;
    let second = kanban::create(host.door(), "boards", &json!({"name": "Last"}), &chat.owner).send().await.expect(200);
    let expected = [
        format!("create boards/{board}"),
        format!("create lists/{list}"),
        format!("create boards/{}", kanban::id(&second)),
    ];
    assert_eq!(stream.told(3).await, expected);
}

#[tokio::test]
async fn an_agent_of_an_app_user_hears_as_that_user() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let mut agent = chat.host.new_agent().await;
    agent.obtain_as(&chat.owner, SLUG, &["data:messages:read"], &ada.id).await;
    let (of_ada, of_bob) = (chat.room(&[&ada]).await, chat.room(&[&bob]).await);
    let stream = chat.listen(&["messages/*"], &agent).await;
    chat.say(&of_bob, "for bob").await;
    let heard = chat.say(&of_ada, "for ada").await;
    assert_eq!(stream.told(1).await, [format!("create messages/{heard}")]);
}

#[tokio::test]
async fn a_delete_is_told_to_those_who_might_see_the_record_before_it() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let (room, other) = (chat.room(&[&ada]).await, chat.room(&[&bob]).await);
    let (mine, not_mine) = (chat.say(&room, "bye").await, chat.say(&other, "bye").await);
    let one = format!("messages/{mine}");
    let stream = chat.listen(&["rooms/*", "messages/*", &one], &ada).await;
    // The messages go with their room: the rule of a message asks the room, which is gone by then.
    for room in [&other, &room] {
        chat.delete("rooms", room).send().await.expect(204);
    }
    let mut told = stream.told(3).await;
    told.sort();
    assert_eq!(
        told,
        [format!("delete messages/{mine}"), format!("delete messages/{mine}"), format!("delete rooms/{room}")]
    );
    let record = &stream.events()[0].data["record"];
    assert_eq!(record["text"], "bye", "as it was: {record}");
    assert!(!format!("{:?}", stream.events()).contains(&not_mine));
}
