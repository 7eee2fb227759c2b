//! What an agent can do with its key, and with the tokens its grants give it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use inn_grants::SigningKey;
use inn_protocol::AgentId;
use inn_protocol::scope::Scope;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::Client;
use crate::error::ClientError;
use crate::face::AppFace;
use crate::outgoing::{Outgoing, segment};
use crate::papers::Papers;
use crate::token::{Token, TokenCache};

type Answered = Result<Answer, ClientError>;

/// Room for an answer after the longest wait a claim may ask for.
const CLAIM_SLACK: Duration = Duration::from_secs(15);

/// An agent: a key, the platform, and the tokens taken so far.
#[derive(Debug, Clone)]
pub struct Agent {
    client: Client,
    key: SigningKey,
    tokens: TokenCache,
}

impl Agent {
    pub(crate) fn new(client: Client, key: SigningKey) -> Self {
        Self { client, key, tokens: TokenCache::default() }
    }

    pub fn with_tokens(mut self, tokens: TokenCache) -> Self {
        self.tokens = tokens;
        self
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn tokens(&self) -> &TokenCache {
        &self.tokens
    }

    /// The agent's id: the thumbprint of its key.
    pub fn id(&self) -> AgentId {
        self.key.public().thumbprint()
    }

    /// An app, as this agent under one grant.
    pub fn app(&self, slug: &str, grant: &str) -> AppFace {
        AppFace::agent(self.clone(), slug, grant)
    }

    /// A call signed with the key alone.
    pub async fn call(&self, outgoing: &Outgoing) -> Answered {
        self.client.call(outgoing, &Papers::Key(self.key.clone())).await
    }

    /// A call signed and with a token of the grant. A token that has ended meanwhile is renewed once.
    pub async fn call_under(&self, grant: &str, outgoing: &Outgoing) -> Answered {
        let papers = self.papers(grant).await?;
        match self.client.call(outgoing, &papers).await {
            Err(ClientError::Refused(body)) if matches!(body.code.as_str(), "token_expired" | "token_revoked") => {
                self.tokens.forget(grant);
                let Ok(papers) = self.papers(grant).await else { return Err(ClientError::Refused(body)) };
                self.client.call(outgoing, &papers).await
            }
            other => other,
        }
    }

    /// Papers of this agent under a grant, with a token from the cache or a new one.
    pub async fn papers(&self, grant: &str) -> Result<Papers, ClientError> {
        let token = self.token(grant).await?;
        Ok(Papers::Agent { key: self.key.clone(), token: Arc::from(token.token), delegation: None })
    }

    /// Papers with the key alone.
    pub fn key_papers(&self) -> Papers {
        Papers::Key(self.key.clone())
    }

    pub async fn register(&self, name: &str) -> Answered {
        let body = json!({"publicKey": self.key.public().to_base64url(), "name": name});
        self.call(&Outgoing::post("/v1/agents", &body)).await
    }

    /// Asks for a grant: the answer has the link and the code to show to the person.
    pub async fn request_grant(&self, app: &str, scopes: &[String], reason: &str) -> Answered {
        let body = json!({"app": app, "scopes": scopes, "reason": reason});
        self.call(&Outgoing::post("/v1/grant-requests", &body)).await
    }

    /// What became of one's own grant request.
    pub async fn grant_request(&self, id: &str) -> Answered {
        self.call(&Outgoing::get(format!("/v1/grant-requests/{}", segment(id)))).await
    }

    /// A token of the grant with some time left, from the cache or taken now by proof of possession.
    pub async fn token(&self, grant: &str) -> Result<Token, ClientError> {
        if let Some(token) = self.tokens.fresh(grant, self.client.now()) {
            return Ok(token);
        }
        self.new_token(grant).await
    }

    /// Takes a new token, whatever the cache has.
    pub async fn new_token(&self, grant: &str) -> Result<Token, ClientError> {
        let answer = self.call(&Outgoing::post("/v1/token", &json!({"grant": grant}))).await?;
        let mut token: Token = serde_json::from_value(answer.json()?).map_err(|error| ClientError::Protocol {
            url: answer.url.clone(),
            what: format!("the token's document has another shape ({error})"),
        })?;
        grant.clone_into(&mut token.grant);
        self.tokens.keep(token.clone());
        Ok(token)
    }

    /// Narrows a token and lets a helper's key use it: the narrower token and the statement for
    /// `Innkeeper-Delegation`. Both end at `expires`.
    pub fn delegate(
        &self,
        token: &str,
        helper: &AgentId,
        scopes: Option<BTreeSet<Scope>>,
        expires: DateTime<Utc>,
    ) -> Result<(String, String), ClientError> {
        let narrowing = inn_grants::token::Narrowing { scopes, expires: Some(expires) };
        let narrow = inn_grants::token::attenuate(token, &narrowing, rand::random())?;
        let digest = inn_protocol::Digest::of(narrow.as_bytes());
        let statement = inn_grants::delegation::sign(&self.key, digest, helper, expires.timestamp())?;
        Ok((narrow, statement))
    }

    /// Papers of this agent as a helper, with what its parent handed over.
    pub fn helper_papers(&self, token: &str, delegation: &str) -> Papers {
        Papers::Agent { key: self.key.clone(), token: Arc::from(token), delegation: Some(Arc::from(delegation)) }
    }

    /// Claims waiting requests, waiting up to `wait_seconds` (at most 30) for one. An empty list when nothing came.
    pub async fn claim(
        &self,
        apps: &[String],
        capabilities: &[String],
        max: u32,
        wait_seconds: u32,
    ) -> Result<Vec<Value>, ClientError> {
        let mut body = json!({"max": max, "waitSeconds": wait_seconds});
        if let Some(object) = body.as_object_mut() {
            for (name, list) in [("apps", apps), ("capabilities", capabilities)] {
                if !list.is_empty() {
                    object.insert(name.to_owned(), json!(list));
                }
            }
        }
        let timeout = Duration::from_secs(u64::from(wait_seconds)) + CLAIM_SLACK;
        let outgoing = Outgoing::post("/v1/requests/claim", &body).timeout(timeout);
        let mut answer = self.call(&outgoing).await?.json()?;
        Ok(match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        })
    }

    pub async fn heartbeat(&self, request: &str, epoch: i64) -> Answered {
        self.hold(request, "heartbeat", &json!({"epoch": epoch})).await
    }

    pub async fn progress(&self, request: &str, epoch: i64, step: &str, percent: u8) -> Answered {
        self.hold(request, "progress", &json!({"epoch": epoch, "step": step, "percent": percent})).await
    }

    /// Asks the requester something. The claim stays; heartbeats show the answer under `questions` when it has come.
    pub async fn ask_back(&self, request: &str, epoch: i64, question: &str) -> Answered {
        self.hold(request, "ask", &json!({"epoch": epoch, "question": question})).await
    }

    pub async fn complete(&self, request: &str, epoch: i64, result: &Value) -> Answered {
        self.hold(request, "complete", &json!({"epoch": epoch, "result": result})).await
    }

    pub async fn fail(&self, request: &str, epoch: i64, reason: &str) -> Answered {
        self.hold(request, "fail", &json!({"epoch": epoch, "reason": reason})).await
    }

    pub async fn release(&self, request: &str, epoch: i64, reason: &str) -> Answered {
        self.hold(request, "release", &json!({"epoch": epoch, "reason": reason})).await
    }

    async fn hold(&self, request: &str, verb: &str, body: &Value) -> Answered {
        self.call(&Outgoing::post(format!("/v1/requests/{}/{verb}", segment(request)), body)).await
    }
}
