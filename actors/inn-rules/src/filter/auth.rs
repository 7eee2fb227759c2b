//! `@request.auth.*`: the caller's own record, put in as values (section A.5).

use inn_protocol::model::{Field, FieldKind};
use serde_json::Value;

use super::error::FilterError;
use super::eval::json_at;
use super::expr::Operand;
use super::resolve::{Modifier, Resolved, is_secret, split_modifier};
use super::scope::Scope;

/// Facts about the record that are not fields of its collection.
const ALWAYS_THERE: [&str; 3] = ["id", "collectionId", "collectionName"];

pub(super) fn auth_value(full: &str, at: usize, scope: &Scope<'_>) -> Result<Resolved, FilterError> {
    let (path, modifier) = split_modifier(full, at)?;
    let mut parts = path.split('.');
    let name = parts.next().unwrap_or_default();
    let rest: Vec<String> = parts.map(str::to_owned).collect();
    if name.is_empty() || rest.iter().any(String::is_empty) {
        return Err(FilterError::invalid(at, format!("`@request.auth.{full}` means nothing")));
    }
    let unsupported = || FilterError::Unsupported(format!("`@request.auth.{full}`"));
    if name.contains("_via_") {
        return Err(unsupported());
    }
    // Checked against every auth collection of the app and not against the record at hand, so that a rule is
    // refused when it is deployed and not when the first such user calls.
    let mut follows_relation = false;
    let mut many = false;
    let mut holds_values = false;
    for (collection, field) in auth_fields(name, scope) {
        if is_secret(field, collection) {
            return Err(FilterError::Hidden(format!("@request.auth.{full}")));
        }
        let plain = !matches!(field.kind, FieldKind::Relation { .. } | FieldKind::Json { .. } | FieldKind::GeoPoint {});
        if plain && !rest.is_empty() {
            return Err(FilterError::UnknownField(format!("@request.auth.{full}")));
        }
        follows_relation |= matches!(field.kind, FieldKind::Relation { .. }) && !rest.is_empty();
        many |= field.is_multiple();
        holds_values |=
            matches!(field.kind, FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. });
    }
    if follows_relation || (many && modifier == Some(Modifier::Each)) {
        return Err(unsupported());
    }
    let auth = scope.auth;
    if auth.partial && auth.record.as_ref().is_some_and(|record| !record.contains_key(name)) {
        return Err(FilterError::Unsupported(format!("`@request.auth.{name}` of a record that was not loaded")));
    }
    let stored = auth.record.as_ref().and_then(|record| record.get(name));
    let found = stored.and_then(|value| if rest.is_empty() { Some(value) } else { json_at(value, &rest) });
    Ok(match modifier {
        Some(Modifier::Isset) => bound(Operand::Bool(found.is_some())),
        Some(Modifier::Length) if holds_values => Resolved {
            integer: true,
            ..bound(Operand::Number(f64::from(u32::try_from(length(found)).unwrap_or(u32::MAX))))
        },
        Some(Modifier::Lower) => match operand(found) {
            Operand::Text(text) => bound(Operand::Text(text.to_ascii_lowercase())),
            other => bound(other),
        },
        _ => bound(operand(found)),
    })
}

fn auth_fields<'a>(
    name: &str,
    scope: &Scope<'a>,
) -> impl Iterator<Item = (&'a inn_protocol::model::Collection, &'a Field)> {
    let known = ALWAYS_THERE.contains(&name);
    let collections = scope.model.collections.iter().filter(move |c| c.is_auth() && !known);
    collections.filter_map(move |collection| Some((collection, collection.field(name)?)))
}

fn bound(operand: Operand) -> Resolved {
    Resolved { bound: true, ..Resolved::plain(operand) }
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

fn length(value: Option<&Value>) -> usize {
    match value {
        Some(Value::Array(values)) => values.len(),
        Some(Value::String(text)) => usize::from(!text.is_empty()),
        _ => 0,
    }
}
