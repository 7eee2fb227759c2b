//! Can a model be built at all? Asked once, at deploy, so that nothing has to be refused later.

use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use inn_protocol::{Code, Refusal, Violation};

use super::{IndexSpec, indexes};
use crate::values;

/// PostgreSQL cuts longer names without a word.
const MAX_NAME: usize = 63;

/// Everything that makes a model impossible to build, by `collection` or `collection.field`: names and ids used twice
/// or not possible, views, relations to nowhere, patterns and indexes that cannot be read.
pub fn check_model(model: &Model) -> Vec<Violation> {
    examine(model).1
}

/// The indexes of each collection of a model that can be built, views left out.
pub(super) fn buildable(model: &Model) -> Result<Vec<Vec<IndexSpec>>, Refusal> {
    let (indexes, violations) = examine(model);
    let Some(first) = violations.first() else { return Ok(indexes) };
    let expected = first.expected.as_deref().unwrap_or("a change");
    let message = format!("The data model cannot be built: {} needs {expected}.", first.field);
    Err(Refusal::violations(message, violations))
}

fn examine(model: &Model) -> (Vec<Vec<IndexSpec>>, Vec<Violation>) {
    let mut needs = Needed(Vec::new());
    let mut all: Vec<Vec<IndexSpec>> = Vec::new();
    for (at, collection) in model.collections.iter().enumerate() {
        let place = &collection.name;
        let mut earlier = model.collections.iter().take(at);
        if earlier.any(|other| other.id == collection.id || other.name.eq_ignore_ascii_case(&collection.name)) {
            needs.push(place, "an id and a name no other collection has");
        }
        if !is_name(&collection.name) {
            needs.push(place, "a name of 1 to 63 letters, digits and _, without _via_");
        }
        let view = collection.kind == CollectionKind::View;
        if view {
            examine_view(collection, &mut needs);
        }
        for (at, field) in collection.fields.iter().enumerate() {
            examine_field(model, collection, at, field, &mut needs);
        }
        if view {
            continue;
        }
        match indexes(collection) {
            Ok(found) => {
                for index in &found {
                    if all.iter().flatten().any(|other| other.name.eq_ignore_ascii_case(&index.name)) {
                        needs.push(place, format!("an index name other than {:?}, which is taken", index.name));
                    }
                }
                all.push(found);
            }
            Err(problem) => needs.push(place, format!("indexes the store can build: {problem}")),
        }
    }
    (all, needs.0)
}

fn examine_view(view: &Collection, needs: &mut Needed) {
    match view.view_query.as_deref().map(crate::view::parse) {
        Some(Ok(_)) if view.field("id").is_none() => needs.push(&view.name, "a query with the column id"),
        Some(Ok(_)) => {}
        Some(Err(why)) => needs.push(&view.name, format!("a query that can be read: {why}")),
        None => needs.push(&view.name, "a viewQuery"),
    }
    if !view.indexes.is_empty() {
        needs.push(&view.name, "to be without indexes: they belong to the tables it reads");
    }
}

fn examine_field(model: &Model, collection: &Collection, at: usize, field: &Field, needs: &mut Needed) {
    const RESERVED: [&str; 7] = ["null", "true", "false", "_rowid_", "collectionId", "collectionName", "expand"];
    let place = format!("{}.{}", collection.name, field.name);
    let mut earlier = collection.fields.iter().take(at);
    if earlier.any(|other| other.id == field.id || other.name.eq_ignore_ascii_case(&field.name)) {
        needs.push(&place, "an id and a name no other field of the collection has");
    }
    if !is_name(&field.name) || RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(&field.name)) {
        needs.push(&place, "a name of 1 to 63 letters, digits and _ that is not reserved, without _via_");
    }
    match &field.kind {
        FieldKind::Relation { collection_id, .. }
            if !model.collections.iter().any(|target| target.id == *collection_id) =>
        {
            needs.push(&place, format!("a collection with the id {collection_id:?} to point to"));
        }
        FieldKind::Relation { collection_id, .. }
            if collection.kind != CollectionKind::View
                && model.collections.iter().any(|c| c.id == *collection_id && c.kind == CollectionKind::View) =>
        {
            needs.push(&place, "a collection of records to point to, not a view");
        }
        FieldKind::Text { pattern, autogenerate_pattern, primary_key, .. } => {
            pattern_usable(&place, pattern, needs);
            let generated = !autogenerate_pattern.is_empty() && !primary_key && !field.system;
            if generated && values::autogenerate(autogenerate_pattern, &[]).is_none() {
                needs.push(
                    &place,
                    "an autogeneratePattern without anchors that makes at most 255 characters, like [a-z0-9]{15}",
                );
            }
        }
        FieldKind::Password { pattern, .. } => pattern_usable(&place, pattern, needs),
        _ => {}
    }
}

fn pattern_usable(place: &str, pattern: &str, needs: &mut Needed) {
    if !pattern.is_empty()
        && let Some(problem) = values::pattern_problem(pattern)
    {
        let problem = problem.lines().last().unwrap_or_default().trim().to_owned();
        needs.push(place, format!("a pattern that can be used ({problem})"));
    }
}

fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && !name.contains("_via_")
}

struct Needed(Vec<Violation>);

impl Needed {
    fn push(&mut self, place: &str, expected: impl Into<String>) {
        self.0.push(Violation::new(Code::InvalidBundle, place, expected));
    }
}
