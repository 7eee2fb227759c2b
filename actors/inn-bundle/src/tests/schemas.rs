//! JSON Schemas of capabilities: strangers write them, and strangers' payloads are validated with them.

use super::*;

fn load_schema(schema: &Value) -> Result<AppDefinition, Refusal> {
    let innkeeper = json!({"capabilities": [{"name": "a", "sentence": "Do", "input": schema, "result": {}}]});
    let files = edit(a2app_project(), "manifest.json", r#""port":"{{PORT}}""#, &format!(r#""innkeeper":{innkeeper}"#));
    load(&opened(files), now())
}

#[track_caller]
fn refused(schema: &Value, what: &str) {
    assert_violation(&load_schema(schema).unwrap_err(), "app/manifest.json#innkeeper.capabilities[0].input", what);
}

#[test]
fn sane_schemas_are_accepted() {
    for schema in [
        json!(true),
        json!({}),
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://example.com/x", "type": "object",
            "required": ["board"], "properties": {"board": {"type": "string", "pattern": "^[a-z0-9]{15}$"}}}),
        json!({"$defs": {"card": {"type": "object", "properties": {"title": {"type": "string"}}}},
            "type": "array", "items": {"$ref": "#/$defs/card"}}),
        json!({"properties": {"$ref": {"type": "string"}, "const": {"type": "object"}}}),
        json!({"const": {"$ref": "https://example.com/only-data"}}),
    ] {
        load_schema(&schema).unwrap_or_else(|refusal| panic!("{schema}: {refusal}"));
    }
}

#[test]
fn schemas_that_do_not_compile_are_refused() {
    refused(&json!({"type": "thing"}), "not a valid JSON Schema");
    refused(&json!({"type": "string", "pattern": "("}), "not a valid JSON Schema");
    refused(&json!({"minimum": "1"}), "not a valid JSON Schema");
    refused(&json!([]), "must be a JSON Schema");
    refused(&json!("object"), "must be a JSON Schema");
    refused(&json!({"$schema": "https://example.com/unknown"}), "");
}

#[test]
fn schemas_cannot_reach_outside() {
    for target in ["https://example.com/s.json", "file:///etc/passwd", "other.json", "//host/x", "#anchor"] {
        refused(&json!({"properties": {"a": {"$ref": target}}}), "only references into the same schema");
    }
    refused(&json!({"$ref": "#/$defs/missing"}), "nothing there");
    refused(&json!({"properties": {"a": {"$id": "https://example.com/b"}}}), "`$id` inside");
    refused(&json!({"$dynamicRef": "#a"}), "`$dynamicRef` is not supported");
}

#[test]
fn schemas_that_never_end_are_refused() {
    refused(&json!({"$ref": "#"}), "circle");
    refused(&json!({"allOf": [{"$ref": "#"}]}), "circle");
    refused(&json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}), "circle");
    refused(&json!({"$defs": {"t": {"properties": {"next": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}), "circle");
    refused(&json!({"properties": {"a": {"properties": {"b": {"$ref": "#/properties/a"}}}}}), "circle");
}

#[test]
fn schemas_that_double_at_every_step_are_refused() {
    let mut defs = serde_json::Map::new();
    for n in 0..16 {
        let next = format!("#/$defs/d{}", n + 1);
        defs.insert(format!("d{n}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
    }
    defs.insert("d16".to_owned(), json!({"type": "string"}));
    refused(&json!({"$defs": defs, "$ref": "#/$defs/d0"}), "expands to more than");
    let mut deep = json!({"type": "string"});
    for _ in 0..50 {
        deep = json!({"not": {"items": deep}});
    }
    refused(&deep, "nested deeper");
    refused(&json!({"description": "x".repeat(70_000)}), "64 KiB");
}
