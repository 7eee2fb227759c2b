//! The A2App half: manifest, operations, capabilities, scripts.

use inn_protocol::app::{AuthMode, CrudAction, Dialect, Executor, ParamKind};

use super::*;

fn manifest(from: &str, to: &str) -> Files {
    edit(a2app_project(), "manifest.json", from, to)
}

/// The project with these operations.
fn operations(list: &Value) -> Files {
    with(a2app_project(), "operations.json", &json!({"opsVersion": 1, "operations": list}).to_string())
}

fn operation(spoil: impl FnOnce(&mut Value)) -> Files {
    let mut one = json!({"name": "cards.do", "description": "Do it.", "params": {},
        "executor": {"type": "http", "method": "POST", "path": "/api/ops/cards/do"}});
    spoil(&mut one);
    operations(&json!([one]))
}

/// The project with these members under `innkeeper`.
fn extras(innkeeper: &Value) -> Files {
    manifest(r#""port":"{{PORT}}""#, &format!(r#""innkeeper":{innkeeper}"#))
}

#[test]
fn a_project_loads_with_everything_it_says() {
    let app = loaded(a2app_project());
    assert_eq!(
        (app.declared_id.as_str(), app.name.as_str(), app.description.as_str()),
        ("board-app", "Board", "Cards.")
    );
    assert_eq!((app.dialect, app.auth_mode), (Dialect::A2App1, AuthMode::None));
    assert_eq!(app.ui_root.as_deref(), Some("app/pb/pb_public"));
    assert_eq!(app.operations_json["operations"][0]["name"], "cards.list");
    let Executor::Crud { collection, action, filter } = &app.operations[0].executor else { panic!("crud") };
    assert_eq!((collection.as_str(), *action, filter), ("cards", CrudAction::List, &None));
    assert!(app.aip53.is_none());
}

#[test]
fn a_template_manifest_is_filled_in() {
    let template = r#"{"id":"{{PROJECT_ID}}","name":"{{PROJECT_NAME}}","description":"{{PROJECT_DESCRIPTION}}","livingUIVersion":2,
        "createdAt":"{{CREATED_AT}}","authMode":"multi-user","port":"{{PORT}}","pipeline":{"start":"rm -rf /","health":"/api/health"}}"#;
    let app = loaded(with(a2app_project(), "manifest.json", template));
    assert!(app.declared_id.starts_with("app-"), "{}", app.declared_id);
    assert_eq!((app.name.as_str(), app.description.as_str()), ("App", ""));
    assert_eq!(app.auth_mode, AuthMode::MultiUser);

    let named =
        template.replace("{{PROJECT_NAME}}", "Kanban Board!").replace("{{PROJECT_DESCRIPTION}}", "Made {{CREATED_AT}}");
    let app = loaded(with(a2app_project(), "manifest.json", &named));
    assert!(app.declared_id.starts_with("kanban-board-"), "{}", app.declared_id);
    assert_eq!(app.declared_id.len(), "kanban-board-".len() + 8);
    assert_eq!(app.description, "Made 2026-07-31T12:00:00Z");
    let next = loaded(with(with(a2app_project(), "manifest.json", &named), "pb/pb_public/x.js", "1"));
    assert_eq!(next.declared_id, app.declared_id, "the id survives a new release");
}

