//! What goes over the wire (PocketBase notes, section F).

use inn_tests::stream::with_options;
use inn_tests::{Papers, Stream};
use serde_json::json;

use super::{Chat, SLUG};

#[tokio::test]
async fn a_stream_greets_with_its_id_in_the_bytes_that_pocketbase_sends() {
    let chat = Chat::start().await;
    let mut answer = chat.host.door().get(format!("/apps/{SLUG}/api/realtime")).open().await;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    assert_eq!(header("content-type"), "text/event-stream");
    assert_eq!(header("cache-control"), "no-store");
    assert_eq!(header("x-accel-buffering"), "no");
    let first = answer.chunk().await.unwrap().unwrap();
    let text = String::from_utf8(first.to_vec()).unwrap();
    let id = text.strip_prefix("id:").unwrap().split('\n').next().unwrap();
    assert_eq!(id.len(), 40);
    assert_eq!(text, format!("id:{id}\nevent:PB_CONNECT\ndata:{{\"clientId\":\"{id}\"}}\n\n"));
}

#[tokio::test]
async fn changes_are_told_with_the_record_as_the_subscriber_may_see_it() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let room = chat.room(&[&ada]).await;
    let shaped = with_options("messages/*", &json!({"query": {"expand": "room", "fields": "text,expand.room.name"}}));
    let stream = chat.listen(&["messages/*", &shaped], &ada).await;
    let owners = chat.listen(&["messages/*"], &chat.owner).await;
    let id = chat.say(&room, "hello").await;
    chat.update("messages", &id, &json!({"text": "changed"})).send().await.expect(200);
    chat.delete("messages", &id).send().await.expect(204);
    let events = stream.wait(6).await;
    let of = |topic: &str| -> Vec<_> {
        let mine = events.iter().filter(|event| event.name == topic);
        mine.map(|event| (event.data["action"].clone(), event.data["record"].clone())).collect()
    };
    let plain = of("messages/*");
    assert_eq!(
        plain.iter().map(|(action, _)| action.as_str().unwrap()).collect::<Vec<_>>(),
        ["create", "update", "delete"]
    );
    let (_, record) = &plain[0];
    assert_eq!(
        (&record["text"], &record["room"], &record["collectionName"]),
        (&json!("hello"), &json!(room), &json!("messages"))
    );
    assert!(record.get("secret").is_none(), "hidden fields are for owners: {record}");
    let own = json!({"text": "changed", "expand": {"room": {"name": "A room"}}});
    assert_eq!(of(&shaped)[1].1, own);
    let seen = owners.wait(3).await;
    assert_eq!(seen[0].data["record"]["secret"], "hidden");
}

#[tokio::test]
async fn one_record_is_heard_of_by_its_id_and_what_is_unsubscribed_is_not() {
    let chat = Chat::start().await;
    let (one, other) =
        (chat.create("public", &json!({"text": "1"})).await, chat.create("public", &json!({"text": "2"})).await);
    let stream = chat.listen(&[&format!("c_public/{one}"), "nothing/*", "any words"], Papers::Nobody).await;
    for id in [&other, &one] {
        chat.update("public", id, &json!({"text": "x"})).send().await.expect(200);
    }
    assert_eq!(stream.told(1).await, [format!("update public/{one}")]);
    stream.subscribe(&["public/*"], Papers::Nobody).await;
    chat.update("public", &other, &json!({"text": "y"})).send().await.expect(200);
    assert_eq!(stream.told(2).await.last(), Some(&format!("update public/{other}")));
    stream.subscribe(&[], Papers::Nobody).await;
    chat.update("public", &other, &json!({"text": "z"})).send().await.expect(200);
    let late = chat.listen(&["public/*"], Papers::Nobody).await;
    chat.update("public", &one, &json!({"text": "z"})).send().await.expect(200);
    assert_eq!(late.told(1).await, [format!("update public/{one}")], "what was committed before is not told");
    assert_eq!(stream.events().len(), 2);
}

