//! Several nodes on one database.

use inn_tests::{Papers, Stream};
use serde_json::json;

use super::{Chat, SLUG};

#[tokio::test]
async fn a_change_on_one_node_is_told_on_every_node_and_a_stream_may_go_on_at_another() {
    let mut chat = Chat::start().await;
    chat.host.add_node(|_| {}).await;
    let [first, second] = chat.host.doors() else { panic!("two nodes") };
    let (here, there) = (Stream::open(first, SLUG).await, Stream::open(second, SLUG).await);
    for stream in [&here, &there] {
        stream.subscribe(&["public/*"], Papers::Nobody).await;
    }
    let say = async |door: &inn_tests::Door| {
        let reply = door.post(Chat::records("public"), &json!({"text": "x"})).by(&chat.owner).send().await;
        format!("create public/{}", inn_tests::kanban::id(&reply.expect(200)))
    };
    // Without Redis the nodes do not wake each other: they look.
    let all = [say(first).await, say(second).await];
    assert_eq!(here.told(2).await, all);
    assert_eq!(there.told(2).await, all);
    let id = here.events()[0].id.clone();
    let on = Stream::resume(second, SLUG, &id).await;
    on.subscribe(&["public/*"], Papers::Nobody).await;
    assert_eq!(on.told(2).await[1], all[1]);
}

#[tokio::test]
async fn revoking_on_one_node_ends_the_stream_on_another() {
    let mut chat = Chat::start().await;
    chat.host.add_node(|_| {}).await;
    let ada = chat.sign_up("ada").await;
    let [first, second] = chat.host.doors() else { panic!("two nodes") };
    let stream = Stream::open(second, SLUG).await;
    stream.subscribe(&["public/*"], &ada).await;
    let path = format!("/apps/{SLUG}/api/collections/users/sign-out");
    first.post(path, &json!({})).by(&ada).send().await.expect(204);
    stream.wait_for_end().await;
}
