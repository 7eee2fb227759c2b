//! The typed app as others use it.

use inn_protocol::app::{AppDefinition, AuthMode};
use inn_protocol::scope::Scope;
use proptest::prelude::*;

use super::*;
use crate::ui_path;

/// Every type of field, with every option set.
fn every_kind() -> Value {
    json!([{"name": "things", "listRule": "", "viewRule": "@request.auth.id != ''", "fields": [
        {"name": "text", "type": "text", "required": true, "min": 1, "max": 9, "pattern": "^a", "autogeneratePattern": "[a]{3}"},
        {"name": "editor", "type": "editor", "maxSize": 10},
        {"name": "number", "type": "number", "min": -1.5, "max": 2, "onlyInt": true},
        {"name": "bool", "type": "bool", "hidden": true},
        {"name": "email", "type": "email", "onlyDomains": ["example.com"]},
        {"name": "url", "type": "url", "exceptDomains": ["example.com"]},
        {"name": "date", "type": "date", "min": "2024-01-01 00:00:00.000Z"},
        {"name": "autodate", "type": "autodate", "onCreate": true, "onUpdate": true},
        {"name": "select", "type": "select", "values": ["a", "b"], "maxSelect": 2},
        {"name": "relation", "type": "relation", "collectionId": "things", "cascadeDelete": true, "maxSelect": 2, "minSelect": 1},
        {"name": "file", "type": "file", "maxSelect": 2, "maxSize": 7, "mimeTypes": ["image/png"], "thumbs": ["1x1"], "protected": true},
        {"name": "json", "type": "json", "maxSize": 7},
        {"name": "geoPoint", "type": "geoPoint"},
        {"name": "password", "type": "password", "min": 9, "max": 20, "cost": 11},
    ]}, {"name": "members", "type": "auth"}])
}

#[test]
fn a_definition_survives_json() {
    let mut files = with_collections(&every_kind());
    files.extend(aip53_app());
    let app = loaded(files);
    let text = serde_json::to_string(&app).unwrap();
    let back: AppDefinition = serde_json::from_str(&text).unwrap();
    assert_eq!(back, app);
    // Also through a value whose members were sorted, as PostgreSQL's jsonb gives it back.
    let back: AppDefinition = serde_json::from_value(sorted(serde_json::to_value(&app).unwrap())).unwrap();
    assert_eq!(back, app);
    assert_eq!(app.model.collection("things").unwrap().fields.len(), 15);
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            members.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then(a.cmp(b)));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[test]
fn with_both_halves_the_a2app_manifest_is_the_identity() {
    let mut files = a2app_project();
    files.extend(aip53_app());
    let app = loaded(files);
    assert_eq!((app.declared_id.as_str(), app.name.as_str(), app.version.as_str()), ("board-app", "Board", "1.2.3"));
    assert_eq!(app.ui_root.as_deref(), Some("app/pb/pb_public"));
    assert_eq!(app.aip53.unwrap().agents.len(), 1);
}

#[test]
fn an_aip53_app_may_bring_a_model_and_operations_without_a_manifest() {
    let mut files = aip53_app();
    files.insert("app/pb/pb_schema.json".to_owned(), br#"[{"name":"papers"}]"#.to_vec());
    let app = loaded(files.clone());
    assert!(app.model.collection("papers").is_some());
    assert!(app.operations.is_empty());
    assert_eq!(app.auth_mode, AuthMode::None);
    let operations = r#"{"opsVersion":1,"operations":[{"name":"papers.list","description":"d","params":{},
        "executor":{"type":"crud","collection":"papers","action":"list"}}]}"#;
    let app = loaded(with(files, "app/operations.json", operations));
    assert_eq!(app.scopes().last(), Some(&Scope::Operation("papers.list".to_owned())));
}

