use std::sync::Arc;

use chrono::TimeZone;
use inn_protocol::model::Model;
use inn_protocol::{AppId, Digest, TenantId};

use super::*;

/// The model of the kanban board behind the published `schemaVersion`.
fn kanban() -> Model {
    let auto = |name: &str| json!({"id": name, "name": name, "type": "autodate", "onCreate": true});
    let id = || json!({"id": "id", "name": "id", "type": "text", "system": true, "primaryKey": true, "required": true});
    let text = |name: &str, max: u32, required: bool| json!({"id": name, "name": name, "type": "text", "max": max, "required": required});
    let relation = |name: &str, to: &str, max: u32| json!({"id": name, "name": name, "type": "relation", "collectionId": to, "maxSelect": max, "required": max == 1});
    let system = |name: &str, kind: &str, hidden: bool| json!({"id": name, "name": name, "type": kind, "system": true, "hidden": hidden});
    serde_json::from_value(json!({"collections": [
        {"id": "u", "name": "users", "type": "auth", "fields": [
            id(), system("password", "password", true), system("tokenKey", "text", true), system("email", "email", false),
            system("emailVisibility", "bool", false), system("verified", "bool", false), text("name", 255, false),
            {"id": "avatar", "name": "avatar", "type": "file", "maxSelect": 1}, auto("created"), auto("updated"),
        ]},
        {"id": "l", "name": "lists", "type": "base", "fields": [
            id(), text("title", 100, true), relation("board", "b", 1),
            {"id": "p", "name": "position", "type": "number", "max": 9999}, auto("created"), auto("updated"),
        ]},
        {"id": "a", "name": "labels", "type": "base", "fields": [
            id(), text("name", 50, true), text("color", 0, false), relation("board", "b", 1),
        ]},
        {"id": "c", "name": "cards", "type": "base", "fields": [
            id(), text("title", 255, true), text("description", 0, false), relation("list", "l", 1),
            {"id": "p", "name": "position", "type": "number"}, {"id": "d", "name": "due_date", "type": "date"},
            {"id": "r", "name": "priority", "type": "select", "maxSelect": 1, "values": ["none", "low", "medium", "high", "urgent"]},
            {"id": "x", "name": "archived", "type": "bool"}, {"id": "k", "name": "checklist", "type": "json"},
            relation("labels", "a", 99), auto("created"), auto("updated"),
        ]},
        {"id": "b", "name": "boards", "type": "base", "fields": [id(), text("name", 100, true), auto("created"), auto("updated")]},
        {"id": "s", "name": "_superusers", "type": "auth", "fields": [id()]},
        {"id": "v", "name": "report", "type": "view", "fields": [id()]},
    ]}))
    .unwrap()
}

fn app() -> AppSnapshot {
    let operations = json!([{
        "name": "cards.clear-archived", "description": "Remove archived cards", "destructive": true, "params": {},
        "executor": {"type": "crud", "collection": "cards", "action": "delete", "filter": "archived = true"},
    }]);
    let definition = json!({
        "declaredId": "cde3d7c6", "name": "Kanban Board", "dialect": "1.0", "authMode": "none", "model": kanban(),
        "operations": operations,
        "operationsJson": {"opsVersion": 1, "operations": operations},
        "capabilities": [], "limits": {},
    });
    AppSnapshot {
        id: AppId::new(),
        tenant: TenantId::PLATFORM,
        slug: "kanban".to_owned(),
        release: Digest::of(b"release"),
        epoch: 1,
        definition: Arc::new(serde_json::from_value(definition).unwrap()),
        ui_files: Arc::default(),
        consented: Vec::new(),
    }
}

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 30, 9, 15, 0).unwrap()
}

#[test]
fn the_published_schema_version_of_the_kanban_board_is_reproduced() {
    assert_eq!(
        version::rendered(&kanban()),
        "boards(created:datetime,id:string,name:string,updated:datetime);\
         cards(archived:boolean,checklist:json,created:datetime,description:string,due_date:datetime,id:string,\
         labels:list<ref>,list:ref,position:number,priority:enum,title:string,updated:datetime);\
         labels(board:ref,color:string,id:string,name:string);\
         lists(board:ref,created:datetime,id:string,position:number,title:string,updated:datetime);\
         users(avatar:binary,created:datetime,email:string,emailVisibility:boolean,id:string,name:string,\
         password:string,tokenKey:string,updated:datetime,verified:boolean)"
    );
    assert_eq!(schema_version(&kanban()), "sv_c28c7d1f");
}

