//! `/api/realtime`: what is told to whom, and until when.

mod ending;
mod limits;
mod nodes;
mod protocol;
mod resume;
mod rules;
mod sources;

use inn_tests::{Call, Papers, Person, Settings, Stream, TestHost, bundle, kanban};
use serde_json::{Value, json};

const SLUG: &str = "chat";
const PASSWORD: &str = "password123";

/// A multi-user app: rooms with members, and messages in them for those members.
struct Chat {
    host: TestHost,
    owner: Person,
}

/// Somebody with an account of the app.
#[derive(Clone)]
struct Account {
    id: String,
    token: String,
}

impl From<&Account> for Papers {
    fn from(account: &Account) -> Self {
        Self::Bearer(account.token.clone())
    }
}

impl Chat {
    async fn start() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let host = TestHost::with(change).await;
        let owner = host.owner().await;
        host.deploy(&owner, SLUG, files("")).await;
        Self { host, owner }
    }

    fn records(entity: &str) -> String {
        format!("/apps/{SLUG}/api/collections/{entity}/records")
    }

    async fn sign_up(&self, name: &str) -> Account {
        let email = format!("{name}@chat.example");
        let body = json!({"email": email, "password": PASSWORD, "passwordConfirm": PASSWORD, "name": name});
        let record = self.host.door().post(Self::records("users"), &body).send().await.expect(200);
        self.sign_in(&kanban::id(&record), &email).await
    }

    async fn sign_in(&self, id: &str, email: &str) -> Account {
        let path = format!("/apps/{SLUG}/api/collections/users/auth-with-password");
        let body = json!({"identity": email, "password": PASSWORD});
        let answer = self.host.door().post(path, &body).send().await.expect(200);
        Account { id: id.to_owned(), token: answer["token"].as_str().expect("a token").to_owned() }
    }

    async fn create(&self, entity: &str, body: &Value) -> String {
        let created = self.host.door().post(Self::records(entity), body).by(&self.owner).send().await.expect(200);
        kanban::id(&created)
    }

    fn update(&self, entity: &str, id: &str, body: &Value) -> Call {
        self.host.door().patch(format!("{}/{id}", Self::records(entity)), body).by(&self.owner)
    }

    fn delete(&self, entity: &str, id: &str) -> Call {
        self.host.door().delete(format!("{}/{id}", Self::records(entity))).by(&self.owner)
    }

    async fn room(&self, members: &[&Account]) -> String {
        let members: Vec<&str> = members.iter().map(|member| member.id.as_str()).collect();
        self.create("rooms", &json!({"name": "A room", "members": members})).await
    }

    async fn say(&self, room: &str, text: &str) -> String {
        self.create("messages", &json!({"room": room, "text": text, "secret": "hidden"})).await
    }

    async fn stream(&self) -> Stream {
        Stream::open(self.host.door(), SLUG).await
    }

    /// A stream of this caller about these topics.
    async fn listen(&self, topics: &[&str], by: impl Into<Papers>) -> Stream {
        let stream = self.stream().await;
        stream.subscribe(topics, by).await;
        stream
    }
}

/// `rule` is the list rule of `public`.
fn files(rule: &str) -> bundle::Files {
    let own = "id = @request.auth.id";
    let member = "room.members.id ?= @request.auth.id";
    let text = |id: &str, name: &str| json!({"id": id, "name": name, "type": "text"});
    let schema = json!([
        {"id": "_pb_users_auth_", "name": "users", "type": "auth", "listRule": own, "viewRule": own, "createRule": "",
            "updateRule": own, "deleteRule": own, "fields": [text("t1", "name"), text("t2", "team")]},
        {"id": "c_rooms", "name": "rooms", "type": "base", "listRule": "members.id ?= @request.auth.id",
            "viewRule": "members.id ?= @request.auth.id", "createRule": null, "updateRule": null, "deleteRule": null,
            "fields": [text("t3", "name"), {"id": "r1", "name": "members", "type": "relation",
                "collectionId": "_pb_users_auth_", "maxSelect": 99}]},
        {"id": "c_messages", "name": "messages", "type": "base", "listRule": member, "viewRule": format!("{member} && text != 'private'"),
            "createRule": null, "updateRule": null, "deleteRule": null,
            "fields": [text("t4", "text"), {"id": "t5", "name": "secret", "type": "text", "hidden": true},
                {"id": "r2", "name": "room", "type": "relation", "collectionId": "c_rooms", "maxSelect": 1, "cascadeDelete": true}]},
        {"id": "c_public", "name": "public", "type": "base", "listRule": rule, "viewRule": "", "createRule": "",
            "updateRule": "", "deleteRule": "", "fields": [text("t6", "text"), text("t7", "team"), {"id": "n1", "name": "count", "type": "number"}]},
        {"id": "c_teams", "name": "teamwork", "type": "base", "listRule": "team = @request.auth.team", "viewRule": null,
            "createRule": null, "updateRule": null, "deleteRule": null, "fields": [text("t8", "team")]},
    ]);
    let manifest = json!({
        "id": "chat", "name": "Chat", "description": "Rooms to talk in.", "version": "1.0.0", "livingUIVersion": 2,
        "createdAt": "2026-11-30T00:00:00Z", "authMode": "multi-user", "port": 3100, "pbVersion": "0.39.7",
        "pipeline": {"install": "", "build": "", "start": "", "health": "/api/health"},
    });
    let pages = |value: &Value| value.to_string().into_bytes();
    bundle::Files::from([
        ("manifest.json".to_owned(), pages(&manifest)),
        ("operations.json".to_owned(), pages(&json!({"opsVersion": 1, "operations": []}))),
        ("pb/pb_schema.json".to_owned(), pages(&schema)),
    ])
}
