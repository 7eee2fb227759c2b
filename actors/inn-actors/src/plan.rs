//! From an admitted write to the plan that is committed: guard, values, rule, sentence.

use std::sync::Arc;

use inn_ports::Plan;
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::plan::Write;
use inn_protocol::receipt::Verb;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Digest, Refusal, Result};
use inn_rules::access::RowRule;
use inn_rules::files::{self, Upload};
use inn_rules::filter::Expr;
use inn_rules::guard::{self, Kind, Mode};
use inn_rules::{sentence, values};
use serde_json::{Map, Value};

use crate::account::Account;

/// One admitted write of one record.
pub(crate) struct WriteInput {
    pub(crate) record: CallRecord,
    pub(crate) app: Arc<AppSnapshot>,
    pub(crate) verb: Verb,
    pub(crate) entity: String,
    /// Given on update and delete.
    pub(crate) id: Option<String>,
    pub(crate) body: Value,
    /// Files that came along, when the body was a form.
    pub(crate) form: Option<Vec<Upload>>,
    /// The collection's rule for this verb, compiled for this caller.
    pub(crate) rule: RowRule,
    /// The fixed filter of a `crud` operation.
    pub(crate) fixed: Option<Expr>,
    /// The caller is an owner of the app: hidden fields exist for it.
    pub(crate) see_hidden: bool,
    /// The stored row was looked for, because the body has modifiers that need it.
    pub(crate) looked: bool,
    /// What was found, as far as the rule lets it be changed.
    pub(crate) current: Option<Map<String, Value>>,
    /// Hashes and keys of an account, and whose hand it is.
    pub(crate) account: Account,
    /// For a new id and generated texts.
    pub(crate) random: [u8; 64],
    /// For the example in the guard's message.
    pub(crate) now: chrono::DateTime<chrono::Utc>,
}

impl WriteInput {
    fn kind(&self) -> Kind {
        if self.form.is_some() { Kind::Multipart } else { Kind::Json }
    }

    fn uploads(&self) -> &[Upload] {
        self.form.as_deref().unwrap_or_default()
    }
}

pub(crate) fn plan(input: WriteInput) -> Result<Plan> {
    let definition = Arc::clone(&input.app.definition);
    let model = &definition.model;
    let collection = model.collection(&input.entity).ok_or_else(unknown_entity)?;
    let write = match input.verb {
        Verb::Create => create(&input, collection)?,
        Verb::Update => update(&input, collection)?,
        Verb::Delete => delete(&input, collection)?,
    };
    Ok(Plan { record: input.record, app: input.app, write })
}

fn create(input: &WriteInput, collection: &Collection) -> Result<Write<Expr>> {
    let model = &input.app.definition.model;
    let body = object(&input.body)?;
    guard::guard(collection, body, Mode::Create, input.kind(), input.see_hidden, input.now)?;
    let mut ready = values::normalise_form(collection, model, body, input.uploads(), Mode::Create, None)?;
    let extra = input.account.create(collection, &ready, input.see_hidden)?;
    let id = ready.id.take().unwrap_or_else(|| values::new_id(collection, &chance(&input.random, "id")));
    make_up(&mut ready, &input.random);
    ready.values.extend(extra);
    let mut would_be = ready.values.clone();
    would_be.insert("id".to_owned(), Value::String(id.clone()));
    if !input.rule.lets_create(&would_be) {
        // PocketBase answers a failed create rule with 400 and no detail.
        return Err(Refusal::new(Code::CreateRefused, "Failed to create record.").leg("user"));
    }
    Ok(Write {
        verb: Verb::Create,
        entity: collection.name.clone(),
        id,
        values: ready.values,
        increments: Map::new(),
        read_back: read_back(input, collection, body),
        // What needs other records is decided when the row is written.
        rule: input.rule.for_new().cloned(),
        fixed: None,
        sentence: sentence::shape(Verb::Create, collection, model, &[]),
    })
}

