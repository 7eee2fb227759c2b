//! A small world for tests of people, grants and the queue: a tenant with an owner, an app, an agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use inn_ports::{Consent, Grants, NewAgent, NewGrantRequest, NewSession, People, Requests, StoreError, StoreResult};
use inn_protocol::app::{AppDefinition, AppLimits, AppSnapshot, AuthMode, Capability, Dialect};
use inn_protocol::call::LiveCheck;
use inn_protocol::grant::Grant;
use inn_protocol::people::{Role, Session, Tenant};
use inn_protocol::register::{CallRecord, EntryDraft};
use inn_protocol::request::{ClaimOffer, NewRequest, QueueRequest};
use inn_protocol::{
    AgentId, AppId, CallId, Code, Digest, GrantId, GrantRequestId, Refusal, RequestId, SessionId, TenantId, UserId,
};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::PgStore;
use crate::testdb::TestDb;

pub(crate) const CAPABILITY: &str = "summarise-board";

pub(crate) struct World {
    pub(crate) store: PgStore,
    pub(crate) db: TestDb,
    /// Superuser: for looking, and for what no code of ours may do.
    pub(crate) admin: Client,
    pub(crate) tenant: TenantId,
    pub(crate) owner: UserId,
    pub(crate) app: AppSnapshot,
    pub(crate) agent: AgentId,
}

pub(crate) fn agent_number(number: u8) -> AgentId {
    AgentId::parse(&format!("agent{number:038}")).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        let (store, db) = TestDb::new().await;
        let admin = db.admin().await;
        let tenant = Tenant { id: TenantId::new(), slug: "home".to_owned(), name: "Home".to_owned() };
        let owner = UserId::new();
        assert!(store.found(&tenant, owner, "Ada@Example.org", "$argon2id$ada").await.unwrap());
        let app = install(&admin, tenant.id, "board").await;
        let world = Self { store, db, admin, tenant: tenant.id, owner, app, agent: agent_number(0) };
        world.register(&world.agent).await;
        world
    }

    pub(crate) async fn register(&self, agent: &AgentId) {
        let new = NewAgent { id: agent.clone(), public_key: [7; 32], name: "Robo".to_owned() };
        self.store.register_agent(&self.call("agents.register"), &new).await.unwrap();
    }

    /// A call of the platform's own, with nothing to check at commit.
    pub(crate) fn call(&self, action: &str) -> CallRecord {
        call_in(self.tenant, action)
    }

    /// Somebody with this address and role, with a new account when there is none.
    pub(crate) async fn member(&self, email: &str, role: Role) -> UserId {
        let known = self.store.user_secret(email).await.unwrap();
        let password = if known.is_none() { Some("$argon2id$x") } else { None };
        self.store.set_member(&self.call("members.set"), self.tenant, email, password, role).await.unwrap();
        self.store.user_secret(email).await.unwrap().unwrap().user
    }

    pub(crate) fn new_session(&self, user: UserId, token: &str) -> NewSession {
        NewSession {
            id: SessionId::new(),
            user,
            tenant: self.tenant,
            token: Digest::of(token.as_bytes()),
            app: None,
            lifetime: chrono::Duration::hours(1),
        }
    }

    pub(crate) async fn session(&self, user: UserId, token: &str) -> Session {
        self.store.open_session(&self.call("sessions.sign-in"), &self.new_session(user, token)).await.unwrap()
    }

    pub(crate) fn wish(&self, scopes: &[&str]) -> NewGrantRequest {
        NewGrantRequest {
            id: GrantRequestId::new(),
            app: self.app.id,
            tenant: self.tenant,
            agent: self.agent.clone(),
            code: "4711".to_owned(),
            scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
            reason: "to help".to_owned(),
            lifetime: chrono::Duration::minutes(15),
        }
    }

    pub(crate) async fn granted(&self, agent: &AgentId, user: UserId, scopes: &[&str], others: bool) -> Grant {
        let wish = NewGrantRequest { agent: agent.clone(), ..self.wish(scopes) };
        self.store.request_grant(&self.call("grants.request"), &wish).await.unwrap();
        let yes = Consent { others_requests: others, ..consent(user, scopes) };
        self.store.approve(&self.call("grants.approve"), wish.id, &yes).await.unwrap()
    }

    /// A grant of the agent to claim for the owner and everybody else.
    pub(crate) async fn queue_grant(&self) -> Grant {
        self.granted(&self.agent, self.owner, &[&format!("queue:{CAPABILITY}")], true).await
    }

    pub(crate) fn request(&self) -> NewRequest {
        NewRequest {
            id: RequestId::new(),
            capability: CAPABILITY.to_owned(),
            payload: json!({ "board": "b1" }),
            requester: Some(self.owner),
            requester_label: "Ada".to_owned(),
            lease_seconds: 60,
            attempts: 3,
            hard_seconds: 3_600,
            priority: 3,
            replay_of: None,
            unique: None,
            job: None,
            max_open: 1000,
        }
    }

    pub(crate) async fn asked(&self, request: &NewRequest) -> QueueRequest {
        self.store.ask(&self.call("requests.ask"), &self.app, request).await.unwrap().request
    }

    /// What these offers get now, of the tenant whose turn it is.
    pub(crate) async fn claim(
        &self,
        agent: &AgentId,
        offers: &[ClaimOffer],
        max: u32,
    ) -> StoreResult<Vec<QueueRequest>> {
        claim_with(&self.store, &self.call("requests.claim"), agent, offers, max).await
    }

    pub(crate) async fn count(&self, text: &str) -> i64 {
        self.admin.query_one(text, &[]).await.unwrap().get(0)
    }

    /// Entries of the register with this action.
    pub(crate) async fn entries(&self, action: &str) -> i64 {
        let text = "SELECT count(*) FROM inn.entries WHERE action = $1 AND outcome = 'done'";
        self.admin.query_one(text, &[&action]).await.unwrap().get(0)
    }
}

