//! What `describe` says, as far as the command line needs it.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::error::{CliError, CliResult};
use super::super::out::{items, text};

/// Most columns of a table besides the id.
const COLUMNS: usize = 6;

pub(super) struct Entity {
    pub(super) name: String,
    /// The field people identify a record by.
    pub(super) label: Option<String>,
    pub(super) auth: bool,
    pub(super) fields: Vec<Field>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// The protocol type: `string`, `datetime`, `list<ref>`, …
    pub(crate) kind: String,
    pub(crate) read_only: bool,
    pub(crate) values: Vec<String>,
    /// Where a reference points to.
    pub(crate) entity: Option<String>,
    /// `YYYY-MM-DD` for a day key.
    pub(crate) format: Option<String>,
}

/// Write-only or special members of accounts, which describe does not list.
const ACCOUNT_FIELDS: [&str; 3] = ["password", "passwordConfirm", "oldPassword"];

impl Entity {
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// A field that can be written; modifiers (`name+`, `name-`, `+name`) are those of its base.
    pub(super) fn writable(&self, name: &str) -> CliResult<&Field> {
        let base = name.trim_start_matches('+').trim_end_matches(['+', '-']);
        let found = self.field(name).or_else(|| self.field(base));
        if let Some(field) = found {
            // An id of one's own is accepted when a record is made, although describe lists it as read-only.
            if field.read_only && field.name != "id" {
                return Err(CliError::local(
                    "read_only_field",
                    format!("{}.{name} is kept by the app and cannot be written.", self.name),
                ));
            }
            return Ok(field);
        }
        if self.auth && ACCOUNT_FIELDS.contains(&name) {
            return Ok(&SECRET);
        }
        let names: Vec<&str> =
            self.fields.iter().filter(|field| !field.read_only).map(|field| field.name.as_str()).collect();
        let near =
            nearest(name, names.iter().copied()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        let message = format!("{} has no field {name}.{near} It has: {}.", self.name, names.join(", "));
        Err(CliError::local("unknown_field", message))
    }

    /// Columns of a table: the id, the label, and the first fields people write.
    pub(super) fn columns(&self) -> Vec<(String, String)> {
        let label = self.label.iter().cloned();
        let others =
            self.fields.iter().filter(|field| !field.read_only && field.kind != "json").map(|field| field.name.clone());
        let mut names = vec!["id".to_owned()];
        for name in label.chain(others) {
            if !names.contains(&name) && names.len() <= COLUMNS {
                names.push(name);
            }
        }
        names
            .into_iter()
            .map(|name| (name.clone(), format!("/{}", name.replace('~', "~0").replace('/', "~1"))))
            .collect()
    }
}

static SECRET: Field = Field {
    name: String::new(),
    kind: String::new(),
    read_only: false,
    values: Vec::new(),
    entity: None,
    format: None,
};

/// The named entity of a described app.
pub(super) fn entity(describe: &Value, name: &str) -> CliResult<Entity> {
    let entities = describe.get("entities").and_then(Value::as_object);
    let found = entities.and_then(|all| all.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)));
    let Some((known, entity)) = found else {
        let names: Vec<&str> = entities.into_iter().flatten().map(|(known, _)| known.as_str()).collect();
        let near =
            nearest(name, names.iter().copied()).map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        let message = format!("The app has no entity {name}.{near} It has: {}.", names.join(", "));
        return Err(CliError::local("unknown_entity", message));
    };
    let fields = entity.get("fields").and_then(Value::as_object);
    Ok(Entity {
        name: known.clone(),
        label: entity.get("label").and_then(Value::as_str).map(str::to_owned),
        auth: entity.get("auth") == Some(&Value::Bool(true)),
        fields: fields.into_iter().flatten().map(|(name, field)| read(name, field)).collect(),
    })
}

fn read(name: &str, field: &Value) -> Field {
    let some = |pointer: &str| field.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let values = field.get("values").map(items).unwrap_or_default();
    Field {
        name: name.to_owned(),
        kind: text(field, "/type"),
        read_only: field.get("readOnly") == Some(&Value::Bool(true)),
        values: values.iter().map(|value| text(value, "")).collect(),
        entity: some("/entity"),
        format: some("/format"),
    }
}

/// The whole schema in words: one line a field, one line an operation.
pub(super) fn words(describe: &Value) -> String {
    let mut lines = Vec::new();
    for (name, entity) in describe.get("entities").and_then(Value::as_object).into_iter().flatten() {
        let label = text(entity, "/label");
        lines.push(if label.is_empty() { name.clone() } else { format!("{name} (known by its {label})") });
        for (name, field) in entity.get("fields").and_then(Value::as_object).into_iter().flatten() {
            let mut line = format!("  {name}: {}", text(field, "/type"));
            for (pointer, before) in
                [("/entity", "to "), ("/values", "one of "), ("/format", "as "), ("/max", "at most ")]
            {
                let value = text(field, pointer);
                if !value.is_empty() {
                    // Writing to a String cannot fail.
                    let _ = write!(line, ", {before}{value}");
                }
            }
            for (key, word) in [("required", ", required"), ("readOnly", ", kept by the app")] {
                if field.get(key) == Some(&Value::Bool(true)) {
                    line.push_str(word);
                }
            }
            lines.push(line);
        }
    }
    let operations = describe.get("operations").map(items).unwrap_or_default();
    if !operations.is_empty() {
        lines.push("operations".to_owned());
    }
    for operation in operations {
        let params: Vec<&str> = operation
            .get("params")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        lines.push(format!(
            "  {}({}): {}",
            text(operation, "/name"),
            params.join(", "),
            text(operation, "/description")
        ));
    }
    lines.join("\n")
}

/// The closest name, if it is close.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = 1 + name.chars().count() / 3;
    names
        .map(|known| (distance(name, known), known))
        .filter(|(far, _)| *far <= limit)
        .min_by_key(|(far, _)| *far)
        .map(|(_, known)| known)
}

/// Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.chars().take(64).enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, b) in row.iter_mut().skip(1).zip(&right) {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = *cell;
            before = replaced.min(before + 1).min(*cell + 1);
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn described() -> Value {
        json!({"entities": {"cards": {"label": "title", "auth": false, "fields": {
            "id": {"type": "string", "readOnly": true},
            "title": {"type": "string", "required": true},
            "list": {"type": "ref", "entity": "lists"},
            "created": {"type": "datetime", "readOnly": true},
        }}}})
    }

    #[test]
    fn a_misspelt_name_is_refused_with_the_nearest_one() {
        let describe = described();
        let error = entity(&describe, "card").err().unwrap();
        assert!(error.text().contains("Did you mean cards?"), "{}", error.text());
        let cards = entity(&describe, "cards").unwrap();
        let error = cards.writable("titel").err().unwrap();
        assert!(error.text().contains("Did you mean title?"), "{}", error.text());
        assert!(cards.writable("created").err().unwrap().text().contains("kept by the app"));
        assert!(cards.writable("constructor").is_err());
        assert!(cards.writable("title").is_ok());
    }

    #[test]
    fn distance_counts_edits() {
        for (left, right, edits) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("titel", "title", 2), ("ä", "a", 1)]
        {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn a_table_shows_the_label_first_and_nothing_the_app_keeps() {
        let columns: Vec<_> =
            entity(&described(), "cards").unwrap().columns().into_iter().map(|(name, _)| name).collect();
        assert_eq!(columns, ["id", "title", "list"]);
    }
}
