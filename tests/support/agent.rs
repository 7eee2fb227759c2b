//! An agent with its key, its grant and its token.

use inn_grants::SigningKey;
use serde_json::{Value, json};

use crate::call::{Call, Door, Papers};
use crate::host::{PASSWORD, Person};

/// What a person says yes to, beyond the scopes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Consent {
    pub others_requests: bool,
    pub plain_token: bool,
}

#[derive(Clone)]
pub struct AgentClient {
    pub door: Door,
    pub key: SigningKey,
    /// Thumbprint.
    pub id: String,
    /// Empty before [`Self::obtain`].
    pub grant: String,
    pub token: String,
}

impl From<&AgentClient> for Papers {
    fn from(agent: &AgentClient) -> Self {
        Self::Agent { key: agent.key.clone(), token: agent.token.clone(), delegation: None }
    }
}

impl AgentClient {
    /// A key nobody has registered.
    pub fn unknown(door: &Door) -> Self {
        let key = SigningKey::from_seed(rand::random());
        let id = key.public().thumbprint().to_string();
        Self { door: door.clone(), key, id, grant: String::new(), token: String::new() }
    }

    pub async fn register(door: &Door) -> Self {
        let agent = Self::unknown(door);
        agent.registration("Robo").send().await.expect(201);
        agent
    }

    pub fn registration(&self, name: &str) -> Call {
        let body = json!({"publicKey": self.key.public().to_base64url(), "name": name});
        self.door.post("/v1/agents", &body).by(self.key_papers())
    }

    /// The key alone.
    pub fn key_papers(&self) -> Papers {
        Papers::Key(self.key.clone())
    }

    /// Asks for a grant; answers the request.
    pub async fn ask_for_grant(&self, app: &str, scopes: &[&str]) -> Value {
        let body = json!({"app": app, "scopes": scopes, "reason": "to help"});
        self.door.post("/v1/grant-requests", &body).by(self.key_papers()).send().await.expect(201)
    }

    /// Asks, is granted everything, takes a token.
    pub async fn obtain(&mut self, person: &Person, app: &str, scopes: &[&str], consent: &Consent) {
        let request = self.ask_for_grant(app, scopes).await;
        let id = request["id"].as_str().expect("an id");
        let yes = json!({
            "password": PASSWORD,
            "othersRequests": consent.others_requests,
            "plainToken": consent.plain_token,
        });
        let grant =
            self.door.post(format!("/v1/grant-requests/{id}/approve"), &yes).by(person).send().await.expect(201);
        grant["id"].as_str().expect("an id").clone_into(&mut self.grant);
        self.token = self.new_token().await;
    }

    /// The same for an app with users of its own: the agent acts as this record of theirs.
    pub async fn obtain_as(&mut self, owner: &Person, app: &str, scopes: &[&str], record: &str) {
        let request = self.ask_for_grant(app, scopes).await;
        let id = request["id"].as_str().expect("an id");
        let yes = json!({"password": PASSWORD, "appRecord": record});
        let grant = self.door.post(format!("/v1/grant-requests/{id}/approve"), &yes).by(owner).send().await.expect(201);
        grant["id"].as_str().expect("an id").clone_into(&mut self.grant);
        self.token = self.new_token().await;
    }

    pub async fn new_token(&self) -> String {
        let answer = self.take_token().send().await.expect(200);
        answer["token"].as_str().expect("a token").to_owned()
    }

    pub fn take_token(&self) -> Call {
        self.door.post("/v1/token", &json!({"grant": self.grant})).by(self.key_papers())
    }

    /// A call of the queue, signed with the key alone.
    pub fn queue(&self, path: &str, body: &Value) -> Call {
        self.door.post(format!("/v1/requests/{path}"), body).by(self.key_papers())
    }

    /// Claims at most one request, without waiting.
    pub async fn claim(&self) -> Option<Value> {
        let answer = self.queue("claim", &json!({})).send().await.expect(200);
        answer["items"].as_array().expect("a list").first().cloned()
    }
}
