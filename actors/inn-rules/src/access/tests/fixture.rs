//! One app with every kind of rule, and one caller of each kind.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use chrono::DateTime;
use inn_protocol::app::{
    AppDefinition, AppLimits, AppSnapshot, AuthMode, Capability, CrudAction, Dialect, Executor, Operation,
};
use inn_protocol::call::Action;
use inn_protocol::caller::{Agent, Caller, Person, Via};
use inn_protocol::model::{Collection, Model};
use inn_protocol::people::Role;
use inn_protocol::{AgentId, AppId, CallId, Digest, GrantId, JobId, Refusal, RequestId, SessionId, TenantId, UserId};
use serde_json::{Value, json};

use crate::access::{Host, Permit, decide};

pub(super) const LOOPBACK: Host = Host { loopback: true };
pub(super) const PUBLIC: Host = Host { loopback: false };

/// The n-th id of a kind.
pub(super) fn id<T: FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u32) -> T {
    format!("{prefix}_{n:032}").parse().unwrap()
}

pub(super) fn tenant() -> TenantId {
    id(TenantId::PREFIX, 1)
}

pub(super) fn other_tenant() -> TenantId {
    id(TenantId::PREFIX, 2)
}

pub(super) fn app_id() -> AppId {
    id(AppId::PREFIX, 10)
}

fn collection(id: &str, name: &str, kind: &str, rule: &Value) -> Collection {
    serde_json::from_value(json!({
        "id": id, "name": name, "type": kind,
        "listRule": rule, "viewRule": rule, "createRule": rule, "updateRule": rule, "deleteRule": rule,
        "fields": [
            {"id": "f1", "name": "title", "type": "text"},
            {"id": "f2", "name": "owner", "type": "text"},
        ],
    }))
    .unwrap()
}

fn operation(name: &str, destructive: bool, executor: Executor) -> Operation {
    Operation {
        name: name.to_owned(),
        description: format!("Does {name}."),
        system: false,
        destructive,
        schedule: None,
        params: BTreeMap::new(),
        executor,
    }
}

fn crud(collection: &str, action: CrudAction) -> Executor {
    Executor::Crud { collection: collection.to_owned(), action, filter: None }
}

fn capability(name: &str) -> Capability {
    Capability {
        name: name.to_owned(),
        sentence: "Summarise one board".to_owned(),
        input: json!({}),
        result: json!({}),
        lease_seconds: 60,
        attempts: 3,
        hard_seconds: 3_600,
    }
}

/// cards: everybody; locked: superusers; mine: the signed-in record's own rows; stats: a view; _inner: the platform's.
pub(super) fn app(auth_mode: AuthMode) -> AppSnapshot {
    let definition = AppDefinition {
        declared_id: "board".to_owned(),
        name: "Board".to_owned(),
        description: String::new(),
        version: "1".to_owned(),
        dialect: Dialect::A2App1,
        auth_mode,
        model: Model {
            collections: vec![
                collection("c1", "cards", "base", &json!("")),
                collection("c2", "locked", "base", &Value::Null),
                collection("c3", "mine", "base", &json!("owner = @request.auth.id && @request.auth.id != ''")),
                collection("c4", "stats", "view", &json!("")),
                collection("c5", "_inner", "base", &json!("")),
                collection("c6", "later", "base", &json!("later() = '2024'")),
            ],
        },
        operations: vec![
            operation("cards.clear-archived", true, crud("cards", CrudAction::Delete)),
            operation("cards.add", false, crud("cards", CrudAction::Create)),
            operation("locked.add", false, crud("locked", CrudAction::Create)),
            operation("gone.add", false, crud("gone", CrudAction::Create)),
            operation("report", false, Executor::Http { method: "POST".to_owned(), path: "/api/report".to_owned() }),
        ],
        operations_json: json!({}),
        capabilities: vec![capability("summarise-board"), capability("translate")],
        limits: AppLimits::default(),
        ui_root: None,
        ui_entry: None,
        aip53: None,
    };
    AppSnapshot {
        id: app_id(),
        tenant: tenant(),
        slug: "board".to_owned(),
        release: Digest::of(b"release"),
        epoch: 1,
        definition: Arc::new(definition),
        ui_files: Arc::new(BTreeMap::new()),
        consented: vec!["summarise-board".to_owned()],
    }
}

