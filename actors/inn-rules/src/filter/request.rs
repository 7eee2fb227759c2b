//! `@request.*`: the caller's own record and the call, put in as values where they are known, as joins where a path
//! leads on (section A.5).

use inn_protocol::model::{Collection, Field, FieldKind};
use serde_json::{Map, Value};

use super::compile::changed;
use super::context::Context;
use super::error::FilterError;
use super::eval::json_at;
use super::expr::{FieldClass, FieldRef, Operand};
use super::like::literal_text;
use super::number::real_text;
use super::resolve::{Modifier, Path, Resolved, holds_values, is_secret, split_modifier};
use super::walk::{Start, Walk};

/// Facts about the caller's record that come from memory, whatever else is known of it.
const PLAIN: [&str; 6] = ["id", "collectionId", "collectionName", "email", "emailVisibility", "verified"];

/// `path` is what stands behind `@request.`.
pub(super) fn request(path: &str, at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    if let Some(rest) = path.strip_prefix("auth.") {
        return auth(rest, at, context);
    }
    if let Some(rest) = path.strip_prefix("body.") {
        return body(rest, at, context);
    }
    let facts = std::sync::Arc::clone(&context.scope.auth.request);
    let text = |text: &str| (!text.is_empty()).then(|| Value::String(text.to_owned()));
    let (name, modifier) = split_modifier(path, at)?;
    let found = match name.split_once('.') {
        // As they are or not at all.
        None if path == "method" => text(&facts.method),
        None if path == "context" => text(&facts.context),
        Some(("query", key)) => facts.query.get(key).map(|value| Value::String(value.clone())),
        Some(("headers", key)) => facts.headers.get(key).map(|value| Value::String(value.clone())),
        _ => return Err(FilterError::invalid(at, format!("`@request.{path}` means nothing"))),
    };
    fixed(found.as_ref(), name, modifier, at, context)
}

/// A value that is known now.
fn fixed(
    value: Option<&Value>,
    path: &str,
    modifier: Option<Modifier>,
    at: usize,
    context: &Context<'_>,
) -> Result<Resolved, FilterError> {
    let operand = match value {
        // A form sends numbers as text: where the base collection has a number of that name, it is one.
        Some(Value::String(text)) => {
            let last = path.rsplit('.').next().unwrap_or(path);
            let field = context.scope.collection.field(last);
            match field.map(|field| &field.kind) {
                Some(FieldKind::Number { .. }) => {
                    text.parse().map_or_else(|_| Operand::Text(text.clone()), Operand::Number)
                }
                _ => Operand::Text(text.clone()),
            }
        }
        value => operand(value),
    };
    match modifier {
        None => Ok(Resolved::bound(operand)),
        Some(Modifier::Isset) => Ok(Resolved::plain(Operand::Truth(value.is_some()))),
        Some(Modifier::Lower) => Ok(Resolved::bound(match operand {
            Operand::Text(text) => Operand::Text(text.to_ascii_lowercase()),
            Operand::Number(number) => Operand::Text(real_text(number)),
            Operand::Bool(flag) => Operand::Text(u8::from(flag).to_string()),
            other => other,
        })),
        Some(_) => Err(FilterError::invalid(at, format!("that modifier does not go with `@request.{path}`"))),
    }
}

