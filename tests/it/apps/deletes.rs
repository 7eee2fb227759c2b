//! What a delete takes along, empties, or is stopped by (`reference` notes on PocketBase, section D).

use inn_tests::{Person, TestHost, bundle};
use serde_json::{Value, json};

const SLUG: &str = "shelves";

struct Shelves {
    host: TestHost,
    owner: Person,
}

impl Shelves {
    /// Tags, and everything that may point to them: single and several, cascading, required, unique.
    async fn new() -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        let rules = |mut collection: Value| {
            for rule in ["listRule", "viewRule", "createRule", "updateRule", "deleteRule"] {
                collection[rule] = "".into();
            }
            collection
        };
        let to = |name: &str, field: &str, max: u32, cascade: bool, required: bool| {
            rules(json!({"id": format!("c_{name}"), "name": name, "type": "base", "fields": [
                {"id": format!("{name}1"), "name": field, "type": "relation", "collectionId": "c_tags", "maxSelect": max,
                 "cascadeDelete": cascade, "required": required},
                {"id": format!("{name}2"), "name": "changed", "type": "autodate", "onCreate": true, "onUpdate": true},
            ]}))
        };
        let mut unique = to("slots", "tag", 1, false, false);
        unique["indexes"] = json!(["CREATE UNIQUE INDEX `one_tag` ON `slots` (`tag`)"]);
        let mut deep = to("leaves", "tag", 1, false, false);
        deep["fields"][0]["collectionId"] = "c_taken".into();
        deep["fields"][0]["cascadeDelete"] = true.into();
        let collections = json!([
            rules(json!({"id": "c_tags", "name": "tags", "type": "base", "fields": [
                {"id": "t1", "name": "name", "type": "text"},
            ]})),
            to("plain", "tag", 1, false, false),
            to("lists", "tags", 5, false, false),
            to("taken", "tag", 1, true, false),
            to("several", "tags", 5, true, false),
            to("needing", "tag", 1, false, true),
            to("wanting", "tags", 5, false, true),
            unique,
            deep,
        ]);
        host.deploy(&owner, SLUG, bundle::project(SLUG, "none", &collections)).await;
        Self { host, owner }
    }

    async fn create(&self, entity: &str, id: &str, mut body: Value) {
        body["id"] = format!("{id:0<15}").into();
        let path = format!("/apps/{SLUG}/api/collections/{entity}/records");
        self.host.door().post(path, &body).by(&self.owner).send().await.expect(200);
    }

    async fn tags(&self) {
        for tag in ["t1", "t2"] {
            self.create("tags", tag, json!({"name": tag})).await;
        }
    }

    async fn get(&self, entity: &str, id: &str) -> inn_tests::Reply {
        let path = format!("/apps/{SLUG}/api/collections/{entity}/records/{id:0<15}");
        self.host.door().get(path).by(&self.owner).send().await
    }

    async fn delete(&self, entity: &str, id: &str) -> inn_tests::Reply {
        let path = format!("/apps/{SLUG}/api/collections/{entity}/records/{id:0<15}");
        self.host.door().delete(path).by(&self.owner).send().await
    }
}

const T1: &str = "t10000000000000";
const T2: &str = "t20000000000000";
const REFUSED: &str =
    "Failed to delete record. Make sure that the record is not part of a required relation reference.";

#[tokio::test]
async fn what_points_to_a_deleted_record_is_emptied_or_goes_too() {
    let it = Shelves::new().await;
    it.tags().await;
    it.create("plain", "p", json!({"tag": T1})).await;
    it.create("lists", "l", json!({"tags": [T2, T1]})).await;
    it.create("taken", "a", json!({"tag": T1})).await;
    it.create("taken", "b", json!({"tag": T2})).await;
    it.create("leaves", "x", json!({"tag": "a00000000000000"})).await;
    it.create("several", "s", json!({"tags": [T1]})).await;
    it.create("several", "r", json!({"tags": [T1, T2]})).await;
    it.create("wanting", "w", json!({"tags": [T1, T2]})).await;
    let before = it.get("plain", "p").await.expect(200);
    it.delete("tags", "t1").await.expect(204);
    let after = it.get("plain", "p").await.expect(200);
    assert_eq!(after["tag"], "");
    assert_ne!(after["changed"], before["changed"], "that is a change like any other");
    assert_eq!(it.get("lists", "l").await.expect(200)["tags"], json!([T2]));
    assert_eq!(it.get("several", "r").await.expect(200)["tags"], json!([T2]));
    assert_eq!(it.get("wanting", "w").await.expect(200)["tags"], json!([T2]), "something is left of what is required");
    it.get("taken", "b").await.expect(200);
    for (entity, id) in [("taken", "a"), ("several", "s"), ("leaves", "x"), ("tags", "t1")] {
        it.get(entity, id).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn a_required_reference_that_would_be_empty_stops_the_delete() {
    let it = Shelves::new().await;
    it.tags().await;
    it.create("taken", "a", json!({"tag": T1})).await;
    it.create("wanting", "w", json!({"tags": [T1]})).await;
    it.create("needing", "n", json!({"tag": T2})).await;
    for (tag, place) in [("t1", "wanting.tags"), ("t2", "needing.tag")] {
        let refused = it.delete("tags", tag).await.refused(400, "record_referenced");
        assert_eq!((&refused["message"], &refused["data"]), (&json!(REFUSED), &json!({})));
        assert!(refused["whoCanFix"].as_str().is_some_and(|who| who.contains(place)), "{refused}");
    }
    it.get("taken", "a").await.expect(200);
    it.get("tags", "t1").await.expect(200);
}

#[tokio::test]
async fn an_emptied_reference_that_is_not_unique_stops_the_delete() {
    let it = Shelves::new().await;
    it.tags().await;
    it.create("slots", "a", json!({"tag": ""})).await;
    it.create("slots", "b", json!({"tag": T1})).await;
    let refused = it.delete("tags", "t1").await.refused(400, "record_referenced");
    assert_eq!(refused["message"], REFUSED);
    let expected = json!({"tag": {"code": "validation_not_unique", "message": "Value must be unique."}});
    assert_eq!(refused["data"], expected);
    assert_eq!(it.get("slots", "b").await.expect(200)["tag"], T1);
}
