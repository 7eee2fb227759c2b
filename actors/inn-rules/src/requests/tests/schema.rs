use inn_protocol::Code;
use serde_json::{Value, json};

use crate::requests::{MAX_INSTANCE_BYTES, check_is_schema, check_schema};

fn board() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "required": ["board", "cards"],
        "additionalProperties": false,
        "properties": {"board": {"type": "string", "minLength": 1}, "cards": {"type": "array", "items": {"$ref": "#/$defs/card"}}},
        "$defs": {"card": {"type": "object", "properties": {"id": {"type": "string"}, "points": {"type": "integer", "maximum": 9}}}},
    })
}

#[test]
fn a_payload_that_fits_passes() {
    let payload = json!({"board": "b1", "cards": [{"id": "c1", "points": 3}]});
    assert_eq!(check_schema(&board(), &payload, "payload"), Ok(()));
}

#[test]
fn every_violation_is_named_by_its_pointer_and_code() {
    let payload = json!({"board": "", "cards": [{"points": 3}, {"points": 10}], "constructor": 1});
    let refusal = check_schema(&board(), &payload, "payload").unwrap_err();
    assert_eq!(refusal.code, Code::InvalidParameter);
    let mut places: Vec<_> = refusal.violations.iter().map(|v| v.field.as_str()).collect();
    places.sort_unstable();
    assert_eq!(places, ["payload", "payload/board", "payload/cards/1/points"]);
    let refusal = check_schema(&board(), &payload, "result").unwrap_err();
    assert_eq!(refusal.code, Code::InvalidResult);
}

#[test]
fn a_large_instance_is_refused_before_it_is_looked_at() {
    let payload = json!({"board": "x".repeat(MAX_INSTANCE_BYTES), "cards": []});
    assert_eq!(check_schema(&board(), &payload, "payload").unwrap_err().code, Code::TooLarge);
}

#[test]
fn an_answer_never_echoes_a_large_value() {
    let payload = json!({"board": 5, "cards": "y".repeat(100_000)});
    let refusal = check_schema(&board(), &payload, "payload").unwrap_err();
    assert!(serde_json::to_string(&refusal).unwrap().len() < 2_000);
}

#[test]
fn hostile_schemas_are_refused() {
    let doubling: serde_json::Map<String, Value> = (0..30)
        .map(|n| {
            let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
            (format!("d{n}"), json!({"allOf": [next, next]}))
        })
        .chain([("d30".to_owned(), json!(true))])
        .collect();
    let deep = (0..100).fold(json!(true), |inner, _| json!({"not": inner}));
    let cases = [
        ("remote reference", json!({"$ref": "https://example.com/schema.json"})),
        ("file reference", json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}})),
        ("loop", json!({"$ref": "#"})),
        ("loop through two", json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})),
        ("nowhere", json!({"$ref": "#/$defs/none"})),
        ("doubling references", json!({"$defs": doubling, "$ref": "#/$defs/d0"})),
        ("deep", deep),
        ("inner $id", json!({"properties": {"a": {"$id": "https://example.com/x", "type": "string"}}})),
        ("not a schema", json!({"type": "nonsense"})),
        ("look-around pattern", json!({"pattern": "(?=a)b"})),
        ("huge pattern", json!({"pattern": "((a{1000}){1000}){1000}"})),
        ("large", json!({"description": "x".repeat(70_000)})),
    ];
    for (name, schema) in cases {
        let refusal = check_is_schema(&schema).expect_err(name);
        assert_eq!(refusal.code, Code::InvalidBundle, "{name}");
    }
}

#[test]
fn names_and_data_are_not_keywords() {
    let schema = json!({
        "properties": {"$ref": {"type": "string"}, "id": {"const": {"$ref": "x", "id": "y"}}, "enum": {"enum": [{"$id": "z"}]}},
        "default": {"$ref": "nowhere"},
    });
    assert_eq!(check_is_schema(&schema), Ok(()));
    assert_eq!(check_schema(&schema, &json!({"$ref": "free text"}), "payload"), Ok(()));
    assert!(check_is_schema(&json!({"properties": {"enum": {"$ref": "#"}}})).is_err());
}