/// The record body as it was sent, with the modifiers of PATCH resolved where that needs no stored value.
fn body(path: &str, at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    let facts = std::sync::Arc::clone(&context.scope.auth.request);
    let parts: Vec<&str> = path.split('.').collect();
    let first = parts.first().copied().unwrap_or_default();
    let (name, modifier) = split_modifier(first, at)?;
    let full = format!("@request.body.{path}");
    let Some(field) = context.scope.collection.field(name) else {
        let (path, modifier) = split_modifier(path, at)?;
        let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
        let found = keys.split_first().and_then(|(first, rest)| json_at(facts.body.get(first)?, rest));
        return fixed(found, path, modifier, at, context);
    };
    if is_secret(field, context.scope.collection) && modifier != Some(Modifier::Isset) {
        return Err(FilterError::Hidden(full));
    }
    let relative =
        facts.body.keys().any(|key| key != name && key.trim_start_matches('+').trim_end_matches(['+', '-']) == name);
    if relative && parts.len() == 1 && modifier == Some(Modifier::Isset) {
        return Ok(Resolved::plain(Operand::Truth(true)));
    }
    if relative {
        let what = format!("`@request.body.{name}` of a body that changes `{name}` relative to what is stored");
        return Err(FilterError::Unsupported(what));
    }
    let sent = facts.body.get(name);
    if parts.len() > 1 {
        if let FieldKind::Relation { collection_id, .. } = &field.kind {
            let ids = ids(sent);
            let Some(target) = context.scope.model.collection(collection_id) else {
                return Err(FilterError::UnknownField(full));
            };
            // Looked up also when nothing was sent, so that a rule is refused when it is deployed.
            let nothing = ids.is_empty();
            let label = format!("body {name}");
            let start = Start::Records { collection: target.name.clone(), label, ids, private: context.private };
            let walk = Walk { start, many: field.is_multiple(), ..Walk::default() };
            let rest = parts.iter().skip(1).copied().collect::<Vec<_>>().join(".");
            if !nothing {
                context.join(&walk, target, &full)?;
            }
            let found = Path { full: &full, at, lenient: true }.follow(&rest, walk, target, context)?;
            return Ok(if nothing { Resolved::plain(Operand::Null) } else { found });
        }
        let (path, modifier) = split_modifier(path, at)?;
        let keys: Vec<String> = path.split('.').skip(1).map(str::to_owned).collect();
        return fixed(sent.and_then(|sent| json_at(sent, &keys)), path, modifier, at, context);
    }
    let needs_list = || FilterError::invalid(at, format!("`{name}` holds no values to count or walk"));
    match modifier {
        Some(Modifier::Length) if holds_values(field) => Ok(Resolved::plain(counted(list(sent).len()))),
        Some(Modifier::Each) if holds_values(field) => Ok(each(field, sent, context)),
        Some(Modifier::Length | Modifier::Each) => Err(needs_list()),
        Some(Modifier::Lower) => {
            let text = match sent {
                Some(Value::String(text)) => text.to_ascii_lowercase(),
                Some(Value::Number(number)) => literal_text(number.as_f64().unwrap_or_default()),
                Some(Value::Bool(flag)) => flag.to_string(),
                // Structures have no text there.
                _ => String::new(),
            };
            Ok(Resolved::bound(Operand::Text(text)))
        }
        Some(Modifier::Changed) => {
            let stands_for = Some(Box::new(changed(name, at, context)?));
            Ok(Resolved { stands_for, ..Resolved::plain(Operand::Null) })
        }
        None | Some(Modifier::Isset) => fixed(sent, name, modifier, at, context),
    }
}

fn each(field: &Field, sent: Option<&Value>, context: &Context<'_>) -> Resolved {
    let values = list(sent);
    let start = Start::Values { label: format!("body {}", field.name), values, private: context.private };
    let walk = Walk { start, many: field.is_multiple(), ..Walk::default() };
    Resolved::plain(Operand::Field(FieldRef { each: true, ..FieldRef::new(walk, "", FieldClass::Text) }))
}

