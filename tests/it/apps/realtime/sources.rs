//! Everything that changes a record is told, however it was done.

use inn_tests::{Papers, Stream, kanban};
use serde_json::json;

use super::{Chat, SLUG};

#[tokio::test]
async fn a_batch_tells_each_of_its_writes_once_it_is_committed() {
    let chat = Chat::start().await;
    let old = chat.create("public", &json!({"text": "old"})).await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    let records = "/api/collections/public/records";
    let batch = |last: &str| {
        let requests = json!({"requests": [
            {"method": "POST", "url": records, "body": {"id": "batched00000001", "text": "new"}},
            {"method": "PATCH", "url": format!("{records}/batched00000001"), "body": {"text": "newer"}},
            {"method": "DELETE", "url": format!("{records}/{last}")},
        ]});
        chat.host.door().post(format!("/apps/{SLUG}/api/batch"), &requests).by(&chat.owner).send()
    };
    batch("notthere0000000").await.expect(400);
    batch(&old).await.expect(200);
    let expected = ["create public/batched00000001", "update public/batched00000001", &format!("delete public/{old}")];
    assert_eq!(stream.told(3).await, expected);
    let texts: Vec<_> = stream.events().iter().map(|event| event.data["record"]["text"].clone()).collect();
    assert_eq!(texts, [json!("new"), json!("newer"), json!("old")]);
}

#[tokio::test]
async fn an_operation_and_an_unset_reference_are_told() {
    let chat = Chat::start().await;
    let door = chat.host.door();
    let (_, list) = kanban::board(door, &chat.owner).await;
    let stream = Stream::open(door, kanban::SLUG).await;
    stream.subscribe(&["cards/*"], &chat.owner).await;
    let body = json!({"title": "Eat chicken", "list": list});
    let card = door.post("/apps/kanban/api/ops/cards.add", &body).by(&chat.owner).send().await.expect(200);
    assert_eq!(stream.told(1).await, [format!("create cards/{}", kanban::id(&card))]);
}

#[tokio::test]
async fn an_account_that_changes_is_told_without_its_secrets() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let owners = chat.listen(&["users/*"], &chat.owner).await;
    let change = json!({"password": "another-one", "passwordConfirm": "another-one", "oldPassword": super::PASSWORD});
    let path = format!("{}/{}", Chat::records("users"), ada.id);
    chat.host.door().patch(path, &change).by(&ada).send().await.expect(200);
    let event = owners.wait(1).await.remove(0);
    assert_eq!(event.what(), format!("update users/{}", ada.id));
    let record = &event.data["record"];
    assert!(record.get("tokenKey").is_none() && record.get("password").is_none(), "{record}");
    let kept = "SELECT count(*) FROM inn.changes WHERE \"row\" ~ 'argon2|tokenKey'";
    assert_eq!(chat.host.count(kept).await, 0);
}
