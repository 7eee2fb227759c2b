//! One JSON value as the type of its field, the way PocketBase casts it.

use inn_protocol::model::{Field, FieldKind};
use serde_json::{Map, Value, json};

use super::{dates, number_value};
use crate::guard::js_number;

/// The value an unset field has: there are no nulls, except in json fields.
pub(crate) fn zero(field: &Field) -> Value {
    match &field.kind {
        FieldKind::Number { .. } => json!(0),
        FieldKind::Bool {} => json!(false),
        FieldKind::Json { .. } => Value::Null,
        FieldKind::GeoPoint {} => geo_point(0.0, 0.0),
        _ if field.is_multiple() => json!([]),
        _ => json!(""),
    }
}

/// `Err` is a value that no cast gives a meaning: infinite numbers, malformed points and JSON.
pub(super) fn coerce(field: &Field, value: &Value) -> Result<Value, &'static super::Rule> {
    Ok(match &field.kind {
        FieldKind::Number { .. } => return number(value).map(number_value),
        FieldKind::Bool {} => Value::Bool(boolean(value)),
        FieldKind::Date { .. } | FieldKind::Autodate { .. } => {
            Value::String(value.as_str().and_then(dates::stored_any).unwrap_or_default())
        }
        FieldKind::Json { .. } => return json_value(value),
        FieldKind::GeoPoint {} => return geo(value),
        FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. } => {
            let mut list = list(value);
            if field.is_multiple() { json!(list) } else { Value::String(list.pop().unwrap_or_default()) }
        }
        FieldKind::Text { .. }
        | FieldKind::Editor { .. }
        | FieldKind::Email { .. }
        | FieldKind::Url { .. }
        | FieldKind::Password { .. } => Value::String(text(value)),
    })
}

/// Scalars as text, everything else as nothing.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(flag) => flag.to_string(),
        // Rust prints the shortest decimal digits, never an exponent: as PocketBase.
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// A number, a text that is one, `true` = 1; everything else is 0.
pub(super) fn number(value: &Value) -> Result<f64, &'static super::Rule> {
    let number = match value {
        Value::Number(number) => number.as_f64().unwrap_or(f64::NAN),
        Value::Bool(flag) => f64::from(u8::from(*flag)),
        Value::String(text) => text_number(text),
        Value::Null | Value::Array(_) | Value::Object(_) => 0.0,
    };
    // -0 has no text of its own in JSON answers.
    if number.is_finite() { Ok(number + 0.0) } else { Err(&super::problem::NOT_A_NUMBER) }
}

fn text_number(text: &str) -> f64 {
    if text.trim().is_empty() {
        return 0.0;
    }
    if matches!(text.trim_start_matches(['+', '-']).to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity") {
        return f64::NAN;
    }
    js_number(text).or_else(|| js_number(&without_separators(text)?)).unwrap_or(0.0)
}

/// `1_000` as `1000`; an underscore must stand between digits.
fn without_separators(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let placed = bytes.iter().enumerate().all(|(i, b)| *b != b'_' || i > 0 && digit(i - 1) && digit(i + 1));
    (placed && text.contains('_')).then(|| text.replace('_', ""))
}

fn boolean(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64().is_some_and(|number| number != 0.0),
        Value::String(text) => matches!(text.as_str(), "1" | "t" | "T" | "true" | "TRUE" | "True"),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// An array, one text, or a text that holds a JSON array; without empty and repeated values, order kept.
pub(crate) fn list(value: &Value) -> Vec<String> {
    let parsed;
    let items = match value {
        Value::Array(items) => items,
        Value::String(text) if text.contains('[') => match serde_json::from_str(text) {
            Ok(Value::Array(items)) if items.iter().all(|item| item.is_string() || item.is_null()) => {
                parsed = items;
                &parsed
            }
            // Of a list that holds other things PocketBase keeps the texts, and the whole text behind them.
            Ok(Value::Array(items)) => {
                let texts = items.into_iter().filter(Value::is_string);
                parsed = texts.chain(std::iter::once(value.clone())).collect();
                &parsed
            }
            _ => return vec![text.clone()],
        },
        Value::Object(_) | Value::Null => return Vec::new(),
        scalar => return vec![text(scalar)].into_iter().filter(|text| !text.is_empty()).collect(),
    };
    let mut seen = std::collections::HashSet::new();
    // A nested value stays visible as its JSON text, so that the check of options or ids refuses it.
    let texts = items.iter().map(|item| match item {
        Value::Array(_) | Value::Object(_) => item.to_string(),
        scalar => text(scalar),
    });
    texts.filter(|text| !text.is_empty() && seen.insert(text.clone())).collect()
}

/// The values of a list field or single choice as it is stored. Nothing is sniffed any more: a single value that looks
/// like a JSON array is one value.
pub(crate) fn stored_list(value: &Value) -> Vec<String> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) if !text.is_empty() => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// JSON as sent, with sorted keys; a text is sniffed (PocketBase: `null true false`, or the first character of a
/// number, text, list or object, and valid) and stays a text otherwise.
pub(super) fn json_value(value: &Value) -> Result<Value, &'static super::Rule> {
    let Value::String(text) = value else {
        return if holds_nul(value) { Err(&super::problem::JSON) } else { Ok(sorted(value)) };
    };
    let sniffed = matches!(text.as_str(), "null" | "true" | "false")
        || text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '"' | '[' | '{'));
    if sniffed && let Ok(parsed) = serde_json::from_str::<Value>(text) {
        return if holds_nul(&parsed) { Err(&super::problem::JSON) } else { Ok(parsed) };
    }
    let escapable = |c: char| !c.is_control() || matches!(c, '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' | '\u{80}'..);
    if text.chars().all(escapable) { Ok(value.clone()) } else { Err(&super::problem::JSON) }
}

/// PostgreSQL's `jsonb` cannot hold U+0000.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(members) => members.iter().any(|(key, member)| key.contains('\0') || holds_nul(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            Value::Object(members.into_iter().map(|(key, member)| (key.clone(), sorted(member))).collect())
        }
        scalar => scalar.clone(),
    }
}

pub(super) fn geo_point(lon: f64, lat: f64) -> Value {
    json!({ "lon": number_value(lon), "lat": number_value(lat) })
}

fn geo(value: &Value) -> Result<Value, &'static super::Rule> {
    let members = match value {
        Value::Null => Map::new(),
        Value::String(text) if text.is_empty() => Map::new(),
        Value::String(text) => serde_json::from_str(text).map_err(|_| &super::problem::GEO)?,
        Value::Object(members) => members.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => return Err(&super::problem::GEO),
    };
    let part = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(0.0),
        Some(part) => part.as_f64().ok_or(&super::problem::GEO),
    };
    Ok(geo_point(part("lon")?, part("lat")?))
}