fn auth(path: &str, at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    let full = format!("@request.auth.{path}");
    split_modifier(path, at)?;
    let head = path.split(['.', ':']).next().unwrap_or_default();
    let accounts: Vec<&Collection> = context.scope.model.collections.iter().filter(|c| c.is_auth()).collect();
    // Told when a rule is deployed and not when the first such user calls.
    for account in &accounts {
        if account.field(head).is_some_and(|field| is_secret(field, account)) {
            return Err(FilterError::Hidden(full));
        }
    }
    let auth = context.scope.auth;
    let Some(record) = &auth.record else {
        // Whatever it would be, it is NULL; but what could never be followed is told at once.
        let mut checked = Context { joined: Vec::new(), ..Context::new(context.scope) };
        checked.scope.see_hidden = true;
        for account in accounts {
            from_account(path, at, account, "", &full, &mut checked)?;
        }
        return Ok(Resolved::plain(Operand::Null));
    };
    if PLAIN.contains(&path) && (record.contains_key(path) || !auth.partial) {
        return fixed(record.get(path), path, None, at, context);
    }
    let Some(account) = account_of(record, head, &accounts) else {
        return Err(FilterError::Unsupported(format!("`{full}` of a record that was not loaded")));
    };
    let id = record.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let found = from_account(path, at, account, &id, &full, context)?;
    // Everything else is a column of the account's row, and compared as one. What is known of it needs no query, unless its
    // text as JSON matters.
    let Operand::Field(field) = &found.operand else { return Ok(found) };
    let plain =
        field.walk.hops.is_empty() && !field.is_element() && !matches!(field.class, FieldClass::Json | FieldClass::Geo);
    let Some(value) = record.get(&field.name).filter(|_| plain) else { return Ok(found) };
    let field = FieldRef { walk: Walk::default(), ..field.clone() };
    Ok(Resolved { operand: Operand::Known(Box::new((field, value.clone()))), ..found })
}

/// The record's own row, and on from there.
fn from_account<'a>(
    path: &str,
    at: usize,
    account: &'a Collection,
    id: &str,
    full: &str,
    context: &mut Context<'a>,
) -> Result<Resolved, FilterError> {
    let start = Start::Records {
        collection: account.name.clone(),
        label: "auth".to_owned(),
        ids: vec![id.to_owned()],
        private: context.private,
    };
    let walk = Walk { start, ..Walk::default() };
    context.join(&walk, account, full)?;
    Path { full, at, lenient: true }.follow(path, walk, account, context)
}

fn account_of<'a>(record: &Map<String, Value>, head: &str, accounts: &[&'a Collection]) -> Option<&'a Collection> {
    let named = ["collectionId", "collectionName"].iter().find_map(|key| record.get(*key).and_then(Value::as_str));
    match named {
        Some(named) => accounts.iter().find(|account| account.id == named || account.name == named).copied(),
        None if accounts.len() == 1 => accounts.first().copied(),
        None => {
            let mut with_field = accounts.iter().filter(|account| account.field(head).is_some());
            with_field.next().filter(|_| with_field.next().is_none()).copied()
        }
    }
}

fn operand(value: Option<&Value>) -> Operand {
    match value {
        None | Some(Value::Null) => Operand::Null,
        Some(Value::Bool(value)) => Operand::Bool(*value),
        Some(Value::Number(number)) => Operand::Number(number.as_f64().unwrap_or_default()),
        Some(Value::String(text)) => Operand::Text(text.clone()),
        Some(structure) => Operand::Text(structure.to_string()),
    }
}

/// So many values: a number in the text of PocketBase's query, where 1 and 0 are taken for `true` and `false` and every
/// other one for a column.
fn counted(values: usize) -> Operand {
    match values {
        0 | 1 => Operand::Bool(values == 1),
        _ => {
            let field = FieldRef { bare: true, ..FieldRef::new(Walk::default(), "", FieldClass::Number) };
            Operand::Known(Box::new((field, values.into())))
        }
    }
}

/// What was sent as a list; nothing is an empty one.
fn list(sent: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match sent {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(text).collect(),
        Some(value) => vec![text(value)],
    }
}

fn ids(sent: Option<&Value>) -> Vec<String> {
    let mut ids = list(sent);
    ids.retain(|id| !id.is_empty());
    ids.dedup();
    ids
}
