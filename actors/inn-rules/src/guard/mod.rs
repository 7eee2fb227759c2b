//! The guard of A2App 1.0: refuses what the store could not keep as it was meant, before anything coerces it.
//!
//! Source: reference notes on A2App, B.5 (checks) and B.6 (answer). Beyond 1.0: `missing_required` on create,
//! PocketBase's modifier keys, and the hour range of dates. Fields are looked up in the model only, so names like
//! `constructor` or `__proto__` mean nothing unless the app has such a field.

mod types;

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use inn_protocol::model::{Collection, Field, FieldKind};
use inn_protocol::{Code, Refusal, Violation};
use serde_json::{Map, Value};

use crate::values::{blank, modifier};

pub(crate) use types::js_number;

/// Is the record new?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Create,
    Update,
}

/// How the body travelled. In a form every value is text, or what form inference made of it (`2026`, `true`), so a
/// text field takes those too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Json,
    Multipart,
}

/// Checks a record body as it was sent. `see_hidden` is for the app's owners: to everybody else hidden fields do not
/// exist. `now` is told in the answer, so that a client can see whether its clock agrees.
///
/// # Errors
/// One refusal with every violation (at most [`MAX_VIOLATIONS`]); its code is that of the first.
pub fn guard(
    collection: &Collection,
    body: &Map<String, Value>,
    mode: Mode,
    kind: Kind,
    see_hidden: bool,
    now: DateTime<Utc>,
) -> Result<(), Refusal> {
    let sent = body.iter().filter_map(|(key, value)| check_key(collection, key, value, kind, see_hidden));
    let missing =
        collection.fields.iter().filter(|field| mode == Mode::Create && must_be_sent(collection, field, kind));
    let missing = missing.filter(|field| body.get(&field.name).is_none_or(blank)).map(|field| {
        let violation = Violation::new(Code::MissingRequired, &*field.name, "a value");
        violation.got(body.get(&field.name).unwrap_or(&Value::Null))
    });
    let violations: Vec<_> = sent.chain(missing).take(MAX_VIOLATIONS).collect();
    if violations.is_empty() { Ok(()) } else { Err(rejection(violations, Some(now))) }
}

/// More than this many violations are not listed: an answer stays small whatever was sent.
pub const MAX_VIOLATIONS: usize = 100;

/// The refusal for a list of violations, in the words A2App fixes for every stack.
pub(crate) fn rejection(violations: Vec<Violation>, now: Option<DateTime<Utc>>) -> Refusal {
    let message = violations.first().map_or_else(String::new, |first| describe_violation(first, now));
    Refusal::violations(message, violations)
}

/// `Rejected by a2app (CODE): field "F" expects X; got JSON`, for dates an example, and the server's time.
pub fn describe_violation(violation: &Violation, now: Option<DateTime<Utc>>) -> String {
    let expected = violation.expected.as_deref().unwrap_or("another value");
    let (code, field) = (violation.code.as_str(), &violation.field);
    let mut text = format!("Rejected by a2app ({code}): field \"{field}\" expects {expected}");
    // Writing to a String cannot fail.
    if let Some(got) = &violation.got {
        let _ = write!(text, "; got {got}");
    }
    if let Some(now) = now {
        let time = crate::describe::server_now(now);
        if matches!(violation.code, Code::InvalidDate | Code::InvalidDaykey) {
            let _ = write!(text, ". Example: \"{}\"", time.get(..10).unwrap_or(&time));
        }
        let _ = write!(text, ". Server time is {time}");
    }
    text.push('.');
    text
}

/// Keys that pass without being fields (A2App 1.0). PocketBase ignores `username` where there is no such field.
const AUTH_KEYS: [&str; 7] =
    ["email", "username", "password", "passwordConfirm", "oldPassword", "verified", "emailVisibility"];

fn check_key(collection: &Collection, key: &str, value: &Value, kind: Kind, see_hidden: bool) -> Option<Violation> {
    let allowed = key == "id" || collection.is_auth() && AUTH_KEYS.contains(&key);
    let own = collection.field(key);
    let (field, modified) = match own {
        Some(field) => (field, false),
        None => match modifier(collection, key) {
            Some((field, _)) => (field, true),
            None if allowed => return allowed_key(key, value, kind),
            None => return Some(unknown(collection, key, value, see_hidden)),
        },
    };
    if !allowed && field.hidden && !field.system && !see_hidden {
        return Some(unknown(collection, key, value, see_hidden));
    }
    if !allowed && field.is_read_only(collection) {
        return Some(Violation::new(Code::ReadOnlyField, key, "no value: the server sets this field").got(value));
    }
    if blank_as_sent(value) || modified && !matches!(field.kind, FieldKind::Number { .. }) {
        return None;
    }
    // An id may be sent as a number; the store keeps its text.
    if key == "id" && value.is_number() {
        return None;
    }
    let (code, expected) = types::check(field, value, kind)?;
    let violation = Violation::new(code, key, expected);
    // A password is never told back.
    Some(if matches!(field.kind, FieldKind::Password { .. }) { violation } else { violation.got(value) })
}

/// Keys of the sign-up form that are no fields: texts.
fn allowed_key(key: &str, value: &Value, kind: Kind) -> Option<Violation> {
    let fits = blank_as_sent(value) || types::is_text(value, kind) || key == "id" && value.is_number();
    (!fits).then(|| Violation::new(Code::InvalidString, key, "a string"))
}

/// Null and the empty text clear a field; an empty list is a value with a type.
fn blank_as_sent(value: &Value) -> bool {
    matches!(value, Value::Null) || value.as_str() == Some("")
}

fn unknown(collection: &Collection, key: &str, value: &Value, see_hidden: bool) -> Violation {
    let writable = collection.fields.iter().filter(|field| {
        !field.is_read_only(collection)
            && (see_hidden || !field.hidden || matches!(field.kind, FieldKind::Password { .. }))
    });
    let mut expected = String::from("one of: ");
    for (index, field) in writable.enumerate() {
        if expected.len() > MAX_NAMES_TEXT {
            expected.push_str(", …");
            break;
        }
        expected.push_str(if index == 0 { "" } else { ", " });
        expected.push_str(&field.name);
    }
    let key: String = if key.len() <= 100 { key.to_owned() } else { key.chars().take(100).chain(['…']).collect() };
    Violation::new(Code::UnknownField, key, expected).got(value)
}

const MAX_NAMES_TEXT: usize = 1000;

/// Files of a form arrive beside the body, and what the store makes up itself need not be sent.
fn must_be_sent(collection: &Collection, field: &Field, kind: Kind) -> bool {
    let made_up = match &field.kind {
        FieldKind::Text { autogenerate_pattern, primary_key, .. } => *primary_key || !autogenerate_pattern.is_empty(),
        FieldKind::File { .. } => kind == Kind::Multipart,
        _ => false,
    };
    field.required && !made_up && field.name != "id" && !field.is_read_only(collection)
}

#[cfg(test)]
mod tests;
