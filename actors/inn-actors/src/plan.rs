//! From an admitted write to the plan that is committed: guard, values, rule, sentence.

use std::sync::Arc;

use inn_ports::Plan;
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::plan::Write;
use inn_protocol::receipt::Verb;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Refusal, Result};
use inn_rules::access::RowRule;
use inn_rules::filter::Expr;
use inn_rules::guard::{self, Kind, Mode};
use inn_rules::{sentence, values};
use serde_json::{Map, Value};

/// One admitted write of one record.
pub(crate) struct WriteInput {
    pub(crate) record: CallRecord,
    pub(crate) app: Arc<AppSnapshot>,
    pub(crate) verb: Verb,
    pub(crate) entity: String,
    /// Given on update and delete.
    pub(crate) id: Option<String>,
    pub(crate) body: Value,
    /// The collection's rule for this verb, compiled for this caller.
    pub(crate) rule: RowRule,
    /// The fixed filter of a `crud` operation.
    pub(crate) fixed: Option<Expr>,
    /// The caller is an owner of the app: hidden fields exist for it.
    pub(crate) see_hidden: bool,
    /// The stored row, read beforehand when the body has modifiers that need it.
    pub(crate) current: Option<Map<String, Value>>,
    /// For a new id and generated texts.
    pub(crate) random: [u8; 64],
    /// For the example in the guard's message.
    pub(crate) now: chrono::DateTime<chrono::Utc>,
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
    guard::guard(collection, body, Mode::Create, Kind::Json, input.see_hidden, input.now)?;
    let mut ready = values::normalise(collection, model, body, Mode::Create, None)?;
    if !input.see_hidden {
        values::check_auth_form(collection, &ready, Mode::Create, None)?;
    }
    refuse_secrets(&ready.secrets)?;
    let (for_id, for_texts) = input.random.split_at(32);
    let id = ready.id.take().unwrap_or_else(|| values::record_id(for_id));
    for (index, wanted) in ready.generate.iter().enumerate() {
        let seed: Vec<u8> =
            for_texts.iter().map(|byte| byte.wrapping_add(u8::try_from(index % 251).unwrap_or(0))).collect();
        if let Some(text) = values::autogenerate(&wanted.pattern, &seed) {
            ready.values.insert(wanted.field.clone(), Value::String(format!("{}{text}", wanted.prefix)));
        }
    }
    let mut would_be = ready.values.clone();
    would_be.insert("id".to_owned(), Value::String(id.clone()));
    if !input.rule.lets_create(&would_be) {
        // PocketBase answers a failed create rule with 400 and no detail.
        return Err(Refusal::new(Code::Forbidden, "Failed to create record.").leg("user"));
    }
    Ok(Write {
        verb: Verb::Create,
        entity: collection.name.clone(),
        id,
        values: ready.values,
        increments: Map::new(),
        read_back: values::read_back_fields(collection, body),
        rule: None,
        fixed: None,
        sentence: sentence::shape(Verb::Create, collection, model, &[]),
    })
}

fn update(input: &WriteInput, collection: &Collection) -> Result<Write<Expr>> {
    let model = &input.app.definition.model;
    let body = object(&input.body)?;
    guard::guard(collection, body, Mode::Update, Kind::Json, input.see_hidden, input.now)?;
    let id = input.id.clone().ok_or_else(Refusal::not_found)?;
    let ready = values::normalise(collection, model, body, Mode::Update, input.current.as_ref())?;
    ready.check_own_id(&id)?;
    if !input.see_hidden {
        values::check_auth_form(collection, &ready, Mode::Update, input.current.as_ref())?;
    }
    refuse_secrets(&ready.secrets)?;
    let mut values = ready.values;
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
        read_back: values::read_back_fields(collection, body),
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

fn object(body: &Value) -> Result<&Map<String, Value>> {
    body.as_object()
        .ok_or_else(|| Refusal::new(Code::InvalidBody, "The body must be a JSON object with the record's fields."))
}

/// Whether the body changes values relative to the stored ones (`f+`, `+f`, `f-`).
pub(crate) fn has_modifiers(body: &Value) -> bool {
    body.as_object().is_some_and(|body| body.keys().any(|key| key.starts_with('+') || key.ends_with(['+', '-'])))
}

fn refuse_secrets(secrets: &Map<String, Value>) -> Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        Code::NotImplemented,
        "This host does not keep passwords of an app's own accounts yet; the record was not stored. Leave the password out.",
    ))
}

pub(crate) fn unknown_entity() -> Refusal {
    Refusal::new(Code::UnknownEntity, "The app has no entity of that name. `GET /api/_a2app/describe` lists them.")
        .leg("app")
}