#[test]
fn manifest_rules_are_kept() {
    for (from, to, place, what) in [
        (r#""authMode":"none""#, r#""authMode":"{{AUTH_MODE}}""#, "#authMode", "multi-user"),
        (r#""authMode":"none","#, "", "#authMode", "required"),
        (r#""livingUIVersion":2"#, r#""livingUIVersion":1"#, "#livingUIVersion", "must be 2"),
        (r#""livingUIVersion":2"#, r#""agentAppVersion":"3""#, "#agentAppVersion", "0.1.0"),
        (r#""livingUIVersion":2,"#, "", "#livingUIVersion", "required"),
        (r#""name":"Board","#, "", "#name", "required"),
        (r#""name":"Board""#, r#""name":"  ""#, "#name", "blank"),
        (r#""id":"board-app""#, r#""id":7"#, "#id", "text"),
        (r#""port":"{{PORT}}""#, r#""port":99999"#, "#port", "65535"),
        (r#""port":"{{PORT}}""#, r#""pipeline":{"start":1}"#, "#pipeline.start", "text"),
    ] {
        assert_violation(&load_refusal(manifest(from, to)), &format!("app/manifest.json{place}"), what);
    }
    let newer = loaded(manifest(r#""livingUIVersion":2"#, r#""agentAppVersion":"0.1.0""#));
    assert_eq!(newer.dialect, Dialect::A2App01);
    assert_eq!(loaded(manifest(r#""livingUIVersion":2"#, r#""agentAppVersion":2"#)).dialect, Dialect::A2App1);
}

#[test]
fn a_document_that_is_no_json_is_named() {
    for path in ["operations.json", "pb/pb_schema.json"] {
        assert_violation(&load_refusal(with(a2app_project(), path, "{]")), &format!("app/{path}"), "must be JSON");
    }
    let twice = r#"{"opsVersion":1,"opsVersion":1,"operations":[]}"#;
    let refusal = load_refusal(with(a2app_project(), "operations.json", twice));
    assert_violation(&refusal, "app/operations.json", "`opsVersion` is written twice");
}

#[test]
fn operation_rules_are_kept() {
    type Spoil = fn(&mut Value);
    let cases: &[(Spoil, &str, &str)] = &[
        (|op| op["name"] = json!("Bad Name"), ".name", "^[a-z]"),
        (|op| op["name"] = json!("a".repeat(65)), ".name", "^[a-z]"),
        (|op| op["description"] = json!(""), ".description", "1 to 500"),
        (|op| op["description"] = json!("x".repeat(501)), ".description", "1 to 500"),
        (|op| op["destructive"] = json!("yes"), ".destructive", "true or false"),
        (|op| op["extra"] = json!(1), ".extra", "unknown key"),
        (|op| op["module"] = json!("m"), ".module", "unknown key"),
        (|op| op["params"] = Value::Null, ".params", "required"),
        (|op| op["params"] = json!({"a": {"type": "date"}}), ".params.a.type", "boolean"),
        (|op| op["params"] = json!({"a": {"type": "string", "max": 1}}), ".params.a.max", "unknown key"),
        (|op| op["params"] = json!({"a": {"type": "number", "default": "1"}}), ".params.a.default", "own type"),
        (|op| op["params"] = json!({"a": {"type": "string", "enum": []}}), ".params.a.enum", "at least one"),
        (|op| op["params"] = json!({"a": {"type": "string", "enum": [1]}}), ".params.a.enum[0]", "own type"),
        (
            |op| op["params"] = json!({"a": {"type": "string", "enum": ["x"], "default": "y"}}),
            ".params.a.default",
            "enum",
        ),
        (|op| op["executor"] = Value::Null, ".executor", "required"),
        (|op| op["executor"] = json!({"type": "shell"}), ".executor.type", "http"),
        (|op| op["executor"]["upstream"] = json!({}), ".executor.upstream", "unknown key"),
        (|op| op["executor"]["method"] = json!("TRACE"), ".executor.method", "GET"),
        (|op| op["executor"]["path"] = json!("/ops/x"), ".executor.path", "under /api/"),
        (|op| op["executor"]["path"] = json!("/api/ops/../x"), ".executor.path", "plain path"),
        (|op| op["executor"]["path"] = json!("/api/ops/x?y=1"), ".executor.path", "plain path"),
        (|op| op["executor"]["path"] = json!("/api/_ops"), ".executor.path", "route of the host"),
        (|op| op["executor"]["path"] = json!("/api/collections/cards/records"), ".executor.path", "route of the host"),
        (
            |op| op["executor"] = json!({"type": "job", "method": "GET", "path": "/api/ops/x"}),
            ".executor.method",
            "POST",
        ),
        (
            |op| op["executor"] = json!({"type": "crud", "collection": "ghosts", "action": "list"}),
            ".executor.collection",
            "no such",
        ),
        (
            |op| op["executor"] = json!({"type": "crud", "collection": "cards", "action": "drop"}),
            ".executor.action",
            "list",
        ),
        (
            |op| op["executor"] = json!({"type": "crud", "collection": "cards", "action": "delete"}),
            ".executor",
            "param `id`",
        ),
        (
            |op| op["executor"] = json!({"type": "crud", "collection": "cards", "action": "create", "filter": "a=1"}),
            ".executor.filter",
            "no filter",
        ),
        (
            |op| {
                op["params"] = json!({"colour": {"type": "string"}});
                op["executor"] = json!({"type": "crud", "collection": "cards", "action": "create"});
            },
            ".executor",
            "`colour` is not a field",
        ),
    ];
    for (spoil, place, what) in cases {
        let refusal = load_refusal(operation(spoil));
        assert_violation(&refusal, &format!("app/operations.json#operations[0]{place}"), what);
    }
    let version = with(a2app_project(), "operations.json", r#"{"opsVersion":2,"operations":[],"x":1}"#);
    let refusal = load_refusal(version);
    assert_violation(&refusal, "app/operations.json#opsVersion", "must be 1");
    assert_violation(&refusal, "app/operations.json#x", "unknown key");
}

#[test]
fn schedules_that_can_never_fire_are_refused() {
    for good in ["hourly", "every 5m", "every 30s", "every 24h", "daily 00:00", "daily 23:59"] {
        let app = loaded(operation(|op| op["schedule"] = json!(good)));
        assert_eq!(app.operations[0].schedule.as_deref(), Some(good));
    }
    for bad in [
        "daily 29:00",
        "every 0s",
        "every s",
        "every -1s",
        "every +5m",
        "daily 24:00",
        "daily 9:00",
        "daily 12:60",
        "weekly",
        "every 5d",
        "Hourly",
        "every 99999999999s",
        "hourly ",
        "daily 12:00:00",
    ] {
        let refusal = load_refusal(operation(|op| op["schedule"] = json!(bad)));
        assert_violation(&refusal, "app/operations.json#operations[0].schedule", "hourly");
    }
}

#[test]
fn names_and_routes_are_unique() {
    let one = json!({"name": "a", "description": "d", "params": {},
        "executor": {"type": "http", "method": "POST", "path": "/api/ops/a"}});
    let refusal = load_refusal(operations(&json!([one, one])));
    assert_violation(&refusal, "app/operations.json#operations[1]", "declared twice");
    assert_violation(&refusal, "app/operations.json#operations[1]", "already at POST /api/ops/a");
}

#[test]
fn http_job_and_system_operations_load() {
    let app = loaded(operations(&json!([
        {"name": "health", "description": "d", "system": true, "params": {}, "executor": {"type": "http", "method": "GET", "path": "/api/health"}},
        {"name": "send", "description": "d", "params": {"n": {"type": "number", "required": true, "enum": [1, 2]}},
         "executor": {"type": "http", "method": "POST", "path": "/api/ops/send"}},
        {"name": "sync", "description": "d", "params": {}, "executor": {"type": "job", "method": "POST", "path": "/api/ops/sync"}},
        {"name": "purge", "description": "d", "destructive": true, "params": {"id": {"type": "string", "required": true}},
         "executor": {"type": "crud", "collection": "cards", "action": "delete", "filter": "title = 'old'"}},
    ])));
    assert_eq!(app.operations.len(), 4);
    assert!(app.operations[0].system);
    assert_eq!(app.operations[1].params["n"].kind, ParamKind::Number);
    assert!(app.operations[3].destructive);
}

#[test]
fn an_operation_asks_agents_for_a_declared_capability() {
    let asks = |capability: &str| {
        let operation = json!({"name": "sum-up", "description": "d", "params": {"board": {"type": "string"}},
            "executor": {"type": "agent", "capability": capability}});
        let declared = json!({"capabilities": [{"name": "summarise", "sentence": "Do", "input": {}, "result": {}}]});
        let mut project = extras(&declared);
        project
            .extend(operations(&json!([operation])).into_iter().filter(|(path, _)| path.ends_with("operations.json")));
        project
    };
    let app = loaded(asks("summarise"));
    assert_eq!(app.operations[0].executor, Executor::Agent { capability: "summarise".to_owned() });
    let refusal = load_refusal(asks("translate"));
    assert_violation(&refusal, "app/operations.json#operations.sum-up.executor.capability", "declares no capability");
    let mut more = asks("summarise");
    let text = String::from_utf8(more["operations.json"].clone())
        .unwrap()
        .replace("\"type\":\"agent\"", "\"type\":\"agent\",\"path\":\"/api/x\"");
    more.insert("operations.json".to_owned(), text.into_bytes());
    load_refusal(more);
}

#[test]
fn an_app_without_operations_has_none() {
    let app = loaded(without(a2app_project(), "operations.json"));
    assert_eq!(app.operations_json, json!({"opsVersion": 1, "operations": []}));
}

#[test]
fn scripts_that_would_not_run_are_refused_by_name() {
    let refusal = load_refusal(with(a2app_project(), "pb/pb_hooks/ops.pb.js", "routerAdd()"));
    assert_violation(&refusal, "app/pb/pb_hooks/ops.pb.js", "hooks are not supported yet");
    let refusal = load_refusal(with(without(a2app_project(), "pb/pb_schema.json"), "pb/pb_migrations/1_init.js", "x"));
    assert_violation(&refusal, "app/pb/pb_migrations/1_init.js", "migrations are not supported yet");
    // With a schema the migrations are history; the platform's own hooks and plain modules are replaced or unused.
    let fine = with(a2app_project(), "pb/pb_migrations/1_init.js", "x");
    let fine = with(fine, "pb/pb_hooks/_system.pb.js", "x");
    loaded(with(fine, "pb/pb_hooks/util.js", "x"));
}

#[test]
fn capabilities_and_limits_are_read() {
    let app = loaded(extras(&json!({
        "capabilities": [{"name": "summarise-board", "sentence": "Summarise one board",
            "input": {"type": "object"}, "result": true, "leaseSeconds": 5, "attempts": 20}],
        "limits": {"maxBodyBytes": 1000, "maxOpenRequests": 5},
    })));
    let capability = app.capability("summarise-board").unwrap();
    assert_eq!((capability.lease_seconds, capability.attempts), (5, 20));
    assert_eq!((app.limits.max_body_bytes, app.limits.max_open_requests), (Some(1000), Some(5)));
    let app = loaded(extras(&json!({"capabilities": [{"name": "a", "sentence": "Do", "input": {}, "result": {}}]})));
    assert_eq!((app.capabilities[0].lease_seconds, app.capabilities[0].attempts), (60, 3));
    let frontmatter =
        "innkeeper:\n  capabilities: [{ name: file, sentence: File one paper, input: {}, result: {} }]\nui:\n";
    let app = loaded(edit(aip53_app(), APP_MD, "ui:\n", frontmatter));
    assert_eq!(app.capabilities[0].name, "file");
}

#[test]
fn capability_rules_are_kept() {
    type Spoil = fn(&mut Value);
    let cases: &[(Spoil, &str, &str)] = &[
        (|c| c["name"] = json!("Bad"), ".name", "^[a-z]"),
        (|c| c["sentence"] = json!(""), ".sentence", "1 to 200"),
        (|c| c["sentence"] = json!("x".repeat(201)), ".sentence", "1 to 200"),
        (|c| c["sentence"] = json!("two\nlines"), ".sentence", "readable line"),
        (|c| c["input"] = Value::Null, ".input", "required"),
        (|c| c["result"] = json!({"type": "thing"}), ".result", "JSON Schema"),
        (|c| c["leaseSeconds"] = json!(4), ".leaseSeconds", "5 to 3600"),
        (|c| c["leaseSeconds"] = json!(3601), ".leaseSeconds", "5 to 3600"),
        (|c| c["attempts"] = json!(0), ".attempts", "1 to 20"),
        (|c| c["attempts"] = json!(21), ".attempts", "1 to 20"),
        (|c| c["agents"] = json!(["a"]), ".agents", "unknown key"),
    ];
    for (spoil, place, what) in cases {
        let mut capability = json!({"name": "a", "sentence": "Do it", "input": {}, "result": {}});
        spoil(&mut capability);
        let refusal = load_refusal(extras(&json!({"capabilities": [capability]})));
        assert_violation(&refusal, &format!("app/manifest.json#innkeeper.capabilities[0]{place}"), what);
    }
    let one = json!({"name": "a", "sentence": "Do it", "input": {}, "result": {}});
    let refusal = load_refusal(extras(&json!({"capabilities": [one, one]})));
    assert_violation(&refusal, "app/manifest.json#innkeeper.capabilities[1]", "declared twice");
    let refusal = load_refusal(extras(&json!({"grants": [], "limits": {"maxBodyBytes": 0, "other": 1}})));
    assert_violation(&refusal, "app/manifest.json#innkeeper.grants", "unknown key");
    let refusal = load_refusal(extras(&json!({"limits": {"maxBodyBytes": 0, "other": 1}})));
    assert_violation(&refusal, "app/manifest.json#innkeeper.limits.maxBodyBytes", "from 1");
    assert_violation(&refusal, "app/manifest.json#innkeeper.limits.other", "unknown key");
}