pub(super) fn key() -> AgentId {
    AgentId::parse(&"k".repeat(43)).unwrap()
}

pub(super) fn person(role: Role) -> Person {
    Person {
        user: id(UserId::PREFIX, 20),
        email: "ann@example.com".into(),
        session: id(SessionId::PREFIX, 21),
        tenant: tenant(),
        role,
        member_epoch: 1,
        fresh: true,
    }
}

/// An agent with the given scopes, for a person with the given role.
pub(super) fn agent(role: Role, scopes: &[&str]) -> Agent {
    let scopes: BTreeSet<_> = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
    Agent {
        agent: key(),
        helper: None,
        grant: id(GrantId::PREFIX, 30),
        grant_epoch: 1,
        app: app_id(),
        user: id(UserId::PREFIX, 20),
        tenant: tenant(),
        role,
        member_epoch: 1,
        scopes: Arc::new(scopes),
        app_record: None,
        via: Via::Signed,
    }
}

/// A grant of everything the app can grant.
pub(super) fn full_agent(role: Role) -> Agent {
    let scopes = app(AuthMode::None).definition.scopes().into_iter().collect();
    Agent { scopes: Arc::new(scopes), ..agent(role, &[]) }
}

/// Every action, in the order of the enum.
pub(super) fn actions() -> Vec<Action> {
    let entity = || "cards".to_owned();
    let record = || "r1".to_owned();
    let request = id(RequestId::PREFIX, 40);
    let grant = id(GrantId::PREFIX, 30);
    let job = id(JobId::PREFIX, 45);
    vec![
        Action::DescribeApp,
        Action::ListRecords { entity: entity() },
        Action::ViewRecord { entity: entity(), id: record() },
        Action::CreateRecord { entity: entity() },
        Action::UpdateRecord { entity: entity(), id: record() },
        Action::DeleteRecord { entity: entity(), id: record() },
        Action::Batch,
        Action::Realtime { verb: "connect" },
        Action::ReadFile { entity: entity(), id: record(), name: "a.png".to_owned(), protected: true },
        Action::ReadFile { entity: entity(), id: record(), name: "a.png".to_owned(), protected: false },
        Action::TakeFileToken,
        Action::AppAuth { collection: "_superusers".to_owned(), record: String::new(), verb: "with-password" },
        Action::RunOperation { operation: "report".to_owned() },
        Action::Ask { capability: "summarise-board".to_owned() },
        Action::ViewRequest { request },
        Action::ListRequests,
        Action::CancelRequest { request },
        Action::OperateRequest { request, verb: "answer" },
        Action::CancelRequests,
        Action::ViewJob { job, verb: "view" },
        Action::ListJobs,
        Action::CancelJob { job },
        Action::RetryJob { job },
        Action::RegisterAgent,
        Action::RequestGrant { app: "board".to_owned() },
        Action::TakeToken { grant },
        Action::Claim,
        Action::Hold { request, verb: "complete" },
        Action::HoldMany,
        Action::SignIn,
        Action::OwnSession { verb: "show" },
        Action::CreateTenant { slug: "acme".to_owned() },
        Action::ListQueueLimits,
        Action::SetQueueLimit { about: "app board".to_owned() },
        Action::ListMembers,
        Action::ManageMembers { member: "ada@example.org".to_owned(), verb: "add" },
        Action::ListApps,
        Action::Deploy { slug: "board".to_owned() },
        Action::ManageApp { slug: "board".to_owned(), verb: "rollback" },
        Action::ListGrants,
        Action::ViewGrantRequest { request: id(inn_protocol::GrantRequestId::PREFIX, 7) },
        Action::DecideGrant { about: "grq_1".to_owned(), verb: "approve" },
        Action::RevokeGrant { grant },
        Action::Explain,
        Action::ReadRegister { verb: "tail" },
        Action::ReadReceipt { call: id(CallId::PREFIX, 50) },
    ]
}

pub(super) fn asked(
    caller: &Caller,
    action: &Action,
    app: Option<&AppSnapshot>,
    host: Host,
) -> Result<Permit, Refusal> {
    decide(caller, action, app, host, DateTime::UNIX_EPOCH)
}