#[tokio::test]
async fn a_topic_with_a_filter_tells_what_matches_after_the_change() {
    let chat = Chat::start().await;
    let filtered = with_options("public/*", &json!({"query": {"filter": "count > 5"}}));
    let broken = with_options("public/*", &json!({"query": {"filter": "count >"}}));
    let hidden = with_options("public/*", &json!({"query": {"filter": "@request.auth.id = ''"}}));
    let stream = chat.listen(&[&filtered, &broken, &hidden], Papers::Nobody).await;
    let id = chat.create("public", &json!({"count": 1})).await;
    for count in [9, 2, 7] {
        chat.update("public", &id, &json!({"count": count})).send().await.expect(200);
    }
    let told: Vec<_> = stream.wait(2).await.iter().map(|event| event.data["record"]["count"].clone()).collect();
    assert_eq!(told, [json!(9), json!(7)]);
    assert!(stream.events().iter().all(|event| event.name == filtered));
}

#[tokio::test]
async fn what_is_wrong_with_a_subscription_is_said_as_pocketbase_says_it() {
    let chat = Chat::start().await;
    let post = |body| chat.host.door().post(format!("/apps/{SLUG}/api/realtime"), &body).send();
    let missing = post(json!({})).await.expect(400);
    assert_eq!(missing["data"]["clientId"]["code"], "validation_required");
    let unknown = post(json!({"clientId": "x".repeat(40), "subscriptions": []})).await.expect(404);
    assert_eq!(unknown["message"], "Missing or invalid client id.");
    let stream = chat.stream().await;
    for topics in [vec!["x"; 1001], vec!["x".repeat(2501).leak()]] {
        assert_eq!(stream.try_subscribe(&topics, Papers::Nobody).await.status, 400);
    }
    let heavy: Vec<String> = (0..900).map(|number| format!("{number}{}", "x".repeat(300))).collect();
    let heavy: Vec<&str> = heavy.iter().map(String::as_str).collect();
    assert_eq!(stream.try_subscribe(&heavy, Papers::Nobody).await.status, 400);
    // The stream of one app is nothing to another.
    let mut elsewhere = chat.stream().await;
    "kanban".clone_into(&mut elsewhere.app);
    assert_eq!(elsewhere.try_subscribe(&["cards/*"], &chat.owner).await.status, 404);
}

#[tokio::test]
async fn a_guest_may_sign_in_on_its_stream_and_nobody_may_become_another() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let room = chat.room(&[&ada]).await;
    let stream = chat.listen(&["messages/*", "public/*"], Papers::Nobody).await;
    chat.say(&room, "not for guests").await;
    let public = chat.create("public", &json!({})).await;
    assert_eq!(stream.told(1).await, [format!("create public/{public}")]);
    stream.subscribe(&["messages/*"], &ada).await;
    let heard = chat.say(&room, "for ada").await;
    assert_eq!(stream.told(2).await[1], format!("create messages/{heard}"));
    for other in [Papers::from(&bob), Papers::Nobody] {
        let refused = stream.try_subscribe(&["messages/*"], other).await.refused(403, "forbidden");
        assert_eq!(refused["message"], "The current and the previous request authorization don't match.");
    }
    stream.subscribe(&["messages/*"], &ada).await;
    let heard = chat.say(&room, "still for ada").await;
    assert_eq!(stream.told(3).await[2], format!("create messages/{heard}"));
}

#[tokio::test]
async fn both_calls_of_somebody_verified_are_in_the_register() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let door = chat.host.door();
    let stream = Stream::of(door, SLUG, door.get(format!("/apps/{SLUG}/api/realtime")).by(&ada)).await;
    stream.subscribe(&["public/*"], &ada).await;
    let entries = "SELECT count(*) FROM inn.entries WHERE caller = 'app_user' AND outcome = 'done' AND action IN ('realtime.connect', 'realtime.subscribe')";
    assert_eq!(chat.host.count(entries).await, 2);
    stream.try_subscribe(&["public/*"], Papers::Nobody).await.refused(403, "forbidden");
    let refused = "SELECT count(*) FROM inn.entries WHERE caller IN ('stranger', 'app_user') AND outcome <> 'done'";
    assert_eq!(chat.host.count(refused).await, 0, "what a guest was refused is not written down");
}
