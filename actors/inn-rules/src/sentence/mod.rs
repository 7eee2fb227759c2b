//! The sentence of a receipt, made from the stored row and never from whoever asked:
//! `Added "Eat chicken" to To Do, due Fri 31 Jul`.

mod words;

use chrono::{DateTime, Utc};
use inn_protocol::model::{Collection, Field, FieldKind, Model};
use inn_protocol::receipt::{RefShape, SentenceShape, Verb};
use serde_json::{Map, Value};

use words::{date, date_word, listed, plain, quoted};

/// More dates or changed fields than this are counted, not named.
const MAX_NAMED: usize = 5;

/// Which fields the sentence is made of. `changed` are the fields an update was asked to change; other verbs have
/// none. Hidden fields, passwords and the emails of auth records are never part of a sentence: it is read by people
/// who may not see them.
pub fn shape(verb: Verb, collection: &Collection, model: &Model, changed: &[String]) -> SentenceShape {
    let may_tell = |field: &&Field| {
        let private = collection.is_auth() && matches!(field.kind, FieldKind::Email { .. });
        !field.hidden && !matches!(field.kind, FieldKind::Password { .. }) && !private
    };
    let told = || collection.fields.iter().filter(may_tell);
    let refs = told().filter_map(|field| {
        let FieldKind::Relation { collection_id, .. } = &field.kind else { return None };
        let target = model.collections.iter().find(|target| target.id == *collection_id)?;
        let private =
            |field: &&Field| field.hidden || target.is_auth() && matches!(field.kind, FieldKind::Email { .. });
        let label = target.label_field().filter(|field| !private(field))?;
        (!field.is_multiple()).then(|| RefShape {
            field: field.name.clone(),
            entity: target.name.clone(),
            label: label.name.clone(),
        })
    });
    let dates = told().filter(|field| matches!(field.kind, FieldKind::Date { .. }) || field.is_day_key());
    let changed = changed.iter().filter(|name| verb == Verb::Update && told().any(|field| field.name == **name));
    SentenceShape {
        verb,
        entity: collection.name.clone(),
        label: collection.label_field().filter(may_tell).map(|field| field.name.clone()),
        refs: refs.collect(),
        dates: dates.map(|field| field.name.clone()).collect(),
        changed: changed.cloned().collect(),
    }
}

/// The sentence. `row` is the stored row (on delete as it was), `labels` the label texts of the records it refers to,
/// by relation field; `at` is the moment of the write: a date of its year is told without the year.
pub fn sentence(
    shape: &SentenceShape,
    row: &Map<String, Value>,
    labels: &Map<String, Value>,
    at: DateTime<Utc>,
) -> String {
    let telling = Telling { shape, row, labels, at };
    match shape.verb {
        Verb::Create => format!("Added {} to {}{}", telling.subject(), telling.home(), telling.dates()),
        Verb::Delete => format!("Deleted {} from {}", telling.subject(), telling.home()),
        Verb::Update => telling.update(),
    }
}

struct Telling<'a> {
    shape: &'a SentenceShape,
    row: &'a Map<String, Value>,
    labels: &'a Map<String, Value>,
    at: DateTime<Utc>,
}

impl Telling<'_> {
    /// The record by its label, else by its id.
    fn subject(&self) -> String {
        let label = self.shape.label.as_ref().and_then(|field| self.row.get(field)).and_then(quoted);
        label.unwrap_or_else(|| {
            let id = self.row.get("id").and_then(Value::as_str).map(plain).filter(|id| !id.is_empty());
            id.unwrap_or_else(|| "a record".to_owned())
        })
    }

    /// Where it belongs: the first record it refers to that has a label, else its entity.
    fn home(&self) -> String {
        let label = self.shape.refs.iter().find_map(|reference| self.label(&reference.field));
        label.unwrap_or_else(|| plain(&self.shape.entity))
    }

    fn label(&self, field: &str) -> Option<String> {
        self.labels.get(field).and_then(Value::as_str).map(plain).filter(|label| !label.is_empty())
    }

    /// `, due Fri 31 Jul` for every date that is set.
    fn dates(&self) -> String {
        let set = self.shape.dates.iter().filter_map(|field| Some((field, date(self.row.get(field)?, self.at)?)));
        let told = set.take(MAX_NAMED).map(|(field, day)| [", ", &date_word(field), " ", &day].concat());
        told.collect()
    }

    fn update(&self) -> String {
        let changed = &self.shape.changed;
        match changed.as_slice() {
            [] => format!("Changed {}", self.subject()),
            [only] => {
                let named = plain(only);
                let of = if Some(only) == self.shape.label.as_ref() {
                    String::new()
                } else {
                    format!(" of {}", self.subject())
                };
                match self.value(only) {
                    Told::Cleared => format!("Cleared {named}{of}"),
                    Told::As(text) => format!("Changed {named}{of} to {text}"),
                    Told::Nothing => format!("Changed {named}{of}"),
                }
            }
            _ => format!("Changed {} of {}", listed(changed, MAX_NAMED), self.subject()),
        }
    }

    fn value(&self, field: &String) -> Told {
        let value = self.row.get(field).unwrap_or(&Value::Null);
        if crate::values::blank(value) {
            return Told::Cleared;
        }
        if self.shape.dates.contains(field) {
            return date(value, self.at).map_or(Told::Nothing, Told::As);
        }
        if self.shape.refs.iter().any(|reference| reference.field == *field) {
            return self.label(field).map_or(Told::Nothing, Told::As);
        }
        match value {
            Value::Bool(flag) => Told::As(flag.to_string()),
            Value::Number(number) => Told::As(number.to_string()),
            Value::String(_) => quoted(value).map_or(Told::Nothing, Told::As),
            Value::Null | Value::Array(_) | Value::Object(_) => Told::Nothing,
        }
    }
}

/// What can be said about a value that was changed.
enum Told {
    Cleared,
    As(String),
    Nothing,
}

#[cfg(test)]
mod tests;
