use inn_tests::{TestHost, kanban, snapshot};
use serde_json::json;

#[tokio::test]
async fn a_receipt_reads_the_same_for_ever() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let (_, list) = kanban::board(door, &agent).await;
    let card =
        json!({"title": "Eat chicken", "list": list, "due_date": "2026-07-31 00:00:00.000Z", "priority": "high"});
    let created = kanban::create(door, "cards", &card, &agent).send().await;
    let record = created.expect(200);
    let link = created.header("innkeeper-receipt").expect("a link to the receipt").to_owned();
    let path = link.strip_prefix(&door.origin()).expect("on the platform").to_owned();
    assert_eq!(path, format!("/v1/receipts/{}", created.call_id()));

    let first = door.get(&path).by(&owner).send().await;
    insta::assert_snapshot!(snapshot::of(&first, door));
    let by_agent = door.get(&path).by(&agent).send().await;
    assert_eq!(first.body, by_agent.body, "the same bytes for whoever may read it");

    // Later changes to the record, its list and the app do not change what was received.
    let rename = json!({"title": "Eat tofu"});
    door.patch(kanban::record("cards", &kanban::id(&record)), &rename).by(&owner).send().await.expect(200);
    door.patch(kanban::record("lists", &list), &json!({"title": "Done"})).by(&owner).send().await.expect(200);
    door.delete(format!("/v1/apps/{}", kanban::SLUG)).by(&owner).send().await.expect(200);
    assert_eq!(door.get(&path).by(&owner).send().await.body, first.body);
}

#[tokio::test]
async fn receipts_are_for_those_they_concern() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (agent, other) = (host.agent(&owner, kanban::SCOPES).await, host.agent(&owner, kanban::SCOPES).await);
    let door = host.door();
    let created = kanban::create(door, "boards", &json!({"name": "x"}), &agent).send().await;
    let path = format!("/v1/receipts/{}", created.call_id());
    door.get(&path).by(&agent).send().await.expect(200);
    door.get(&path).by(&other).send().await.refused(404, "not_found");
    door.get(&path).by(&host.editor().await).send().await.refused(404, "not_found");
    door.get(&path).by(&host.rival().await).send().await.refused(404, "not_found");
    door.get(&path).send().await.refused(401, "unauthenticated");
    // A read and a refusal leave an entry and no receipt.
    let read = door.get(kanban::records("boards")).by(&agent).send().await;
    door.get(format!("/v1/receipts/{}", read.call_id())).by(&owner).send().await.refused(404, "not_found");
    door.get("/v1/receipts/nonsense").by(&owner).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn every_kind_of_write_has_a_sentence_for_people() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (board, list) = kanban::board(door, &owner).await;
    let card = kanban::card(door, &owner, &list, "Eat chicken").await;
    let member = json!({"email": "viewer@acme.example", "role": "editor"});
    let calls = [
        (
            "update",
            door.patch(kanban::record("cards", &card), &json!({"title": "Eat tofu", "priority": "low"}))
                .by(&owner)
                .send()
                .await,
        ),
        ("operation", door.post("/apps/kanban/api/ops/cards.archive", &json!({"id": card})).by(&owner).send().await),
        ("delete", door.delete(kanban::record("boards", &board)).by(&owner).send().await),
        ("member", door.post("/v1/members", &member).by(&owner).send().await),
    ];
    let mut sentences = Vec::new();
    for (what, reply) in calls {
        assert!(reply.status < 300, "{what}: {}", reply.text());
        let receipt = door.get(format!("/v1/receipts/{}", reply.call_id())).by(&owner).send().await.expect(200);
        sentences.push(format!(
            "{what}: {} / {}",
            receipt["action"].as_str().unwrap(),
            receipt["sentence"].as_str().unwrap()
        ));
    }
    insta::assert_snapshot!(sentences.join("\n"));
}
