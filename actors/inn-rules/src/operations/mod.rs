//! The verbs an app declares: finding one, checking its params, and what a `crud` operation does to records.
//!
//! Source: reference notes on A2App, A.3 (declaration), B.1 (names and paths), E.9 (who is checked how).

use inn_protocol::app::{AppDefinition, CrudAction, Executor, Operation, Param, ParamKind};
use inn_protocol::{Code, Refusal, Result, Violation};
use serde_json::{Map, Value};

use crate::guard::{MAX_VIOLATIONS, js_number};

/// What a `crud` operation asks of the records. Fixed filters are the app author's text: they must hold for the record
/// as well, and their syntax is checked at deploy.
#[derive(Debug, Clone, PartialEq)]
pub enum CrudCall {
    List { collection: String, filter: Option<String> },
    Create { collection: String, body: Map<String, Value> },
    Update { collection: String, id: String, body: Map<String, Value>, filter: Option<String> },
    Delete { collection: String, id: String, filter: Option<String> },
}

/// The operation's params with defaults filled in, in the types it declares.
///
/// Agents are checked (`strict`): unknown, missing and mistyped params are all told in one answer. A number or boolean
/// may come as its text, because a query string has nothing else. The app's own page is not (`strict` false): apps are
/// known whose declaration and page disagree while page and hook agree.
///
/// # Errors
/// `invalid_parameter` with a violation per param, when `strict`.
pub fn check_params(operation: &Operation, given: &Map<String, Value>, strict: bool) -> Result<Map<String, Value>> {
    let mut params = Map::new();
    let mut violations = Vec::new();
    for (name, value) in given {
        if violations.len() >= MAX_VIOLATIONS {
            break;
        }
        match operation.params.get(name) {
            Some(param) => match typed(param, value) {
                Some(value) => {
                    params.insert(name.clone(), value);
                }
                // Null is how a page says "not given".
                None if value.is_null() => {}
                None if strict => {
                    let violation = Violation::new(Code::InvalidParameter, name.as_str(), expected(param));
                    violations.push(violation.got(value));
                }
                None => {
                    params.insert(name.clone(), value.clone());
                }
            },
            None if strict => violations.push(unknown(operation, name, value)),
            None => {
                params.insert(name.clone(), value.clone());
            }
        }
    }
    for (name, param) in &operation.params {
        if params.contains_key(name) || violations.iter().any(|violation| violation.field == *name) {
            continue;
        }
        if let Some(default) = &param.default {
            params.insert(name.clone(), default.clone());
        } else if param.required && strict {
            let expected = format!("{} (it is required)", expected(param));
            violations.push(Violation::new(Code::InvalidParameter, name.as_str(), expected));
        }
    }
    if violations.is_empty() {
        return Ok(params);
    }
    violations.truncate(MAX_VIOLATIONS);
    let message = violations.first().map_or_else(String::new, |first| {
        let expected = first.expected.as_deref().unwrap_or("another value");
        format!("The operation {} was not run: the param \"{}\" must be {expected}.", operation.name, first.field)
    });
    Err(Refusal::violations(message, violations))
}

/// What an agent would have been refused for: told to the app's own page beside the answer, which it gets all the same.
pub fn warnings(operation: &Operation, given: &Map<String, Value>) -> Vec<Violation> {
    check_params(operation, given, true).err().map_or_else(Vec::new, |refusal| refusal.violations)
}

/// The record call of a `crud` operation; `None` when the operation is of another kind. The param `id` selects the
/// record of an update or delete, all other params are the body.
///
/// # Errors
/// `invalid_parameter` when an update or delete does not say which record.
pub fn crud_call(operation: &Operation, params: &Map<String, Value>) -> Result<Option<CrudCall>> {
    let Executor::Crud { collection, action, filter } = &operation.executor else { return Ok(None) };
    let (collection, filter) = (collection.clone(), filter.clone().filter(|filter| !filter.is_empty()));
    let id = || match params.get("id") {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        other => {
            let violation = Violation::new(Code::InvalidParameter, "id", "the id of one record");
            let violation = violation.got(other.unwrap_or(&Value::Null));
            let message =
                format!("The operation {} was not run: the param \"id\" must name one record.", operation.name);
            Err(Refusal::violations(message, vec![violation]))
        }
    };
    let rest = || params.iter().filter(|(name, _)| *name != "id").map(|(n, v)| (n.clone(), v.clone())).collect();
    Ok(Some(match action {
        CrudAction::List => CrudCall::List { collection, filter },
        CrudAction::Create => CrudCall::Create { collection, body: params.clone() },
        CrudAction::Update => CrudCall::Update { collection, id: id()?, body: rest(), filter },
        CrudAction::Delete => CrudCall::Delete { collection, id: id()?, filter },
    }))
}

