//! An app with tables, a person and a grant to write with: what the tests of the commit path stand on.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use inn_ports::{Apps, DeployPlan, Directory, Ledger, People, Plan, StoreError, StoreResult};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::call::{Idempotency, LiveCheck, Nonce};
use inn_protocol::model::Model;
use inn_protocol::people::Tenant;
use inn_protocol::plan::{Committed, Write};
use inn_protocol::receipt::{RefShape, SentenceShape, Verb};
use inn_protocol::register::{CallRecord, EntryDraft};
use inn_protocol::{AgentId, CallId, Code, Digest, GrantId, Refusal, TenantId, UserId};
use serde_json::{Map, Value, json};

use crate::PgStore;
use crate::testdb::TestDb;

pub(crate) struct World {
    pub(crate) store: PgStore,
    pub(crate) db: TestDb,
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
    pub(crate) agent: AgentId,
    pub(crate) grant: GrantId,
    pub(crate) grant_epoch: i64,
    pub(crate) member_epoch: i64,
    pub(crate) app: Arc<AppSnapshot>,
}

/// Lists and cards, and what refers to them in every way a delete has to deal with.
fn model() -> Model {
    let field = |name: &str, kind: &str, more: Value| {
        let mut field = json!({"id": format!("f_{name}"), "name": name, "type": kind});
        field.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        field
    };
    let collection = |id: &str, name: &str, fields: Value, indexes: Value| {
        let mut all = vec![
            json!({"id": "f_id", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true}),
        ];
        all.extend(fields.as_array().unwrap().clone());
        json!({"id": id, "name": name, "type": "base", "fields": all, "indexes": indexes,
            "listRule": "", "viewRule": "", "createRule": "", "updateRule": "", "deleteRule": ""})
    };
    let value = json!({"collections": [
        collection("c_lists", "lists", json!([field("title", "text", json!({}))]), json!([])),
        collection("c_cards", "cards", json!([
            field("title", "text", json!({"required": true})),
            field("list", "relation", json!({"collectionId": "c_lists", "cascadeDelete": true, "maxSelect": 1})),
            field("also", "relation", json!({"collectionId": "c_lists", "maxSelect": 9})),
            field("points", "number", json!({"max": 100, "onlyInt": true})),
            field("done", "bool", json!({})),
            field("tags", "select", json!({"values": ["a", "b"], "maxSelect": 2})),
            field("code", "text", json!({})),
            field("extra", "json", json!({})),
            field("secret", "text", json!({"hidden": true})),
            field("created", "autodate", json!({"onCreate": true})),
            field("updated", "autodate", json!({"onCreate": true, "onUpdate": true})),
        ]), json!(["CREATE UNIQUE INDEX idx_code ON cards (code) WHERE code != ''"])),
        collection("c_notes", "notes", json!([
            field("card", "relation", json!({"collectionId": "c_cards", "required": true, "maxSelect": 1})),
            field("text", "text", json!({})),
        ]), json!([])),
    ]});
    serde_json::from_value(value).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        let (store, db) = TestDb::new().await;
        let (tenant, user, grant) = (TenantId::new(), UserId::new(), GrantId::new());
        let home = Tenant { id: tenant, slug: "home".into(), name: "Home".into() };
        assert!(store.found(&home, user, "owner@example.com", "hash").await.unwrap());
        let definition: AppDefinition = serde_json::from_value(json!({
            "declaredId": "kanban", "name": "Kanban", "dialect": "1.0", "authMode": "none", "model": model(),
            "operations": [], "operationsJson": {}, "capabilities": [], "limits": {},
        }))
        .unwrap();
        let plan = DeployPlan {
            tenant,
            slug: "kanban".into(),
            definition: Arc::new(definition),
            release: Digest::of(b"release"),
            archive: Digest::of(b"archive"),
            archive_bytes: 7,
            files: BTreeMap::new(),
            ui_files: BTreeMap::new(),
            consented: vec![],
            allow_destructive: false,
            dry_run: false,
        };
        let deployed = store.deploy(&bare(tenant, "apps.deploy"), &plan).await.unwrap();
        let app = store.app_by_id(deployed.app).await.unwrap().unwrap();
        let agent = AgentId::parse("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k").unwrap();
        let admin = db.admin().await;
        let row = admin
            .query_one(
                "INSERT INTO inn.grants (id, tenant, app, agent, user_id, scopes) VALUES ($1, $2, $3, $4, $5, '{data:cards:write}') RETURNING epoch",
                &[&grant.uuid(), &tenant.uuid(), &app.id.uuid(), &agent.as_str(), &user.uuid()],
            )
            .await
            .unwrap();
        let member = store.member(tenant, user).await.unwrap().unwrap();
        Self { store, db, tenant, user, agent, grant, grant_epoch: row.get(0), member_epoch: member.epoch, app }
    }

    /// A call of the agent under its grant, with everything live and nothing to repeat.
    pub(crate) fn call(&self, action: &str) -> CallRecord {
        let mut call = bare(self.tenant, action);
        call.draft.app = Some(self.app.id);
        call.draft.caller = "agent";
        call.draft.user = Some(self.user);
        call.draft.agent = Some(self.agent.clone());
        call.draft.grant = Some(self.grant);
        call.live = LiveCheck {
            app: Some((self.app.id, self.app.epoch)),
            grant: Some((self.grant, self.grant_epoch)),
            member: Some((self.tenant, self.user, self.member_epoch)),
            session: None,
            app_user: None,
            claim: None,
        };
        call
    }

    pub(crate) fn nonce(&self, nonce: &str) -> Nonce {
        Nonce { agent: self.agent.clone(), nonce: nonce.to_owned(), expires: Utc::now() + TimeDelta::seconds(60) }
    }

    pub(crate) fn plan(&self, verb: Verb, entity: &str, id: &str, values: Value) -> Plan {
        let Value::Object(values) = values else { panic!("an object") };
        let refs = if entity == "cards" {
            vec![RefShape { field: "list".into(), entity: "lists".into(), label: "title".into() }]
        } else {
            vec![]
        };
        let changed = if verb == Verb::Update { values.keys().cloned().collect() } else { vec![] };
        let read_back = values.iter().filter(|(_, value)| !blank(value)).map(|(name, _)| name.clone()).collect();
        Plan {
            record: self.call(&format!("records.{}", verb.as_str())),
            app: self.app.clone(),
            write: Write {
                verb,
                entity: entity.into(),
                id: id.into(),
                values,
                increments: Map::new(),
                read_back,
                rule: None,
                fixed: None,
                sentence: SentenceShape {
                    verb,
                    entity: entity.into(),
                    label: Some("title".into()),
                    refs,
                    dates: vec![],
                    changed,
                },
            },
        }
    }

    pub(crate) fn card(&self, id: &str, title: &str) -> Plan {
        self.plan(Verb::Create, "cards", id, json!({"title": title}))
    }

    pub(crate) async fn create(&self, entity: &str, id: &str, values: Value) -> Committed {
        self.store.commit(&self.plan(Verb::Create, entity, id, values)).await.unwrap()
    }

    pub(crate) async fn count(&self, what: &str) -> i64 {
        self.db.admin().await.query_one(&format!("SELECT count(*) FROM {what}"), &[]).await.unwrap().get(0)
    }

    /// Rows of nonces, keys, entries, receipts, outbox and changes: what a refused write must leave untouched.
    pub(crate) async fn traces(&self) -> Vec<i64> {
        let mut counts = Vec::new();
        for table in ["inn.nonces", "inn.idempotency", "inn.entries", "inn.receipts", "inn.outbox", "inn.changes"] {
            counts.push(self.count(table).await);
        }
        counts.push(self.count(&self.table("cards")).await);
        counts
    }

    pub(crate) fn table(&self, entity: &str) -> String {
        crate::columns::table_named(self.app.id, entity)
    }
}

fn blank(value: &Value) -> bool {
    matches!(value, Value::Null | Value::Bool(false)) || value == "" || value == 0 || *value == json!([])
}

/// A call of the platform itself, which nothing holds up.
pub(crate) fn bare(tenant: TenantId, action: &str) -> CallRecord {
    CallRecord {
        draft: EntryDraft {
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
            action: action.into(),
            target: "cards".into(),
            body: Digest::of(b""),
            claimed_agent: None,
            signature_base: None,
            signature: None,
        },
        live: LiveCheck::default(),
        nonce: None,
        idempotency: None,
    }
}

pub(crate) fn key(key: &str, body: &[u8]) -> Idempotency {
    Idempotency { scope: "someone".into(), route: "POST /cards".into(), key: key.into(), body: Digest::of(body) }
}

pub(crate) fn refused<T: std::fmt::Debug>(result: StoreResult<T>) -> Refusal {
    match result {
        Err(StoreError::Refused(refusal)) => *refusal,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) fn code<T: std::fmt::Debug>(result: StoreResult<T>) -> Code {
    refused(result).code
}
