//! What a signed-in person can ask of the platform. One method per endpoint; answers are the endpoint's JSON.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::client::Client;
use crate::error::ClientError;
use crate::face::AppFace;
use crate::outgoing::{Outgoing, query, segment};
use crate::papers::Papers;

type Answered = Result<Answer, ClientError>;

/// A bundle may be large and a deploy builds indexes.
const DEPLOY_TIMEOUT: Duration = Duration::from_mins(5);

/// A person with a session.
#[derive(Debug, Clone)]
pub struct Person {
    client: Client,
    papers: Papers,
}

impl Person {
    pub(crate) fn new(client: Client, session: &str) -> Self {
        Self { client, papers: Papers::Session(Arc::from(session)) }
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// An app, as this person.
    pub fn app(&self, slug: &str) -> AppFace {
        AppFace::person(self.clone(), slug)
    }

    /// Any call with this session.
    pub async fn call(&self, outgoing: &Outgoing) -> Answered {
        self.client.call(outgoing, &self.papers).await
    }

    async fn get(&self, path: String) -> Answered {
        self.call(&Outgoing::get(path)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answered {
        self.call(&Outgoing::post(path, body)).await
    }

    pub async fn session(&self) -> Answered {
        self.get("/v1/session".to_owned()).await
    }

    /// Works in another tenant from here on.
    pub async fn switch(&self, tenant: &str) -> Answered {
        self.call(&Outgoing::new(Method::PATCH, "/v1/session").json(&json!({"tenant": tenant}))).await
    }

    /// Ends this session, or every session of the person.
    pub async fn sign_out(&self, everywhere: bool) -> Answered {
        let all = if everywhere { "?all=true" } else { "" };
        self.call(&Outgoing::delete(format!("/v1/session{all}"))).await
    }

    pub async fn confirm(&self, password: &str) -> Answered {
        self.post("/v1/session/confirm", &json!({"password": password})).await
    }

    pub async fn change_password(&self, old: &str, new: &str) -> Answered {
        self.call(&Outgoing::new(Method::PUT, "/v1/session/password").json(&json!({"old": old, "new": new}))).await
    }

    /// A one-time address that opens an app signed in.
    pub async fn hand_off(&self, app: &str) -> Answered {
        self.post("/v1/session/handoff", &json!({"app": app})).await
    }

    pub async fn tenants(&self) -> Answered {
        self.get("/v1/tenants".to_owned()).await
    }

    pub async fn create_tenant(&self, slug: &str, name: &str) -> Answered {
        self.post("/v1/tenants", &json!({"slug": slug, "name": name})).await
    }

    pub async fn members(&self) -> Answered {
        self.get("/v1/members".to_owned()).await
    }

    /// Adds a member or changes a role. `password` is for somebody who has none yet.
    pub async fn set_member(&self, email: &str, role: &str, password: Option<&str>) -> Answered {
        let mut body = json!({"email": email, "role": role});
        if let (Some(password), Some(object)) = (password, body.as_object_mut()) {
            object.insert("password".to_owned(), password.into());
        }
        self.post("/v1/members", &body).await
    }

    pub async fn remove_member(&self, user: &str) -> Answered {
        self.call(&Outgoing::delete(format!("/v1/members/{}", segment(user)))).await
    }

    /// Deploys the bytes of a bundle. `options` are query parameters of `POST /v1/apps`.
    pub async fn deploy(&self, bundle: Bytes, options: &[(&str, &str)]) -> Answered {
        let path = format!("/v1/apps{}", query(options.iter().copied()));
        let octets = HeaderValue::from_static("application/octet-stream");
        let outgoing = Outgoing::new(Method::POST, path).bytes(octets, bundle).timeout(DEPLOY_TIMEOUT);
        self.call(&outgoing).await
    }

    pub async fn apps(&self) -> Answered {
        self.get("/v1/apps".to_owned()).await
    }

    pub async fn view_app(&self, slug: &str) -> Answered {
        self.get(format!("/v1/apps/{}", segment(slug))).await
    }

    pub async fn releases(&self, slug: &str) -> Answered {
        self.get(format!("/v1/apps/{}/releases", segment(slug))).await
    }

    pub async fn roll_back(&self, slug: &str, release: &str) -> Answered {
        let path = format!("/v1/apps/{}/releases/rollback", segment(slug));
        self.call(&Outgoing::post(path, &json!({"release": release})).timeout(DEPLOY_TIMEOUT)).await
    }

    pub async fn remove_app(&self, slug: &str) -> Answered {
        self.call(&Outgoing::delete(format!("/v1/apps/{}", segment(slug)))).await
    }

    pub async fn agents(&self) -> Answered {
        self.get("/v1/agents".to_owned()).await
    }

    pub async fn grant_requests(&self) -> Answered {
        self.get("/v1/grant-requests".to_owned()).await
    }

    pub async fn grant_request(&self, id: &str) -> Answered {
        self.get(format!("/v1/grant-requests/{}", segment(id))).await
    }

    /// Consents. `consent` may hold `scopes`, `othersRequests`, `plainToken`, `appRecord`, `password`.
    pub async fn approve(&self, id: &str, consent: &Value) -> Answered {
        self.post(&format!("/v1/grant-requests/{}/approve", segment(id)), consent).await
    }

    pub async fn refuse(&self, id: &str) -> Answered {
        self.post(&format!("/v1/grant-requests/{}/refuse", segment(id)), &json!({})).await
    }

    /// Grants, one agent's when `agent` is given.
    pub async fn grants(&self, agent: Option<&str>) -> Answered {
        self.get(format!("/v1/grants{}", query(agent.map(|agent| ("agent", agent))))).await
    }

    pub async fn grant(&self, id: &str) -> Answered {
        self.get(format!("/v1/grants/{}", segment(id))).await
    }

    /// Revokes a grant; answers what that stopped.
    pub async fn revoke(&self, id: &str) -> Answered {
        self.call(&Outgoing::delete(format!("/v1/grants/{}", segment(id)))).await
    }

    /// Why a call is or is not allowed, leg by leg.
    pub async fn explain(&self, question: &Value) -> Answered {
        self.post("/v1/explain", question).await
    }

    pub async fn requests(&self, app: Option<&str>, state: Option<&str>) -> Answered {
        let pairs = app.map(|app| ("app", app)).into_iter().chain(state.map(|state| ("state", state)));
        self.get(format!("/v1/requests{}", query(pairs))).await
    }

    pub async fn request(&self, app: &str, id: &str) -> Answered {
        self.get(format!("/v1/requests/{}{}", segment(id), query([("app", app)]))).await
    }

    pub async fn cancel_request(&self, app: &str, id: &str, reason: Option<&str>) -> Answered {
        self.operate(id, "cancel", &because(app, reason)).await
    }

    /// Takes it from the agent that holds it, back into the queue.
    pub async fn take_back_request(&self, app: &str, id: &str, reason: Option<&str>) -> Answered {
        self.operate(id, "take-back", &because(app, reason)).await
    }

    /// Ends it as failed.
    pub async fn end_request(&self, app: &str, id: &str, reason: Option<&str>) -> Answered {
        self.operate(id, "end", &because(app, reason)).await
    }

    /// Answers the question of the agent that holds it.
    pub async fn answer_request(&self, app: &str, id: &str, answer: &Value) -> Answered {
        self.operate(id, "answer", &json!({"app": app, "answer": answer})).await
    }

    /// Does one that failed or was canceled again, as a new one.
    pub async fn replay_request(&self, app: &str, id: &str) -> Answered {
        self.operate(id, "replay", &json!({"app": app})).await
    }

    /// What a request waits for.
    pub async fn request_why(&self, app: &str, id: &str) -> Answered {
        self.get(format!("/v1/requests/{}/why{}", segment(id), query([("app", app)]))).await
    }

    /// Jobs of an app, newest first.
    pub async fn jobs(&self, app: &str, state: Option<&str>) -> Answered {
        let pairs = [("app", app)].into_iter().chain(state.map(|state| ("state", state)));
        self.get(format!("/v1/jobs{}", query(pairs))).await
    }

    pub async fn job(&self, app: &str, id: &str) -> Answered {
        self.get(format!("/v1/jobs/{}{}", segment(id), query([("app", app)]))).await
    }

    /// Lines of a job's log with numbers above `after`, oldest first.
    pub async fn job_logs(&self, app: &str, id: &str, after: i64) -> Answered {
        let after = after.to_string();
        self.get(format!("/v1/jobs/{}/logs{}", segment(id), query([("app", app), ("after", &after)]))).await
    }

    pub async fn cancel_job(&self, app: &str, id: &str, reason: Option<&str>) -> Answered {
        self.post(&format!("/v1/jobs/{}/cancel", segment(id)), &because(app, reason)).await
    }

    /// Does one that failed or was canceled again, as a new one.
    pub async fn retry_job(&self, app: &str, id: &str) -> Answered {
        self.post(&format!("/v1/jobs/{}/retry", segment(id)), &json!({"app": app})).await
    }

    pub async fn queue_limits(&self) -> Answered {
        self.get("/v1/queue-limits".to_owned()).await
    }

    /// Sets weight and cap: `{"kind", "app", "subject", "weight", "most"}`.
    pub async fn set_queue_limit(&self, limit: &Value) -> Answered {
        self.post("/v1/queue-limits", limit).await
    }

    /// Cancels up to 1,000 open requests of an app: `{"app", "capability", "state", "olderThanSeconds", "reason"}`.
    pub async fn cancel_requests(&self, filter: &Value) -> Answered {
        self.post("/v1/requests/cancel", filter).await
    }

    async fn operate(&self, id: &str, verb: &str, body: &Value) -> Answered {
        self.post(&format!("/v1/requests/{}/{verb}", segment(id)), body).await
    }

    /// Register entries, newest first. `conditions` are the query parameters of `GET /v1/audit`.
    pub async fn audit(&self, conditions: &[(&str, &str)]) -> Answered {
        self.get(format!("/v1/audit{}", query(conditions.iter().copied()))).await
    }

    /// Recomputes digests, chain and heads; with `head` (`seq`, digest) also checks a head kept from before.
    pub async fn verify_audit(&self, head: Option<(&str, &str)>) -> Answered {
        let pairs = head.map(|(seq, head)| [("seq", seq), ("head", head)]);
        self.get(format!("/v1/audit/verify{}", query(pairs.into_iter().flatten()))).await
    }

    pub async fn audit_head(&self) -> Answered {
        self.get("/v1/audit/head".to_owned()).await
    }

    /// Entries as JSON lines.
    pub async fn export_audit(&self, conditions: &[(&str, &str)]) -> Answered {
        let path = format!("/v1/audit/export{}", query(conditions.iter().copied()));
        self.call(&Outgoing::get(path).timeout(DEPLOY_TIMEOUT)).await
    }

    pub async fn receipt(&self, call: &str) -> Answered {
        self.get(format!("/v1/receipts/{}", segment(call))).await
    }
}

fn because(app: &str, reason: Option<&str>) -> Value {
    match reason {
        Some(reason) => json!({"app": app, "reason": reason}),
        None => json!({"app": app}),
    }
}
