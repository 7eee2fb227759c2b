//! A small app, an owner, an agent with a grant, and a gateway over doubles.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use inn_grants::SigningKey;
use inn_grants::signature::{SignedParts, sign, token_digest};
use inn_grants::token::{RootKeys, TokenClaims, mint};
use inn_ports::memory::{FixedClock, MemoryCore};
use inn_ports::{AgentState, GrantState, MemberState, SessionState};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::call::{Action, Call, Papers, Place, SignedPapers};
use inn_protocol::caller::Caller;
use inn_protocol::people::Role;
use inn_protocol::receipt::Verb;
use inn_protocol::scope::Scope;
use inn_protocol::{AppId, CallId, Digest, GrantId, SessionId, TenantId, UserId};
use serde_json::{Value, json};

use crate::{AdmissionLimits, Admitted, CallRates, Gateway, GatewayConfig, RecordWrite};

pub(crate) struct World {
    pub(crate) core: Arc<MemoryCore>,
    pub(crate) clock: Arc<FixedClock>,
    pub(crate) gateway: Gateway,
    pub(crate) app: AppSnapshot,
    pub(crate) agent: SigningKey,
    pub(crate) grant: GrantState,
    pub(crate) owner: MemberState,
    pub(crate) root: RootKeys,
    // Dropped last: the commits run here.
    _io: IoRuntime,
}

struct IoRuntime(Option<tokio::runtime::Runtime>);

impl Drop for IoRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

pub(crate) fn noon() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 30, 12, 0, 0).unwrap()
}

fn definition() -> AppDefinition {
    serde_json::from_value(json!({
        "declaredId": "notes", "name": "Notes", "dialect": "1.0", "authMode": "none",
        "model": {"collections": [{
            "id": "pbc_notes", "name": "notes", "type": "base",
            "listRule": "", "viewRule": "", "createRule": "", "updateRule": "", "deleteRule": "",
            "fields": [
                {"id": "text_id", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true},
                {"id": "text_title", "name": "title", "type": "text", "required": true, "max": 100},
                {"id": "number_rank", "name": "rank", "type": "number"},
            ],
        }]},
        "operations": [
            {"name": "notes.wipe", "description": "Wipe", "destructive": true,
             "params": {"id": {"type": "string", "required": true}},
             "executor": {"type": "crud", "collection": "notes", "action": "delete"}},
        ],
        "operationsJson": [], "capabilities": [], "limits": {},
    }))
    .unwrap()
}

struct NoRates;

impl CallRates for NoRates {
    fn take(&self, _: &Caller, _: &Action) -> inn_protocol::Result<()> {
        Ok(())
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_limits(AdmissionLimits::default())
    }

    pub(crate) fn with_limits(limits: AdmissionLimits) -> Self {
        let clock = Arc::new(FixedClock::at(noon()));
        let core = Arc::new(MemoryCore::new(clock.clone()));
        let app = AppSnapshot {
            id: AppId::new(),
            tenant: TenantId::new(),
            slug: "notes".to_owned(),
            release: Digest::of(b"release"),
            epoch: 1,
            definition: Arc::new(definition()),
            ui_files: Arc::new(BTreeMap::new()),
            consented: Vec::new(),
        };
        core.put_app(app.clone());
        let owner =
            MemberState { tenant: app.tenant, user: UserId::new(), email: "o@x".into(), role: Role::Owner, epoch: 2 };
        core.put_member(owner.clone());
        let agent = SigningKey::from_seed([7; 32]);
        core.put_agent(AgentState { agent: agent.public().thumbprint(), public_key: agent.public() });
        let scopes =
            ["data:notes:read", "data:notes:write", "op:notes.wipe"].map(|text| text.parse::<Scope>().unwrap());
        let grant = GrantState {
            grant: GrantId::new(),
            epoch: 3,
            agent: agent.public().thumbprint(),
            user: owner.user,
            tenant: app.tenant,
            app: app.id,
            scopes: Arc::new(BTreeSet::from(scopes)),
            others_requests: false,
            plain_token: false,
            loopback: false,
            app_record: None,
            revoked: false,
        };
        core.put_grant(grant.clone(), None);
        let root = RootKeys::new(1, &SigningKey::from_seed([9; 32]), &[]).unwrap();
        let io = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let config = GatewayConfig { limits, rates: Arc::new(NoRates), loopback: false, app_threads: 1 };
        let gateway = Gateway::new(&config, core.clone(), clock.clone(), io.handle().clone(), root.public().clone());
        Self { core, clock, gateway, app, agent, grant, owner, root, _io: IoRuntime(Some(io)) }
    }

    pub(crate) fn token(&self) -> String {
        let claims = TokenClaims {
            grant: self.grant.grant,
            grant_epoch: self.grant.epoch,
            agent: self.grant.agent.clone(),
            user: self.grant.user,
            app: self.grant.app,
            tenant: self.grant.tenant,
            scopes: self.grant.scopes.clone(),
            expires: noon() + TimeDelta::minutes(15),
            plain: false,
        };
        mint(&self.root, &claims, [1; 32]).unwrap()
    }

    /// Papers of the agent with a token, signed by `key`, valid from noon for a minute.
    pub(crate) fn signed(&self, key: &SigningKey, nonce: &str) -> Papers {
        let token = self.token();
        let digest = token_digest(&token);
        let parts = SignedParts {
            method: "POST",
            authority: "notes.localhost",
            path: "/x",
            query: "?",
            token_digest: Some(&digest),
            ..SignedParts::default()
        };
        let created = noon().timestamp();
        let headers = sign(key, &parts, created, created + 60, nonce).unwrap();
        Papers::Signed(Box::new(SignedPapers {
            method: "POST".to_owned(),
            authority: "notes.localhost".to_owned(),
            path: "/x".to_owned(),
            query: "?".to_owned(),
            token_digest: Some(digest),
            signature_input: headers.signature_input,
            signature: headers.signature,
            token: Some(token),
            ..SignedPapers::default()
        }))
    }

    pub(crate) fn session(&self) -> Papers {
        let token = "ses_test".to_owned();
        self.core.put_session(
            Digest::of(token.as_bytes()),
            SessionState {
                session: SessionId::new(),
                user: self.owner.user,
                tenant: self.owner.tenant,
                app: None,
                authenticated_at: noon(),
                expires_at: noon() + TimeDelta::hours(1),
            },
        );
        Papers::Session { token, app_origin: false }
    }

    pub(crate) fn call(&self, action: Action, papers: Papers) -> Call {
        Call {
            id: CallId::new(),
            place: Place::App { slug: self.app.slug.clone(), own_origin: true },
            action,
            about: None,
            papers,
            body: Value::Null,
            body_digest: Digest::of(b""),
            query: String::new(),
            idempotency_key: None,
            deadline: Instant::now() + Duration::from_secs(5),
            claimed_agent: None,
            request: Arc::default(),
        }
    }

    pub(crate) fn outcomes(&self) -> Vec<String> {
        self.core
            .entries()
            .into_iter()
            .map(|entry| format!("{} {} {}", entry.caller, entry.action, entry.outcome))
            .collect()
    }
}

pub(crate) fn create() -> Action {
    Action::CreateRecord { entity: "notes".to_owned() }
}

pub(crate) fn new_note(body: Value) -> impl Fn(&Admitted) -> inn_protocol::Result<RecordWrite> {
    move |_| {
        Ok(RecordWrite {
            verb: Verb::Create,
            entity: "notes".to_owned(),
            id: None,
            body: body.clone(),
            form: None,
            fixed: None,
        })
    }
}
