//! Sign-in of an app's own users: `/api/collections/{entity}/auth-…`, `request-…`, `confirm-…`.

mod agents;
mod ending;
mod mails;
mod otp;
mod owners;
mod signing_in;
mod signing_up;

use inn_tests::{Call, Papers, Person, Reply, Settings, TestHost, bundle, kanban, until};
use serde_json::{Value, json};

const SLUG: &str = "club";
const PASSWORD: &str = "password123";

/// A multi-user app with `users`, whose options a test may change, and `notes` that belong to them.
struct Club {
    host: TestHost,
    owner: Person,
}

/// Somebody with an account of the app.
struct Account {
    id: String,
    email: String,
    token: String,
}

impl From<&Account> for Papers {
    fn from(account: &Account) -> Self {
        Self::Bearer(account.token.clone())
    }
}

impl Club {
    async fn start() -> Self {
        Self::with(json!({}), |_| {}).await
    }

    async fn with(options: Value, change: impl FnOnce(&mut Settings)) -> Self {
        let host = TestHost::with(change).await;
        let owner = host.owner().await;
        host.deploy(&owner, SLUG, files(&options)).await;
        Self { host, owner }
    }

    fn path(path: &str) -> String {
        format!("/apps/{SLUG}/api/collections/{path}")
    }

    fn post(&self, path: &str, body: &Value) -> Call {
        self.host.door().post(Self::path(path), body)
    }

    fn get(&self, path: &str) -> Call {
        self.host.door().get(Self::path(path))
    }

    async fn sign_up(&self, name: &str) -> Account {
        let email = format!("{name}@club.example");
        let body = json!({"email": email, "password": PASSWORD, "passwordConfirm": PASSWORD, "name": name});
        let record = self.post("users/records", &body).send().await.expect(200);
        let id = kanban::id(&record);
        let answer = self.sign_in(&email, PASSWORD).await.expect(200);
        assert_eq!(answer["record"]["id"], id.as_str());
        Account { id, email, token: token(&answer) }
    }

    async fn sign_in(&self, identity: &str, password: &str) -> Reply {
        let body = json!({"identity": identity, "password": password});
        self.post("users/auth-with-password", &body).send().await
    }

    /// Status of looking at one's own record with these papers.
    async fn looks(&self, account: &Account) -> u16 {
        self.get(&format!("users/records/{}", account.id)).by(account).send().await.status
    }

    /// The newest mail to this address, once it was sent; a development host shows it.
    async fn mail(&self, to: &str, about: &str) -> String {
        until("a mail", || async {
            let page = self.host.door().get("/mail").by(Papers::Cookie(self.owner.token.clone())).send().await;
            let text = page.text();
            let found = text.split("<article").skip(1).find(|mail| mail.contains(to) && mail.contains(about));
            found.map(str::to_owned)
        })
        .await
    }
}

fn token(answer: &Value) -> String {
    answer["token"].as_str().expect("a token").to_owned()
}

/// The token in the link of a mail.
fn linked(mail: &str) -> String {
    let (_, rest) = mail.split_once("#/auth/").expect("a link");
    let token = rest.split_once('/').expect("a token").1;
    token.chars().take_while(|c| c.is_ascii_alphanumeric() || "._-".contains(*c)).collect()
}

fn files(options: &Value) -> bundle::Files {
    let own = "id = @request.auth.id";
    let mut users = json!({
        "id": "_pb_users_auth_", "name": "users", "type": "auth", "listRule": own, "viewRule": own, "createRule": "",
        "updateRule": own, "deleteRule": own,
        "fields": [{"id": "text1", "name": "name", "type": "text"}, {"id": "text2", "name": "nick", "type": "text"}],
        "indexes": ["CREATE UNIQUE INDEX idx_nick ON users (nick) WHERE nick != ''"],
    });
    for (key, value) in options.as_object().expect("an object") {
        users[key] = value.clone();
    }
    let mine = "owner = @request.auth.id && @request.auth.id != ''";
    let notes = json!({
        "id": "notes", "name": "notes", "type": "base", "listRule": mine, "viewRule": mine, "createRule": mine,
        "updateRule": mine, "deleteRule": mine,
        "fields": [
            {"id": "rel1", "name": "owner", "type": "relation", "collectionId": "_pb_users_auth_", "maxSelect": 1},
            {"id": "text3", "name": "text", "type": "text"},
        ],
    });
    let manifest = json!({
        "id": "club", "name": "The Club", "description": "With members of its own.", "version": "1.0.0",
        "livingUIVersion": 2, "createdAt": "2026-11-30T00:00:00Z", "authMode": "multi-user", "port": 3100,
        "pbVersion": "0.39.7", "pipeline": {"install": "", "build": "", "start": "", "health": "/api/health"},
        "innkeeper": {"capabilities": [{"name": "sum-up", "sentence": "Sum it up", "input": {}, "result": {}}]},
    });
    let pages = |value: &Value| value.to_string().into_bytes();
    bundle::Files::from([
        ("manifest.json".to_owned(), pages(&manifest)),
        ("operations.json".to_owned(), pages(&json!({"opsVersion": 1, "operations": []}))),
        ("pb/pb_schema.json".to_owned(), pages(&json!([users, notes]))),
    ])
}