#[test]
fn a_capability_of_both_halves_is_declared_once() {
    let capability = r#"{"name":"a","sentence":"Do","input":{},"result":{}}"#;
    let mut files = edit(
        a2app_project(),
        "manifest.json",
        r#""port":"{{PORT}}""#,
        &format!(r#""innkeeper":{{"capabilities":[{capability}],"limits":{{}}}}"#),
    );
    let innkeeper = format!("innkeeper: {{\"capabilities\":[{capability}],\"limits\":{{}}}}\nui:\n");
    files.extend(edit(aip53_app(), APP_MD, "ui:\n", &innkeeper));
    let refusal = load_refusal(files);
    assert_violation(&refusal, ".agentproto/APP.md#innkeeper.capabilities[0]", "declared twice");
    assert_violation(&refusal, ".agentproto/APP.md#innkeeper.limits", "already given");
}

#[test]
fn request_paths_find_members_and_nothing_else() {
    let app = loaded(a2app_project());
    for (request, member) in [
        ("/", "app/pb/pb_public/index.html"),
        ("/assets/app-1a2b.js", "app/pb/pb_public/assets/app-1a2b.js"),
        ("/docs/", "app/pb/pb_public/docs/index.html"),
        ("/a%20b.png", "app/pb/pb_public/a b.png"),
        ("/caf%C3%A9.png", "app/pb/pb_public/café.png"),
    ] {
        assert_eq!(ui_path(&app, request).as_deref(), Some(member), "{request}");
    }
    for request in [
        "",
        "x",
        "/../manifest.json",
        "/a/../../x",
        "/%2e%2e/x",
        "/..%2fx",
        "/a//b",
        "//",
        "/./x",
        "/a\\b",
        "/%5c",
        "/%00",
        "/%",
        "/%2",
        "/%zz",
        "/%ff",
        "/C:/x",
        "/%2Fetc/passwd",
        "/a%0Ab",
    ] {
        assert_eq!(ui_path(&app, request), None, "{request}");
    }
    let no_ui = loaded(without(a2app_project(), "pb/pb_public/index.html"));
    assert_eq!(ui_path(&no_ui, "/"), None);
}

#[test]
fn deep_json_is_refused() {
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        assert_violation(
            &load_refusal(with(a2app_project(), "operations.json", &text)),
            "app/operations.json",
            "must be JSON",
        );
    }
}

#[test]
fn a_bundle_cannot_have_the_host_compile_patterns_without_end() {
    let field = |n: usize| json!({"name": format!("f{n}"), "type": "text", "pattern": format!("^x{n}$")});
    let collection = |n: usize| json!({"name": format!("c{n}"), "fields": (0..101).map(field).collect::<Vec<_>>()});
    let refusal = load_refusal(with_collections(&json!((0..10).map(collection).collect::<Vec<_>>())));
    assert_violation(&refusal, "app/pb/pb_schema.json#[9].fields[91]", "more regular expressions");
}

#[test]
fn a_hostile_text_does_not_make_the_answer_large() {
    let long = "x".repeat(2_000_000);
    let files = edit(a2app_project(), "manifest.json", r#""name":"Board""#, &format!(r#""name":"{long}""#));
    let refusal = load_refusal(files);
    assert!(serde_json::to_string(&refusal).unwrap().len() < 2000);
    let many: Vec<_> = (0..400).map(|n| json!({"name": format!("bad name {n}")})).collect();
    let refusal = load_refusal(with_collections(&json!(many)));
    assert_eq!(refusal.violations.len(), 100);
    assert!(refusal.message.contains("more)"));
}

proptest! {
    #[test]
    fn no_request_path_leaves_the_ui(request in "(/|\\.|%2e|%2f|%5c|%00|a|b|\\\\|:){0,12}") {
        let mut app = loaded(files(&[
            (APP_MD, "---\nschema: app/v1\nid: x\nagents: []\nworkflows: []\nui: { path: ui/index.html }\n---\n"),
            ("ui/index.html", "<p>hi"),
        ]));
        app.ui_root = Some("root".to_owned());
        if let Some(member) = ui_path(&app, &request) {
            prop_assert!(member.starts_with("root/"));
            prop_assert!(member.split('/').all(|segment| !["", ".", ".."].contains(&segment)), "{member}");
            prop_assert!(!member.contains(['\\', '\0']));
        }
    }
}
