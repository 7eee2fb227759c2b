//! The OpenAPI document, made from the endpoint table.

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};

use super::endpoint::{ENDPOINTS, Endpoint, Who};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn serve(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    Ok(respond::ok(incoming.id, &document()))
}

/// OpenAPI 3.1.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in ENDPOINTS {
        let path = paths.entry(endpoint.path.to_owned()).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = path {
            methods.insert(endpoint.method.to_ascii_lowercase(), operation(endpoint));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Innkeeper",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The platform's API. Agents sign every call (RFC 9421, Ed25519, tag \"innkeeper\"); people use a session.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "session": {"type": "http", "scheme": "bearer", "description": "A session token (ses_…) or the session cookie with an exact Origin."},
                "signature": {"type": "apiKey", "in": "header", "name": "Signature", "description": "HTTP Message Signature of the agent's key, with Signature-Input."},
            },
            "schemas": {"Refusal": refusal()},
        },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let path_parameters = endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = path_parameters
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    let query = endpoint.query.iter().map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}));
    parameters.extend(query);
    let operation = json!({
        "summary": endpoint.summary,
        "parameters": parameters,
        "security": security(endpoint.who),
        "responses": {
            "2XX": {"description": "Done"},
            "default": {"description": "Refused", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}},
        },
        "x-innkeeper-action": endpoint.action,
    });
    match body(endpoint) {
        Some(body) => respond::with(&operation, [("requestBody", body)]),
        None => operation,
    }
}

fn body(endpoint: &Endpoint) -> Option<Value> {
    if endpoint.body_limit.is_some() {
        let bytes = json!({"type": "string", "format": "binary"});
        return Some(json!({"required": true, "content": {"application/octet-stream": {"schema": bytes}}}));
    }
    if endpoint.body.is_empty() {
        return None;
    }
    let member = |kind: &str| if kind == "any" { json!({}) } else { json!({"type": kind}) };
    let properties: Map<String, Value> =
        endpoint.body.iter().map(|(name, kind, _)| ((*name).to_owned(), member(kind))).collect();
    let required: Vec<&str> =
        endpoint.body.iter().filter(|(_, _, required)| *required).map(|(name, _, _)| *name).collect();
    let schema =
        json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    Some(json!({"required": !required.is_empty(), "content": {"application/json": {"schema": schema}}}))
}

fn security(who: Who) -> Value {
    match who {
        Who::Anyone => json!([]),
        Who::Person => json!([{"session": []}]),
        Who::Key => json!([{"signature": []}]),
        Who::PersonOrKey | Who::PersonOrAgent => json!([{"session": []}, {"signature": []}]),
    }
}

fn refusal() -> Value {
    let codes: Vec<&str> = inn_protocol::Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "required": ["a2app", "ok", "code", "message", "outcome", "retry", "help"],
        "properties": {
            "a2app": {"const": true},
            "ok": {"const": false},
            "code": {"enum": codes},
            "message": {"type": "string"},
            "violations": {"type": "array", "items": {"type": "object"}},
            "outcome": {"enum": ["none", "unknown"]},
            "retry": {"enum": ["no", "same_key", "after"]},
            "retryAfterSeconds": {"type": "integer"},
            "scope": {"type": "string"},
            "leg": {"enum": ["user", "grant", "app"]},
            "whoCanFix": {"type": "string"},
            "id": {"type": "string"},
            "help": {"type": "string", "format": "uri"},
            "call": {"type": "string"},
        },
    })
}