#[test]
fn identity_names_the_app_the_contract_and_the_clock() {
    let app = app();
    let identity = identity(&app, now());
    assert_eq!(identity["a2app"], true);
    assert_eq!(identity["protocol"], "1.0");
    assert_eq!(identity["schemaVersion"], "sv_c28c7d1f");
    assert_eq!(identity["serverNow"], "2026-07-30 09:15:00Z");
    assert_eq!(identity["serverTzOffsetMinutes"], 0);
    assert_eq!((&identity["app"]["id"], &identity["app"]["name"]), (&json!("cde3d7c6"), &json!("Kanban Board")));
    assert_eq!(identity["app"]["pbVersion"], "0.39.7");
    assert_eq!(identity["app"]["install"], app.id.to_string());
}

#[test]
fn describe_speaks_the_closed_vocabulary() {
    let describe = describe(&app(), now());
    let names: Vec<_> = describe["entities"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["users", "lists", "labels", "cards", "boards"], "no views, nothing that begins with _");
    let cards = &describe["entities"]["cards"];
    assert_eq!((&cards["label"], &cards["auth"]), (&json!("title"), &json!(false)));
    assert_eq!(cards["records"], "/api/collections/cards/records");
    for (field, told) in [
        ("id", json!({"type": "string", "required": true, "readOnly": true})),
        ("title", json!({"type": "string", "required": true, "max": 255})),
        ("list", json!({"type": "ref", "required": true, "entity": "lists"})),
        ("labels", json!({"type": "list<ref>", "entity": "labels"})),
        ("due_date", json!({"type": "datetime"})),
        ("priority", json!({"type": "enum", "values": ["none", "low", "medium", "high", "urgent"]})),
        ("checklist", json!({"type": "json"})),
        ("created", json!({"type": "datetime", "readOnly": true})),
    ] {
        assert_eq!(cards["fields"][field], told, "{field}");
    }
    assert_eq!(describe["entities"]["lists"]["fields"]["position"], json!({"type": "number", "max": 9999}));
    let users = &describe["entities"]["users"];
    assert_eq!(users["auth"], true);
    assert_eq!(users["fields"].get("password"), None);
    assert_eq!(users["fields"]["tokenKey"]["readOnly"], true);
    assert_eq!(users["fields"]["email"].get("readOnly"), None);
    let keys: Vec<_> = describe["conventions"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "read",
            "write",
            "datetime",
            "ref",
            "operations",
            "destructive",
            "scope",
            "limits",
            "agent",
            "errors",
            "triggers"
        ]
    );
}

#[test]
fn a_short_text_named_like_a_date_is_a_day_key() {
    let mut app = app();
    let mut definition = (*app.definition).clone();
    let field = json!({"id": "day", "name": "day", "type": "text", "max": 10});
    definition.model.collections[4].fields.push(serde_json::from_value(field).unwrap());
    app.definition = Arc::new(definition);
    let described = describe(&app, now());
    assert_eq!(
        described["entities"]["boards"]["fields"]["day"],
        json!({"type": "string", "max": 10, "format": "YYYY-MM-DD"})
    );
}

#[test]
fn operations_are_served_as_they_were_written() {
    let app = app();
    assert_eq!(operations(&app.definition), app.definition.operations_json);
    assert_eq!(describe(&app, now())["operations"], app.definition.operations_json["operations"]);
    let mut without = (*app.definition).clone();
    without.operations_json = Value::Null;
    assert_eq!(operations(&without)["operations"][0]["name"], "cards.clear-archived");
}

#[test]
fn the_strong_version_moves_where_the_weak_one_stays() {
    let app = app();
    let mut narrower = (*app.definition).clone();
    narrower.model.collections[3].fields[1].required = false;
    assert_eq!(schema_version(&narrower.model), schema_version(&app.definition.model));
    assert_ne!(strong_version(&narrower), strong_version(&app.definition));
    let mut fewer = (*app.definition).clone();
    fewer.operations.clear();
    assert_ne!(strong_version(&fewer), strong_version(&app.definition));
    assert_eq!(strong_version(&fewer).len(), 3 + 64);
}
