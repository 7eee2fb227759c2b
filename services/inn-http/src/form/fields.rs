//! From the texts of a form to a record body.

use inn_protocol::Refusal;
use serde_json::{Map, Value};

use super::{MOST_PARTS, broken};

/// The key whose values are JSON objects, laid over everything else untouched.
const JSON_PAYLOAD: &str = "@jsonPayload";

/// Names and texts of a form, in order.
#[derive(Debug, Default)]
pub(crate) struct Fields {
    texts: Vec<(String, String)>,
}

impl Fields {
    pub(crate) fn push(&mut self, name: String, text: String) {
        self.texts.push((name, text));
    }

    /// Did the payload come already?
    pub(crate) fn has_payload(&self) -> bool {
        self.texts.iter().any(|(name, _)| name == JSON_PAYLOAD)
    }

    /// In order: what the digest of the form is made of.
    pub(crate) fn texts(&self) -> &[(String, String)] {
        &self.texts
    }

    /// Single values inferred, repeated keys as lists.
    ///
    /// # Errors
    /// A payload that is no JSON object.
    pub(crate) fn body(&self) -> Result<Map<String, Value>, Refusal> {
        let mut body: Map<String, Value> = Map::new();
        let mut repeated: Vec<&str> = Vec::new();
        for (name, text) in self.texts.iter().filter(|(name, _)| name != JSON_PAYLOAD) {
            let value = inferred(text);
            match body.get_mut(name) {
                None => drop(body.insert(name.clone(), value)),
                Some(Value::Array(values)) if repeated.contains(&name.as_str()) => values.push(value),
                Some(first) => {
                    repeated.push(name);
                    *first = Value::Array(vec![first.take(), value]);
                }
            }
        }
        for (_, text) in self.texts.iter().filter(|(name, _)| name == JSON_PAYLOAD) {
            match serde_json::from_str(text) {
                Ok(Value::Object(members)) => body.extend(members),
                Ok(_) => return Err(broken("@jsonPayload is no JSON object")),
                Err(error) => {
                    let (line, column) = (error.line(), error.column());
                    return Err(broken(&format!("@jsonPayload is not valid JSON (line {line}, column {column})")));
                }
            }
        }
        Ok(body)
    }
}

/// The fields of an `application/x-www-form-urlencoded` body.
pub(crate) fn urlencoded(body: &[u8]) -> Result<Fields, Refusal> {
    let mut fields = Fields::default();
    for (name, text) in url::form_urlencoded::parse(body) {
        if fields.texts.len() == MOST_PARTS {
            return Err(broken(&format!("it has more than {MOST_PARTS} values")));
        }
        fields.push(name.into_owned(), text.into_owned());
    }
    Ok(fields)
}

/// `true` and `false`, and texts that are exactly the shortest plain decimal of a number; everything else stays text.
fn inferred(text: &str) -> Value {
    match text {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && text.len() <= 40;
    let number = text.parse::<f64>().ok().filter(|number| plain && number.is_finite() && text != "-0");
    match number {
        // Rust prints the shortest digits and never an exponent.
        Some(number) if number.to_string() == text => match text.parse::<i64>() {
            Ok(whole) if whole.unsigned_abs() <= 1 << 53 => Value::from(whole),
            _ => Value::from(number),
        },
        _ => Value::String(text.to_owned()),
    }
}
