//! From words on a command line to values of the app's types. The type decides, never the look of the text.

use chrono::NaiveDate;
use serde_json::{Map, Value};

use super::super::error::{CliError, CliResult};
use super::dates;
use super::schema::Field;

/// What a text means for a field.
#[derive(Debug, PartialEq)]
pub(crate) enum Coerced {
    Value(Value),
    /// The label of a record of another entity; its id has to be looked up.
    Ref {
        entity: String,
        label: String,
    },
    Refs {
        entity: String,
        labels: Vec<String>,
    },
}

/// The meaning of `text` for `field`. An empty text clears the field.
pub(crate) fn field(field: &Field, text: &str, today: NaiveDate) -> CliResult<Coerced> {
    let name = &field.name;
    let is_text = matches!(field.kind.as_str(), "string" | "");
    if text.is_empty() || (text == "null" && !is_text) {
        return Ok(Coerced::Value(if is_text { Value::from("") } else { Value::Null }));
    }
    let value = match field.kind.as_str() {
        "string" if field.format.is_some() => day(name, text, today)?.into(),
        "datetime" => time(name, text, today)?.into(),
        "number" => number(name, text)?,
        "boolean" => boolean(name, text)?,
        "enum" => one_of(name, &field.values, text)?.into(),
        "list<enum>" => {
            let values = parts(text).map(|part| one_of(name, &field.values, part).map(Value::from));
            Value::Array(values.collect::<CliResult<_>>()?)
        }
        "ref" => return Ok(reference(field, text)),
        "list<ref>" => return Ok(references(field, text)),
        "json" => serde_json::from_str(text).map_err(|error| {
            refuse(
                "invalid_body",
                format!("{name} takes JSON, and `{text}` is none ({error}). A text needs its quotes: '\"…\"'."),
            )
        })?,
        "binary" => {
            return Err(refuse("not_implemented", format!("{name} holds files, which cannot be sent from here.")));
        }
        _ => text.into(),
    };
    Ok(Coerced::Value(value))
}

/// Params of an operation, by the types it declares. Refuses unknown and missing ones.
pub(crate) fn params(declared: &Value, given: &[(String, String)]) -> CliResult<Map<String, Value>> {
    let empty = Map::new();
    let declared = declared.as_object().unwrap_or(&empty);
    let mut params = Map::new();
    for (name, text) in given {
        let Some(param) = declared.get(name) else {
            let names: Vec<&str> = declared.keys().map(String::as_str).collect();
            let known =
                if names.is_empty() { "It takes none.".to_owned() } else { format!("It takes: {}.", names.join(", ")) };
            return Err(refuse("invalid_parameter", format!("The operation has no param {name}. {known}")));
        };
        let value = match param.get("type").and_then(Value::as_str) {
            Some("number") => number(name, text)?,
            Some("boolean") => boolean(name, text)?,
            _ => text.clone().into(),
        };
        if params.insert(name.clone(), value).is_some() {
            return Err(CliError::Usage(format!("{name} is there twice: which one counts is not clear")));
        }
    }
    let missing = declared.iter().filter(|(name, param)| {
        param.get("required") == Some(&Value::Bool(true))
            && param.get("default").is_none()
            && !params.contains_key(*name)
    });
    let missing: Vec<&str> = missing.map(|(name, _)| name.as_str()).collect();
    if missing.is_empty() {
        return Ok(params);
    }
    let flags: Vec<String> = missing.iter().map(|name| format!("--p {name}=…")).collect();
    Err(refuse("missing_required", format!("The operation also needs {}.", flags.join(" "))))
}

/// True for the form every record's id has: 15 lower-case letters and digits.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == 15 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

fn reference(field: &Field, text: &str) -> Coerced {
    match &field.entity {
        Some(entity) if !is_id(text) => Coerced::Ref { entity: entity.clone(), label: text.to_owned() },
        _ => Coerced::Value(text.into()),
    }
}

fn references(field: &Field, text: &str) -> Coerced {
    let labels: Vec<String> = parts(text).map(str::to_owned).collect();
    match &field.entity {
        Some(entity) if labels.iter().any(|label| !is_id(label)) => Coerced::Refs { entity: entity.clone(), labels },
        _ => Coerced::Value(labels.into_iter().map(Value::from).collect()),
    }
}

/// Parts of a list: between commas.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// An ISO date goes as it is: whether the calendar has that day is the app's guard to say.
fn is_iso(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10
        && bytes
            .iter()
            .take(10)
            .enumerate()
            .all(|(place, byte)| if matches!(place, 4 | 7) { *byte == b'-' } else { byte.is_ascii_digit() })
}

fn time(name: &str, text: &str, today: NaiveDate) -> CliResult<String> {
    if is_iso(text) {
        return Ok(text.to_owned());
    }
    let day = dates::day(text, today).ok_or_else(|| no_date(name, text))?;
    Ok(format!("{day} 00:00:00.000Z"))
}

fn day(name: &str, text: &str, today: NaiveDate) -> CliResult<String> {
    if is_iso(text) {
        return Ok(text.chars().take(10).collect());
    }
    dates::day(text, today).map(|day| day.to_string()).ok_or_else(|| no_date(name, text))
}

fn no_date(name: &str, text: &str) -> CliError {
    refuse(
        "invalid_date",
        format!(
            "`{text}` for {name} is no date that is understood here. Write 2026-07-31, tomorrow, in 3 days, next week or friday."
        ),
    )
}

fn number(name: &str, text: &str) -> CliResult<Value> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let parsed = text
        .parse::<i64>()
        .map(Value::from)
        .ok()
        .or_else(|| text.parse::<f64>().ok().filter(|number| number.is_finite() && plain).map(Value::from));
    parsed.ok_or_else(|| refuse("invalid_number", format!("{name} takes a number; `{text}` is none.")))
}

fn boolean(name: &str, text: &str) -> CliResult<Value> {
    match text {
        "true" => Ok(true.into()),
        "false" => Ok(false.into()),
        _ => Err(refuse("invalid_boolean", format!("{name} takes true or false, not `{text}`."))),
    }
}

fn one_of(name: &str, values: &[String], text: &str) -> CliResult<String> {
    if values.is_empty() || values.iter().any(|value| value == text) {
        return Ok(text.to_owned());
    }
    Err(refuse("invalid_enum", format!("{name} takes one of {}, not `{text}`.", values.join(", "))))
}

fn refuse(code: &'static str, message: String) -> CliError {
    CliError::local(code, message)
}

#[cfg(test)]
mod tests;
