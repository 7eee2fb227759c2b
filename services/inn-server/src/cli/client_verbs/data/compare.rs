//! What was stored against what was sent.

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde_json::{Map, Value};

use super::schema::Entity;

/// One line for each sent field whose stored value is another. Write-only fields cannot be compared.
pub(super) fn differences(entity: &Entity, sent: &Map<String, Value>, stored: &Value) -> Vec<String> {
    let differs = |name: &String, value: &Value| {
        let field = entity.field(name)?;
        let found = stored.get(name).unwrap_or(&Value::Null);
        let same = if field.kind == "datetime" { same_time(value, found) } else { same(value, found) };
        (!same).then(|| format!("{name}: sent {value}, stored {found}"))
    };
    sent.iter().filter_map(|(name, value)| differs(name, value)).collect()
}

fn same(sent: &Value, stored: &Value) -> bool {
    if is_blank(sent) && is_blank(stored) {
        return true;
    }
    match (sent, stored) {
        (Value::Number(_), Value::Number(_)) => sent.as_f64() == stored.as_f64(),
        _ => sent == stored,
    }
}

/// Apps store no nulls: what was cleared reads as the empty value of its type.
fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Object(_) | Value::Bool(true) => false,
    }
}

fn same_time(sent: &Value, stored: &Value) -> bool {
    match (sent.as_str().and_then(moment), stored.as_str().and_then(moment)) {
        // Times are stored to the millisecond.
        (Some(sent), Some(stored)) => sent.timestamp_millis() == stored.timestamp_millis(),
        _ => same(sent, stored),
    }
}

fn moment(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim().replacen('T', " ", 1);
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Some(day.and_hms_opt(0, 0, 0)?.and_utc());
    }
    let zoned = text.replacen(" Z", "Z", 1).replace('Z', "+00:00");
    for format in ["%Y-%m-%d %H:%M:%S%.f%:z", "%Y-%m-%d %H:%M:%S%.f%z", "%Y-%m-%d %H:%M%:z"] {
        if let Ok(time) = DateTime::parse_from_str(&zoned, format) {
            return Some(time.to_utc());
        }
    }
    let plain = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
    plain.iter().find_map(|format| NaiveDateTime::parse_from_str(&text, format).ok()).map(|time| time.and_utc())
}

#[cfg(test)]
mod tests {
    use super::super::schema;
    use super::*;
    use serde_json::json;

    fn found(sent: &Value, stored: &Value) -> Vec<String> {
        let describe = json!({"entities": {"cards": {"fields": {
            "title": {"type": "string"}, "due": {"type": "datetime"}, "position": {"type": "number"},
            "labels": {"type": "list<ref>"}, "archived": {"type": "boolean"},
        }}}});
        let entity = schema::entity(&describe, "cards").unwrap();
        let sent = sent.as_object().unwrap();
        differences(&entity, sent, stored)
    }

    #[test]
    fn the_same_thing_in_another_spelling_is_the_same() {
        let sent = json!({"title": "a", "due": "2026-07-31T10:00:00+02:00", "position": 1, "labels": null, "archived": null, "password": "x"});
        let stored =
            json!({"title": "a", "due": "2026-07-31 08:00:00.000Z", "position": 1.0, "labels": [], "archived": false});
        assert_eq!(found(&sent, &stored), Vec::<String>::new());
        assert!(found(&json!({"due": "2026-07-31"}), &json!({"due": "2026-07-31 00:00:00.000Z"})).is_empty());
    }

    #[test]
    fn what_did_not_land_is_named() {
        let lines = found(
            &json!({"title": "a", "due": "2026-07-31"}),
            &json!({"title": "", "due": "2026-07-30 00:00:00.000Z"}),
        );
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("title: sent \"a\", stored \"\""), "{lines:?}");
    }
}
