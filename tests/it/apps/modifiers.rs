//! `field+`, `+field`, `field-` and what the store makes up itself (`reference` notes on PocketBase, section C).

use inn_tests::{Person, TestHost, bundle};
use serde_json::{Value, json};

const SLUG: &str = "counters";

struct Counters {
    host: TestHost,
    owner: Person,
}

impl Counters {
    async fn new() -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        let collections = json!([{
            "id": "c_counts", "name": "counts", "type": "base",
            "listRule": "", "viewRule": "", "createRule": "", "updateRule": "", "deleteRule": "",
            "fields": [
                {"id": "f0", "name": "id", "type": "text", "primaryKey": true, "pattern": "^[A-Z]{2}-[0-9]{4}$",
                 "autogeneratePattern": "[A-Z]{2}-[0-9]{4}", "max": 20},
                {"id": "f1", "name": "n", "type": "number", "onlyInt": true, "max": 1000},
                {"id": "f2", "name": "tags", "type": "select", "values": ["a", "b", "c"], "maxSelect": 3},
                {"id": "f3", "name": "code", "type": "text", "autogeneratePattern": "[a-z]{20}"},
                {"id": "f4", "name": "key", "type": "text", "autogeneratePattern": "[a-z]{20}"},
            ],
        }]);
        host.deploy(&owner, SLUG, bundle::project(SLUG, "none", &collections)).await;
        Self { host, owner }
    }

    async fn create(&self, body: Value) -> Value {
        let path = format!("/apps/{SLUG}/api/collections/counts/records");
        self.host.door().post(path, &body).by(&self.owner).send().await.expect(200)
    }

    async fn patch(&self, id: &str, body: Value) -> inn_tests::Reply {
        let path = format!("/apps/{SLUG}/api/collections/counts/records/{id}");
        self.host.door().patch(path, &body).by(&self.owner).send().await
    }
}

#[tokio::test]
async fn many_additions_at_once_all_count() {
    let it = Counters::new().await;
    it.create(json!({"id": "AA-0001"})).await;
    let adders = (0..8).map(|_| async {
        for _ in 0..10 {
            it.patch("AA-0001", json!({"n+": 1})).await.expect(200);
        }
    });
    futures_util::future::join_all(adders).await;
    assert_eq!(it.patch("AA-0001", json!({"n-": 1})).await.expect(200)["n"], 79, "8 times 10, less one");
}

#[tokio::test]
async fn values_are_changed_relative_to_the_stored_ones() {
    let it = Counters::new().await;
    it.create(json!({"id": "AA-0001", "n": 5, "tags": ["a", "b"]})).await;
    for (body, field, expected) in [
        (json!({"n": 1, "n+": 5}), "n", json!(6)),
        (json!({"n+": 2, "n-": 3}), "n", json!(5)),
        (json!({"tags+": "c"}), "tags", json!(["a", "b", "c"])),
        (json!({"+tags": "c"}), "tags", json!(["c", "a", "b"])),
        (json!({"tags-": ["a", "x"]}), "tags", json!(["c", "b"])),
        (json!({"tags+": ["b", "a"]}), "tags", json!(["c", "b", "a"])),
        (json!({"tags": ["a"], "tags+": "b"}), "tags", json!(["a", "b"])),
        (json!({"tags-": ["a", "b"]}), "tags", json!([])),
    ] {
        assert_eq!(it.patch("AA-0001", body.clone()).await.expect(200)[field], expected, "{body}");
    }
    for (body, code) in [
        (json!({"n+": 996}), "validation_max_number_constraint"),
        (json!({"n+": 0.5}), "validation_only_int_constraint"),
        (json!({"tags+": "x"}), "validation_invalid_value"),
    ] {
        let refused = it.patch("AA-0001", body.clone()).await.expect(400);
        let field = if body.get("n+").is_some() { "n" } else { "tags" };
        assert_eq!(refused["data"][field]["code"], code, "{body}: {refused}");
    }
}

#[tokio::test]
async fn a_record_that_is_not_there_is_told_before_what_is_wrong_with_the_body() {
    let it = Counters::new().await;
    for body in [json!({"tags+": "a"}), json!({"n": 2000}), json!({"n": "many"}), json!({"tags": ["x"]}), json!({})] {
        it.patch("ZZ-9999", body).await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn ids_and_texts_are_made_up_as_the_app_says() {
    let it = Counters::new().await;
    let one = it.create(json!({"code:autogenerate": "X-"})).await;
    let id = one["id"].as_str().unwrap();
    assert!(id.len() == 7 && id.as_bytes()[2] == b'-', "{id}");
    let (code, key) = (one["code"].as_str().unwrap(), one["key"].as_str().unwrap());
    assert!(code.starts_with("X-") && code.len() == 22 && key.len() == 20, "{code} {key}");
    assert_ne!(code.strip_prefix("X-"), Some(key), "one does not give the other away");
    let again = it.patch(id, json!({"code:autogenerate": "Y-"})).await.expect(200);
    assert!(again["code"].as_str().unwrap().starts_with("Y-") && again["code"] != one["code"]);
    assert_eq!(again["key"], one["key"]);
    it.create(json!({"id": "AB-1234"})).await;
    let path = format!("/apps/{SLUG}/api/collections/counts/records");
    for (own, code) in [("ab-1234", "validation_invalid_format"), ("AB-1234", "validation_not_unique")] {
        let reply = it.host.door().post(&path, &json!({"id": own})).by(&it.owner).send().await;
        assert_eq!(reply.expect(400)["data"]["id"]["code"], code, "{own}");
    }
}