/// Fills the fields that the store makes up itself.
fn make_up(ready: &mut values::Normalised, random: &[u8; 64]) {
    for wanted in &ready.generate {
        if let Some(text) = values::autogenerate(&wanted.pattern, &chance(random, &wanted.field)) {
            ready.values.insert(wanted.field.clone(), Value::String(format!("{}{text}", wanted.prefix)));
        }
    }
}

/// Random bytes for one thing out of those of the call: whoever knows what became of them knows nothing of the others.
fn chance(random: &[u8; 64], what: &str) -> Vec<u8> {
    let block = |number: u8| Digest::of(&[random.as_slice(), &[number], what.as_bytes()].concat()).0;
    (0..8).flat_map(block).collect()
}

fn update(input: &WriteInput, collection: &Collection) -> Result<Write<Expr>> {
    let model = &input.app.definition.model;
    let body = object(&input.body)?;
    if input.looked && input.current.is_none() {
        return Err(Refusal::not_found());
    }
    guard::guard(collection, body, Mode::Update, input.kind(), input.see_hidden, input.now)?;
    let id = input.id.clone().ok_or_else(Refusal::not_found)?;
    let mut ready =
        values::normalise_form(collection, model, body, input.uploads(), Mode::Update, input.current.as_ref())?;
    ready.check_own_id(&id)?;
    make_up(&mut ready, &input.random);
    let extra = input.account.update(collection, &ready, input.current.as_ref(), input.see_hidden)?;
    let mut values = ready.values;
    values.extend(extra);
    let mut increments = Map::new();
    for change in ready.modifiers {
        // The database adds; what was read a moment ago only decided whether the result may be stored.
        values.remove(&change.field);
        increments.insert(change.field, change.delta.into());
    }
    let mut changed: Vec<String> = values.keys().cloned().collect();
    changed.extend(increments.keys().cloned());
    Ok(Write {
        verb: Verb::Update,
        entity: collection.name.clone(),
        id,
        values,
        increments,
        read_back: read_back(input, collection, body),
        rule: input.rule.stored().cloned(),
        fixed: input.fixed.clone(),
        sentence: sentence::shape(Verb::Update, collection, model, &changed),
    })
}

fn delete(input: &WriteInput, collection: &Collection) -> Result<Write<Expr>> {
    Ok(Write {
        verb: Verb::Delete,
        entity: collection.name.clone(),
        id: input.id.clone().ok_or_else(Refusal::not_found)?,
        values: Map::new(),
        increments: Map::new(),
        read_back: Vec::new(),
        rule: input.rule.stored().cloned(),
        fixed: input.fixed.clone(),
        sentence: sentence::shape(Verb::Delete, collection, &input.app.definition.model, &[]),
    })
}

/// Fields whose value must be found in the stored row: those the body fills, and those that files were sent for.
fn read_back(input: &WriteInput, collection: &Collection, body: &Map<String, Value>) -> Vec<String> {
    let mut fields = values::read_back_fields(collection, body);
    for field in input.uploads().iter().filter_map(|upload| files::takes(collection, &upload.key)) {
        if !fields.contains(&field.name) {
            fields.push(field.name.clone());
        }
    }
    fields
}

fn object(body: &Value) -> Result<&Map<String, Value>> {
    body.as_object()
        .ok_or_else(|| Refusal::new(Code::InvalidBody, "The body must be a JSON object with the record's fields."))
}

/// Whether the body changes values relative to the stored ones (`f+`, `+f`, `f-`).
pub(crate) fn has_modifiers(body: &Value) -> bool {
    body.as_object().is_some_and(|body| body.keys().any(|key| key.starts_with('+') || key.ends_with(['+', '-'])))
}

pub(crate) fn unknown_entity() -> Refusal {
    Refusal::new(Code::UnknownEntity, "The app has no entity of that name. `GET /api/_a2app/describe` lists them.")
        .leg("app")
}