pub(crate) fn consent(user: UserId, scopes: &[&str]) -> Consent {
    Consent {
        grant: GrantId::new(),
        user,
        scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect::<BTreeSet<_>>(),
        others_requests: false,
        plain_token: false,
        app_record: None,
        record_proved: false,
    }
}

pub(crate) async fn claim_with(
    store: &PgStore,
    call: &CallRecord,
    agent: &AgentId,
    offers: &[ClaimOffer],
    max: u32,
) -> StoreResult<Vec<QueueRequest>> {
    match store.reserve(agent, offers, max, true).await? {
        Some(turn) => store.claim(call, agent, offers, &turn).await,
        None => Ok(Vec::new()),
    }
}

pub(crate) fn offer(grant: &Grant) -> ClaimOffer {
    ClaimOffer {
        tenant: grant.tenant,
        app: grant.app,
        capability: CAPABILITY.to_owned(),
        grant: grant.id,
        grant_epoch: grant.epoch,
        user: grant.user,
        others: grant.others_requests,
    }
}

pub(crate) fn call_in(tenant: TenantId, action: &str) -> CallRecord {
    let draft = EntryDraft {
        call: CallId::new(),
        tenant,
        app: None,
        caller: "platform",
        user: None,
        agent: None,
        helper: None,
        grant: None,
        via: None,
        app_user: None,
        action: action.to_owned(),
        target: String::new(),
        body: Digest::of(b""),
        claimed_agent: None,
        signature_base: None,
        signature: None,
    };
    CallRecord { draft, live: LiveCheck::default(), nonce: None, idempotency: None }
}

/// An installed app, without going through a deploy.
pub(crate) async fn install(admin: &Client, tenant: TenantId, slug: &str) -> AppSnapshot {
    let id = AppId::new();
    let text = "INSERT INTO inn.apps (id, tenant, slug, consented) VALUES ($1, $2, $3, $4) RETURNING epoch";
    let consented = vec![CAPABILITY.to_owned()];
    let row = admin.query_one(text, &[&id.uuid(), &tenant.uuid(), &slug, &consented]).await.unwrap();
    let capability = Capability {
        name: CAPABILITY.to_owned(),
        sentence: "Summarise one board".to_owned(),
        input: json!({}),
        result: json!({}),
        lease_seconds: 60,
        attempts: 3,
        hard_seconds: 3_600,
    };
    let definition = AppDefinition {
        declared_id: "board".to_owned(),
        name: "Board".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        dialect: Dialect::A2App1,
        auth_mode: AuthMode::None,
        model: inn_protocol::model::Model::default(),
        operations: Vec::new(),
        operations_json: Value::Null,
        capabilities: vec![capability],
        limits: AppLimits::default(),
        ui_root: None,
        ui_entry: None,
        aip53: None,
    };
    AppSnapshot {
        id,
        tenant,
        slug: slug.to_owned(),
        release: Digest::of(b"release"),
        epoch: row.get(0),
        definition: Arc::new(definition),
        ui_files: Arc::new(BTreeMap::new()),
        consented,
    }
}

/// The refusal inside, for comparing its code.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Refusal {
    match result {
        Err(StoreError::Refused(refusal)) => *refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Code {
    refusal(result).code
}
