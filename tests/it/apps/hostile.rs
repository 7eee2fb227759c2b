//! What nobody sends by mistake: input that is too large, too deep, no text, no number, or about what may not be seen.

mod accounts;
mod fuzz;
mod refusals;
mod unseen;
mod values;

use inn_tests::{Call, Person, TestHost, bundle};
use serde_json::{Value, json};

const SLUG: &str = "vault";

/// An app with something to hide: fields, whole collections, and rules that tell people apart.
struct Vault {
    host: TestHost,
    owner: Person,
}

impl Vault {
    async fn open() -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        host.deploy(&owner, SLUG, bundle::project(SLUG, "multi-user", &collections())).await;
        Self { host, owner }
    }

    fn records(entity: &str) -> String {
        format!("/apps/{SLUG}/api/collections/{entity}/records")
    }

    async fn create(&self, entity: &str, body: &Value) -> String {
        let made = self.host.door().post(Self::records(entity), body).by(&self.owner).send().await.expect(200);
        made["id"].as_str().unwrap().to_owned()
    }

    /// A list asked for by nobody in particular.
    fn list(&self, entity: &str, pairs: &[(&str, &str)]) -> Call {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.host.door().get(format!("{}?{query}", Self::records(entity)))
    }

    async fn total(&self, entity: &str) -> Value {
        self.list(entity, &[]).by(&self.owner).send().await.expect(200)["totalItems"].clone()
    }
}

fn collections() -> Value {
    let text = |id: &str, name: &str| json!({"id": id, "name": name, "type": "text"});
    let open = |id: &str, name: &str, fields: Value| {
        json!({"id": id, "name": name, "type": "base", "listRule": "", "viewRule": "", "createRule": "", "updateRule": "",
            "deleteRule": "", "fields": fields})
    };
    let mine = "id = @request.auth.id";
    let mut locked = open("c_locked", "locked", json!([text("l1", "name")]));
    for rule in ["listRule", "viewRule", "createRule", "updateRule", "deleteRule"] {
        locked[rule] = Value::Null;
    }
    let mut own = open("c_own", "own", json!([text("o1", "name")]));
    for rule in ["viewRule", "createRule", "updateRule", "deleteRule"] {
        own[rule] = json!("name = 'open'");
    }
    let relation = |id: &str, name: &str, to: &str| json!({"id": id, "name": name, "type": "relation", "collectionId": to, "maxSelect": 1});
    json!([
        {"id": "_pb_users_auth_", "name": "users", "type": "auth", "listRule": mine, "viewRule": mine, "createRule": "",
            "updateRule": mine, "deleteRule": mine, "authRule": "name != 'banned'", "fields": [text("u1", "name")]},
        {"id": "c_staff", "name": "staff", "type": "auth", "listRule": null, "viewRule": null, "createRule": "",
            "updateRule": null, "deleteRule": null, "passwordAuth": {"enabled": false, "identityFields": ["email"]}, "fields": []},
        locked,
        own,
        open("c_notes", "notes", json!([
            text("n1", "title"),
            {"id": "n2", "name": "pin", "type": "text", "hidden": true},
            {"id": "n3", "name": "count", "type": "number"},
            {"id": "n4", "name": "whole", "type": "number", "onlyInt": true},
            {"id": "n5", "name": "data", "type": "json"},
            {"id": "n6", "name": "tags", "type": "select", "values": ["a", "b"], "maxSelect": 2},
            {"id": "n7", "name": "place", "type": "geoPoint"},
            relation("n8", "lock", "c_locked"),
            relation("n9", "user", "_pb_users_auth_"),
        ])),
        {"id": "c_titles", "name": "titles", "type": "view", "listRule": "", "viewRule": "",
            "viewQuery": "SELECT id, title FROM notes"},
    ])
}
