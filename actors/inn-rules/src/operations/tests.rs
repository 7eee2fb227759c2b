use serde_json::json;

use super::*;

fn app() -> AppDefinition {
    serde_json::from_value(json!({
        "declaredId": "x", "name": "x", "dialect": "1.0", "authMode": "none", "model": {"collections": []},
        "operationsJson": null, "capabilities": [], "limits": {},
        "operations": [
            {"name": "cards.move", "description": "Move", "executor": {"type": "crud", "collection": "cards",
             "action": "update", "filter": "archived = false"}, "params": {
                "id": {"type": "string", "required": true},
                "position": {"type": "number", "default": 0},
                "priority": {"type": "string", "enum": ["low", "high"]},
                "level": {"type": "number", "enum": [1, 2]},
                "done": {"type": "boolean"},
            }},
            {"name": "cards.add", "description": "Add", "executor": {"type": "crud", "collection": "cards", "action": "create"}},
            {"name": "cards.open", "description": "Open", "executor": {"type": "crud", "collection": "cards",
             "action": "list", "filter": "done = false"}},
            {"name": "cards.drop", "description": "Drop", "destructive": true,
             "executor": {"type": "crud", "collection": "cards", "action": "delete", "filter": ""}},
            {"name": "emails.send", "description": "Send", "executor": {"type": "http", "method": "POST", "path": "/api/ops/emails/send"}},
            {"name": "quotes", "description": "Read", "executor": {"type": "http", "method": "GET", "path": "/api/ops/quotes"}},
        ],
    }))
    .unwrap()
}

fn check(given: &Value, strict: bool) -> Result<Value, Vec<(String, String)>> {
    let app = app();
    check_params(&app.operations[0], given.as_object().unwrap(), strict).map(Value::Object).map_err(|refusal| {
        assert_eq!((refusal.code, refusal.code.status()), (Code::InvalidParameter, 400));
        refusal.violations.into_iter().map(|v| (v.field, v.expected.unwrap_or_default())).collect()
    })
}

#[test]
fn defaults_are_filled_in_and_texts_become_their_types() {
    assert_eq!(check(&json!({"id": "a"}), true), Ok(json!({"id": "a", "position": 0})));
    let query = json!({"id": "a", "position": "1.5", "done": "true", "level": "2", "priority": "low"});
    assert_eq!(
        check(&query, true),
        Ok(json!({"id": "a", "position": 1.5, "done": true, "level": 2, "priority": "low"}))
    );
    assert_eq!(check(&json!({"id": "a", "done": null, "position": null}), true), Ok(json!({"id": "a", "position": 0})));
}

#[test]
fn an_agent_is_told_everything_that_is_wrong() {
    let given = json!({
        "position": "abc", "priority": "urgent", "level": 3, "done": 1, "constructor": 1,
    });
    let violations = check(&given, true).unwrap_err();
    let told: Vec<_> = violations.iter().map(|(name, expected)| (name.as_str(), expected.as_str())).collect();
    assert_eq!(
        told,
        [
            ("position", "a number"),
            ("priority", "one of: \"low\", \"high\""),
            ("level", "one of: 1, 2"),
            ("done", "true or false"),
            ("constructor", "one of: done, id, level, position, priority"),
            ("id", "a string (it is required)"),
        ]
    );
    for bad in [json!({"id": 5}), json!({"id": ["a"]}), json!({"id": null}), json!({"id": "a", "position": "Infinity"})]
    {
        assert_eq!(check(&bad, true).unwrap_err().len(), 1, "{bad}");
    }
}

#[test]
fn the_apps_own_page_may_send_what_its_hook_understands() {
    let given = json!({"priority": ["a"], "extra": {"b": 1}});
    assert_eq!(check(&given, false), Ok(json!({"priority": ["a"], "extra": {"b": 1}, "position": 0})));
}

#[test]
fn a_crud_operation_becomes_a_record_call() {
    let app = app();
    let call = |name: &str, params: Value| {
        crud_call(find_by_name(&app, name).unwrap(), params.as_object().unwrap()).map_err(|refusal| refusal.code)
    };
    let map = |value: Value| value.as_object().unwrap().clone();
    let collection = || "cards".to_owned();
    assert_eq!(
        call("cards.move", json!({"id": "a", "position": 3})),
        Ok(Some(CrudCall::Update {
            collection: collection(),
            id: "a".to_owned(),
            body: map(json!({"position": 3})),
            filter: Some("archived = false".to_owned()),
        }))
    );
    assert_eq!(
        call("cards.add", json!({"title": "t", "id": "abcdefghijklmno"})),
        Ok(Some(CrudCall::Create {
            collection: collection(),
            body: map(json!({"title": "t", "id": "abcdefghijklmno"}))
        }))
    );
    assert_eq!(
        call("cards.open", json!({})),
        Ok(Some(CrudCall::List { collection: collection(), filter: Some("done = false".to_owned()) }))
    );
    assert_eq!(
        call("cards.drop", json!({"id": "a"})),
        Ok(Some(CrudCall::Delete { collection: collection(), id: "a".to_owned(), filter: None }))
    );
    for params in [json!({}), json!({"id": ""}), json!({"id": 1}), json!({"id": null})] {
        assert_eq!(call("cards.drop", params), Err(Code::InvalidParameter));
    }
    assert_eq!(call("quotes", json!({})), Ok(None));
}

#[test]
fn an_operation_is_found_by_its_own_path_and_by_its_name() {
    let app = app();
    let found = |method: &str, path: &str| find_by_path(&app, method, path).map(|operation| operation.name.as_str());
    assert_eq!(found("POST", "/api/ops/emails/send"), Some("emails.send"));
    assert_eq!(found("POST", "/api/ops/emails.send"), Some("emails.send"));
    assert_eq!(found("post", "/api/ops/cards.move"), Some("cards.move"));
    assert_eq!(found("GET", "/api/ops/quotes"), Some("quotes"));
    assert_eq!(found("POST", "/api/ops/quotes"), Some("quotes"));
    for (method, path) in [
        ("GET", "/api/ops/emails/send"),
        ("GET", "/api/ops/cards.move"),
        ("POST", "/api/ops/"),
        ("POST", "/api/ops/nope"),
        ("POST", "/api/ops/cards.move/"),
        ("POST", "cards.move"),
    ] {
        assert_eq!(found(method, path), None, "{method} {path}");
    }
    assert_eq!(allowed_methods(&app, "/api/ops/quotes"), ["GET", "POST"]);
    assert_eq!(allowed_methods(&app, "/api/ops/nope"), [""; 0]);
}
