//! Does a JSON value have the protocol type of a field?

use inn_protocol::Code;
use inn_protocol::model::{Field, FieldKind};
use serde_json::Value;

use super::Kind;
use crate::values::dates;

/// What is wrong with a value that is not blank: the code and what is expected instead.
pub(super) fn check(field: &Field, value: &Value, kind: Kind) -> Option<(Code, String)> {
    let text = value.as_str();
    match &field.kind {
        FieldKind::Date { .. } | FieldKind::Autodate { .. } => {
            let fits = text.is_some_and(|text| dates::stored_iso(text).is_some());
            (!fits).then(|| (Code::InvalidDate, "an ISO 8601 date".to_owned()))
        }
        FieldKind::Text { .. } if field.is_day_key() => {
            let fits = text.is_some_and(dates::is_day_key);
            (!fits).then(|| (Code::InvalidDaykey, "a day as YYYY-MM-DD".to_owned()))
        }
        FieldKind::Number { .. } => {
            let fits = value.is_number() || text.is_some_and(|text| js_number(text).is_some());
            (!fits).then(|| (Code::InvalidNumber, "a number".to_owned()))
        }
        FieldKind::Bool {} => {
            let fits = value.is_boolean() || matches!(text, Some("true" | "false"));
            (!fits).then(|| (Code::InvalidBoolean, "true or false".to_owned()))
        }
        FieldKind::Select { values, .. } if !field.is_multiple() => {
            let fits = values.contains(&js_string(value));
            (!fits).then(|| (Code::InvalidEnum, format!("one of: {}", values.join(", "))))
        }
        FieldKind::Text { .. }
        | FieldKind::Editor { .. }
        | FieldKind::Email { .. }
        | FieldKind::Url { .. }
        | FieldKind::Password { .. } => (!is_text(value, kind)).then(|| (Code::InvalidString, "a string".to_owned())),
        // Beyond A2App 1.0: what would be stored as nothing without a word.
        FieldKind::GeoPoint {} => {
            (!is_point(value)).then(|| (Code::InvalidNumber, "an object with the numbers lon and lat".to_owned()))
        }
        FieldKind::Select { values, .. } if is_nested(value) => {
            Some((Code::InvalidEnum, format!("some of: {}", values.join(", "))))
        }
        FieldKind::Relation { .. } if is_nested(value) => Some((Code::InvalidRef, "ids of records".to_owned())),
        // The store checks these itself, with codes of its own.
        FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. } | FieldKind::Json { .. } => None,
    }
}

/// A point as JSON or its text, each part a number or absent.
fn is_point(value: &Value) -> bool {
    let part = |members: &serde_json::Map<String, Value>, name| {
        members.get(name).is_none_or(|part| part.is_number() || part.is_null())
    };
    let fits = |members: &serde_json::Map<String, Value>| part(members, "lon") && part(members, "lat");
    match value {
        Value::Object(members) => fits(members),
        Value::String(text) => serde_json::from_str(text).is_ok_and(|members| fits(&members)),
        _ => false,
    }
}

/// An object, or a list with lists or objects in it.
fn is_nested(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| item.is_array() || item.is_object()),
        other => other.is_object(),
    }
}

pub(super) fn is_text(value: &Value, kind: Kind) -> bool {
    value.is_string() || kind == Kind::Multipart && (value.is_number() || value.is_boolean())
}

/// ECMAScript `String(value)`.
fn js_string(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().map(|item| if item.is_null() { String::new() } else { js_string(item) });
            texts.collect::<Vec<_>>().join(",")
        }
        Value::Object(_) => "[object Object]".to_owned(),
        Value::Bool(_) | Value::Number(_) => inn_protocol::canonical::to_string(value),
    }
}

/// ECMAScript `Number(text)` of a text that is not blank; `None` for NaN. May be infinite.
pub(crate) fn js_number(text: &str) -> Option<f64> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let (sign, digits) = match text.strip_prefix(['+', '-']) {
        Some(digits) => (if text.starts_with('-') { -1.0 } else { 1.0 }, digits),
        None => (1.0, text),
    };
    if digits == "Infinity" {
        return Some(sign * f64::INFINITY);
    }
    if digits.len() == text.len()
        && let Some((prefix @ ("0x" | "0X" | "0o" | "0O" | "0b" | "0B"), rest)) = digits.split_at_checked(2)
    {
        let radix = match prefix {
            "0x" | "0X" => 16,
            "0o" | "0O" => 8,
            _ => 2,
        };
        let fold = |value: f64, c: char| c.to_digit(radix).map(|digit| value * f64::from(radix) + f64::from(digit));
        return (!rest.is_empty()).then(|| rest.chars().try_fold(0.0, fold)).flatten();
    }
    // Rust reads the same decimals, and `inf` and `nan` besides.
    let decimal = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    decimal.then(|| text.parse().ok()).flatten()
}
