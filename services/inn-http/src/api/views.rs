//! Shapes shared by several endpoints: scopes in sentences, grants with them.

use std::collections::BTreeSet;

use inn_protocol::app::AppDefinition;
use inn_protocol::grant::{Grant, GrantRequest};
use inn_protocol::scope::Scope;
use inn_protocol::{Code, Refusal, Violation};
use inn_rules::access::scope_sentence;
use serde_json::{Value, json};

use crate::respond;

pub(super) fn items(items: impl serde::Serialize) -> Value {
    json!({"items": items})
}

pub(super) fn scopes<'a>(scopes: impl IntoIterator<Item = &'a Scope>, app: &AppDefinition) -> Vec<Value> {
    scopes.into_iter().map(|scope| json!({"scope": scope, "sentence": scope_sentence(scope, app)})).collect()
}

pub(super) fn grant(grant: &Grant, app: Option<&AppDefinition>) -> Value {
    with_sentences(grant, &grant.scopes, app)
}

pub(super) fn grant_request(request: &GrantRequest, app: Option<&AppDefinition>) -> Value {
    with_sentences(request, &request.scopes, app)
}

/// `scopes` as sentences beside the bare texts, when the app is still there to say what they mean.
fn with_sentences(body: &impl serde::Serialize, of: &BTreeSet<Scope>, app: Option<&AppDefinition>) -> Value {
    match app {
        Some(app) => respond::with(body, [("sentences", Value::Array(scopes(of, app)))]),
        None => json!(body),
    }
}

/// Scope texts of a body, all problems at once.
pub(super) fn parse_scopes(texts: &[String]) -> Result<BTreeSet<Scope>, Refusal> {
    let mut scopes = BTreeSet::new();
    let mut violations = Vec::new();
    for text in texts.iter().take(500) {
        match text.parse::<Scope>() {
            Ok(scope) => drop(scopes.insert(scope)),
            Err(error) => violations.push(
                Violation::new(Code::InvalidParameter, "scopes", error.to_string()).got(&Value::String(text.clone())),
            ),
        }
    }
    if violations.is_empty() { Ok(scopes) } else { Err(Refusal::violations("Some scopes cannot be read.", violations)) }
}

/// The first 128 characters of a name somebody gives, without control characters; refused when nothing is left.
pub(super) fn name(text: &str, field: &str) -> Result<String, Refusal> {
    let name: String = text.chars().filter(|c| !c.is_control()).take(128).collect();
    let name = name.trim().to_owned();
    if name.is_empty() {
        let violation = Violation::new(Code::InvalidParameter, field, "1 to 128 visible characters");
        return Err(Refusal::violations(format!("{field} is empty."), vec![violation]));
    }
    Ok(name)
}