/// The operation a method and path stand for: its executor's own, or `POST /api/ops/{name}` for any of them.
pub fn find_by_path<'a>(definition: &'a AppDefinition, method: &str, path: &str) -> Option<&'a Operation> {
    let own = definition.operations.iter().find(|operation| {
        route(operation)
            .is_some_and(|(own_method, own_path)| own_method.eq_ignore_ascii_case(method) && own_path == path)
    });
    let by_name =
        || named(path).filter(|_| method.eq_ignore_ascii_case("POST")).and_then(|name| definition.operation(name));
    own.or_else(by_name)
}

pub fn find_by_name<'a>(definition: &'a AppDefinition, name: &str) -> Option<&'a Operation> {
    definition.operation(name)
}

/// The methods under which a path is an operation, sorted: for a 405 and its `Allow` header. Empty for other paths.
pub fn allowed_methods(definition: &AppDefinition, path: &str) -> Vec<String> {
    let routes = definition.operations.iter().filter_map(route);
    let own = routes.filter(|(_, own_path)| *own_path == path).map(|(method, _)| method.to_ascii_uppercase());
    let by_name = named(path).and_then(|name| definition.operation(name)).map(|_| "POST".to_owned());
    let mut methods: Vec<_> = own.chain(by_name).collect();
    methods.sort();
    methods.dedup();
    methods
}

fn route(operation: &Operation) -> Option<(&str, &str)> {
    match &operation.executor {
        Executor::Http { method, path } | Executor::Job { method, path } => Some((method, path)),
        Executor::Crud { .. } | Executor::Agent { .. } => None,
    }
}

fn named(path: &str) -> Option<&str> {
    path.strip_prefix("/api/ops/").filter(|name| !name.is_empty())
}

/// The value in the declared type and among the declared values.
fn typed(param: &Param, value: &Value) -> Option<Value> {
    let value = match (param.kind, value) {
        (ParamKind::String, Value::String(_))
        | (ParamKind::Number, Value::Number(_))
        | (ParamKind::Boolean, Value::Bool(_)) => value.clone(),
        (ParamKind::Number, Value::String(text)) => {
            crate::values::number_value(js_number(text).filter(|number| number.is_finite())?)
        }
        (ParamKind::Boolean, Value::String(text)) => Value::Bool(text.parse().ok()?),
        _ => return None,
    };
    let allowed = param.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(|one| same(one, &value)));
    allowed.then_some(value)
}

/// 1 and 1.0 are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq(),
        _ => left == right,
    }
}

fn expected(param: &Param) -> String {
    let kind = match param.kind {
        ParamKind::String => "a string",
        ParamKind::Number => "a number",
        ParamKind::Boolean => "true or false",
    };
    match &param.allowed {
        Some(allowed) => {
            let values: Vec<_> = allowed.iter().take(50).map(Value::to_string).collect();
            format!("one of: {}", values.join(", "))
        }
        None => kind.to_owned(),
    }
}

fn unknown(operation: &Operation, name: &str, value: &Value) -> Violation {
    let declared: Vec<_> = operation.params.keys().map(String::as_str).take(50).collect();
    let expected = match declared.as_slice() {
        [] => "left out: this operation takes no params".to_owned(),
        declared => format!("one of: {}", declared.join(", ")),
    };
    let name: String = name.chars().take(100).collect();
    Violation::new(Code::InvalidParameter, name, expected).got(value)
}

#[cfg(test)]
mod tests;
