//! The text of the one statement. Names come from the model (quoted), everything else is a parameter, so that one
//! (release, collection, verb, rule) is one text and stays prepared.

use std::borrow::Cow;
use std::fmt::Write as _;

use inn_ports::{Plan, StoreError, StoreResult};
use inn_protocol::Refusal;
use inn_protocol::model::{Collection, Field, FieldKind, Model};
use inn_protocol::receipt::Verb;
use inn_rules::filter::Expr;
use inn_rules::schema::{Storage, storage};
use serde_json::Value;

use crate::columns::{self, SqlValue, ident, literal};
use crate::filter_sql::{self, SqlParams};
use crate::outbox;
use crate::step::account;
use crate::step::guard::GUARD;

pub(super) struct Statement {
    pub(super) text: String,
    /// Parameters from [`FIRST`] on.
    pub(super) values: SqlParams,
}

/// After the guard's 19 and the entry's 15.
const FIRST: usize = 35;

/// Entry and receipt of the row in `shown`. `$18` call, `$19` record, `$20`…: see `commit::at_once`.
const KEEP: &str = "
effect AS MATERIALIZED (
    SELECT s.*, m.at, sha256(convert_to(E'\\n' || $31 || E'\\n' || s.\"row\" || E'\\n' || coalesce(s.labels, ''), 'UTF8')) AS effect
    FROM shown s, moment m
),
entry AS (
    INSERT INTO inn.entries (call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome, effect, digest)
    SELECT $18, $20, at, $21, $22, $23, $24, $25, $26, $27, $28, 'done', effect,
        sha256(convert_to($28 || E'\\ndone\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n' || encode(effect, 'hex'), 'UTF8'))
    FROM effect
),
receipt AS (
    INSERT INTO inn.receipts (call, tenant, app, at, action, entity, record, verb, shape, \"row\", labels)
    SELECT $18, $20, $21, at, $26, $29, $19, $30, $31, \"row\", labels FROM effect
),";

/// What the statement answers, or why nothing of it is kept.
const ANSWER: &str = "
SELECT CASE WHEN s.\"row\" IS NOT NULL AND s.blank = '{}' AND s.outside = '{}' THEN s.\"row\" ELSE inn.stop(json_build_object(
        'free', g.free, 'live', g.live, 'fresh', g.fresh, 'ok', g.ok, 'missing', g.missing,
        'stored', s.\"row\" IS NOT NULL, 'blank', s.blank, 'outside', s.outside)::text) END,
    s.hidden, s.labels, m.at
FROM gate g CROSS JOIN moment m LEFT JOIN shown s ON true";

pub(super) fn build(plan: &Plan, collection: &Collection) -> StoreResult<Statement> {
    let mut params = SqlParams::starting_at(FIRST);
    let table = columns::table(plan.app.id, collection);
    let mut text = GUARD.to_owned();
    references(plan, collection, &mut params, &mut text)?;
    text.push_str(",\nmoment AS MATERIALIZED (SELECT clock_timestamp() AS at),\nstored AS (\n    ");
    match plan.write.verb {
        Verb::Create => create(plan, collection, &table, &mut params, &mut text)?,
        Verb::Update => update(plan, collection, &table, &mut params, &mut text)?,
        Verb::Delete => {
            let condition = condition(plan, &mut params);
            let _ = write!(
                text,
                "DELETE FROM {table} AS t USING gate WHERE gate.open AND t.id = $19 AND {condition} RETURNING t.*"
            );
        }
    }
    let shown = Shown::of(plan, collection);
    let blank = if plan.write.verb == Verb::Delete { NO_NAMES.to_owned() } else { blank(collection) };
    let outside = if plan.write.verb == Verb::Update { outside(collection) } else { NO_NAMES.to_owned() };
    let _ = write!(
        text,
        "\n),\nshown AS MATERIALIZED (\n    SELECT {} AS \"row\", {} AS hidden, {} AS whole, {} AS labels, {blank} AS blank, {outside} AS outside FROM stored s\n),{KEEP}\n\
         change AS (\n    INSERT INTO inn.changes (app, verb, collection, record, \"row\")\n    \
         SELECT '{}'::uuid, $30, $29, $19, coalesce(whole, \"row\") FROM effect\n){ANSWER}",
        shown.row,
        shown.hidden,
        shown.whole,
        shown.labels,
        plan.app.id.uuid()
    );
    Ok(Statement { text, values: params })
}

/// Rule and fixed filter on the stored row, known as `t`.
pub(super) fn condition(plan: &Plan, params: &mut SqlParams) -> String {
    let mut render = |expr: &Option<Expr>| {
        expr.as_ref().map_or_else(|| "true".to_owned(), |expr| filter_sql::render(expr, plan.app.id, "t", params))
    };
    let (rule, fixed) = (render(&plan.write.rule), render(&plan.write.fixed));
    format!("({rule}) AND ({fixed})")
}

/// `gate`: the guards and, per relation field that is written, whether every referenced record is there. Those records
/// stay locked against deletion, or a delete in the same moment would leave the reference dangling.
fn references(plan: &Plan, collection: &Collection, params: &mut SqlParams, text: &mut String) -> StoreResult<()> {
    let mut missing = Vec::new();
    if plan.write.verb != Verb::Delete {
        for (place, (field, target)) in relations(&plan.app.definition.model, collection).enumerate() {
            let ids = params.push(SqlValue::List(referenced(plan.write.values.get(&field.name))?));
            let name = literal(&field.name);
            let Some(target) = target else {
                missing.push(format!("CASE WHEN cardinality({ids}) > 0 THEN {name} END"));
                continue;
            };
            let table = columns::table(plan.app.id, target);
            let _ = write!(
                text,
                ",\nref_{place} AS MATERIALIZED (SELECT r.id FROM {table} AS r WHERE r.id = ANY ({ids}) FOR KEY SHARE)"
            );
            missing.push(format!(
                "CASE WHEN EXISTS (SELECT FROM unnest({ids}) AS v (id) WHERE NOT EXISTS (SELECT FROM ref_{place} f WHERE f.id = v.id)) THEN {name} END"
            ));
        }
    }
    missing.extend(taken_id(plan, collection));
    let missing = names(&missing);
    let pass = signed_in(plan, params, text);
    let _ = write!(
        text,
        ",\nchecked AS MATERIALIZED (SELECT p.*, CASE WHEN p.ok THEN {missing} END AS missing FROM {pass} p),\n\
         gate AS MATERIALIZED (SELECT c.*, c.ok AND c.missing = '{{}}' AS open FROM checked c)"
    );
    Ok(())
}

/// Names `id` when it is that of an account in another collection: `@request.auth.id` must be one account's and nobody else's.
fn taken_id(plan: &Plan, collection: &Collection) -> Option<String> {
    if plan.write.verb != Verb::Create || !collection.is_auth() {
        return None;
    }
    let others = plan.app.definition.model.collections.iter();
    let others = others.filter(|other| other.is_auth() && other.id != collection.id && !other.name.starts_with('_'));
    let tables: Vec<String> = others.map(|other| literal(&columns::table(plan.app.id, other))).collect();
    let app = plan.app.id.uuid();
    let taken = format!("inn.account_elsewhere('{app}'::uuid, ARRAY[{}]::text[], $19)", tables.join(", "));
    (!tables.is_empty()).then(|| format!("CASE WHEN {taken} THEN {} END", literal("id")))
}

/// What the guards passed, and what `inn.call_live` says of an app's own user, or of the claim the write is made under.
fn signed_in(plan: &Plan, params: &mut SqlParams, text: &mut String) -> &'static str {
    let Some(spec) = account::spec_of(&plan.record.live) else { return "pass" };
    let spec = params.push(SqlValue::Text(spec));
    let _ = write!(
        text,
        ",\nlive_user AS MATERIALIZED (SELECT inn.call_live({spec}) AS ok),\n\
         pass_user AS MATERIALIZED (SELECT p.free, p.live AND u.ok AS live, p.fresh, p.ok AND u.ok AS ok FROM pass p, live_user u)"
    );
    "pass_user"
}

/// Relation fields with the collection they point to.
pub(super) fn relations<'m>(
    model: &'m Model,
    collection: &'m Collection,
) -> impl Iterator<Item = (&'m Field, Option<&'m Collection>)> {
    collection.fields.iter().filter_map(|field| match &field.kind {
        FieldKind::Relation { collection_id, .. } => Some((field, model.collection(collection_id))),
        _ => None,
    })
}

/// The ids a relation's new value names.
pub(super) fn referenced(value: Option<&Value>) -> StoreResult<Vec<String>> {
    let ids: Vec<&str> = match value {
        Some(Value::String(id)) => vec![id],
        Some(Value::Array(ids)) => ids.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if ids.iter().any(|id| id.contains('\0')) {
        return Err(StoreError::from(Refusal::new(
            inn_protocol::Code::InvalidRef,
            "A reference holds the character U+0000, which no id has.",
        )));
    }
    Ok(ids.into_iter().filter(|id| !id.is_empty()).map(str::to_owned).collect())
}

/// Database time in PocketBase's layout.
pub(super) const NOW: &str = "to_char(moment.at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.MS\"Z\"')";

fn create(
    plan: &Plan,
    collection: &Collection,
    table: &str,
    params: &mut SqlParams,
    text: &mut String,
) -> StoreResult<()> {
    let (mut names, mut values) = (vec!["id".to_owned()], vec!["$19".to_owned()]);
    for field in columns::stored_fields(collection) {
        let value = match &field.kind {
            FieldKind::Autodate { on_create: true, .. } => NOW.to_owned(),
            // Keeps the column's default.
            FieldKind::Autodate { .. } => continue,
            _ => params.push(value(field, plan.write.values.get(&field.name))?),
        };
        names.push(ident(&field.name));
        values.push(value);
    }
    let Some(rule) = &plan.write.rule else {
        let _ = write!(
            text,
            "INSERT INTO {table} ({}) SELECT {} FROM gate, moment WHERE gate.open RETURNING *",
            names.join(", "),
            values.join(", ")
        );
        return Ok(());
    };
    // The rule is asked of the row as it would be, before it is anywhere: other records of the collection count, it does
    // not (PocketBase notes, section D).
    let mut would_be: Vec<String> =
        names.iter().zip(&values).map(|(name, value)| format!("{value} AS {name}")).collect();
    for field in columns::stored_fields(collection) {
        let (column, text_like) = (ident(&field.name), matches!(storage(field), Storage::Text | Storage::List));
        match names.iter().position(|name| *name == column).and_then(|place| Some((place, would_be.get_mut(place)?))) {
            // Columns compare bytewise, and so must what will be one.
            Some((place, part)) if text_like => {
                let value = values.get(place).map(String::as_str).unwrap_or_default();
                *part = format!("{value} COLLATE \"C\" AS {column}");
            }
            Some(_) => {}
            None => would_be.push(format!("''::text COLLATE \"C\" AS {column}")),
        }
    }
    if let Some(id) = would_be.first_mut() {
        "$19::text COLLATE \"C\" AS \"id\"".clone_into(id);
    }
    let rule = filter_sql::render(rule, plan.app.id, "t", params);
    let columns: Vec<String> = names.iter().map(|name| format!("t.{name}")).collect();
    let _ = write!(
        text,
        "INSERT INTO {table} ({}) SELECT {} FROM gate, (SELECT {} FROM moment) AS t WHERE gate.open AND ({rule}) RETURNING *",
        names.join(", "),
        columns.join(", "),
        would_be.join(", ")
    );
    Ok(())
}

fn update(
    plan: &Plan,
    collection: &Collection,
    table: &str,
    params: &mut SqlParams,
    text: &mut String,
) -> StoreResult<()> {
    let mut sets = Vec::new();
    for field in columns::stored_fields(collection) {
        let column = ident(&field.name);
        match &field.kind {
            FieldKind::Autodate { on_update: true, .. } => sets.push(format!("{column} = {NOW}")),
            FieldKind::Autodate { .. } => {}
            _ => {
                let value = params.push(value(field, plan.write.values.get(&field.name))?);
                let name = literal(&field.name);
                let mut new = format!("CASE WHEN {name} = ANY ($33) THEN {value} ELSE t.{column} END");
                if storage(field) == Storage::Number {
                    // Added to what is there when the row is locked: two at once both count.
                    let more = params.push(self::value(field, plan.write.increments.get(&field.name))?);
                    new = format!("({new}) + {more}");
                }
                sets.push(format!("{column} = {new}"));
            }
        }
    }
    if sets.is_empty() {
        sets.push("id = t.id".to_owned());
    }
    let condition = condition(plan, params);
    let _ = write!(
        text,
        "UPDATE {table} AS t SET {} FROM gate, moment WHERE gate.open AND t.id = $19 AND {condition} RETURNING t.*",
        sets.join(", ")
    );
    Ok(())
}

/// The value to store; what is not written gets the field's zero (and is not used on update).
fn value(field: &Field, value: Option<&Value>) -> StoreResult<SqlValue> {
    columns::param(field, value.unwrap_or(&Value::Null))
        .map_err(|violation| StoreError::from(Refusal::violations("A value cannot be stored.", vec![violation])))
}

/// What of the stored row `s` goes into the receipt, what only inside, and the labels of the sentence.
pub(super) struct Shown {
    pub(super) row: String,
    pub(super) hidden: String,
    /// What the change holds, when that is not `row`.
    pub(super) whole: String,
    pub(super) labels: String,
}

impl Shown {
    pub(super) fn of(plan: &Plan, collection: &Collection) -> Self {
        let (shown, hidden) = split(collection);
        Self {
            row: columns::row_json(&shown, "s"),
            hidden: hidden.map_or_else(|| "NULL::text".to_owned(), |hidden| columns::row_json(&hidden, "s")),
            whole: outbox::whole(collection, "s").unwrap_or_else(|| "NULL::text".to_owned()),
            labels: labels(plan, collection),
        }
    }
}

/// The collection as everybody may see it, and the rest of it.
fn split(collection: &Collection) -> (Cow<'_, Collection>, Option<Collection>) {
    let secret = |field: &Field| field.hidden || matches!(field.kind, FieldKind::Password { .. });
    if !collection.fields.iter().any(secret) {
        return (Cow::Borrowed(collection), None);
    }
    let (hidden, shown) = collection.fields.iter().cloned().partition(secret);
    let with = |fields| Collection { fields, ..collection.clone() };
    (Cow::Owned(with(shown)), Some(with(hidden)))
}

/// The labels of referenced records, as the row's own fields name them now.
fn labels(plan: &Plan, collection: &Collection) -> String {
    let model = &plan.app.definition.model;
    let label = |shape: &inn_protocol::receipt::RefShape| {
        let field = collection.field(&shape.field).filter(|field| storage(field) == Storage::Text)?;
        let target = model.collection(&shape.entity)?;
        let label = target.field(&shape.label)?;
        let table = columns::table(plan.app.id, target);
        let (name, own, label) = (literal(&field.name), ident(&field.name), ident(&label.name));
        Some(format!("{name}, (SELECT l.{label}::text FROM {table} AS l WHERE l.id = s.{own})"))
    };
    // A function takes at most 100 arguments; no sentence names so many things.
    let labels: Vec<String> = plan.write.sentence.refs.iter().filter_map(label).take(40).collect();
    if labels.is_empty() { "NULL::text".to_owned() } else { format!("json_build_object({})::text", labels.join(", ")) }
}

/// Names of the fields in `$32` that came out blank.
fn blank(collection: &Collection) -> String {
    let checks: Vec<String> = columns::stored_fields(collection)
        .filter_map(|field| {
            let column = format!("s.{}", ident(&field.name));
            let blank = match storage(field) {
                Storage::Text => format!("{column} = ''"),
                Storage::List => format!("{column} = '{{}}'"),
                Storage::Json => format!("{column} IS NULL"),
                // Every number, truth value and point says something, zero and false too.
                Storage::Number | Storage::Bool | Storage::Geo => return None,
            };
            let name = literal(&field.name);
            Some(format!("CASE WHEN {name} = ANY ($32) AND {blank} THEN {name} END"))
        })
        .collect();
    names(&checks)
}

/// Names of the number fields in `$34` whose sum broke a rule of the field. (What is set rather than added to has been
/// checked before.) As in PocketBase, 0 is free of bounds.
fn outside(collection: &Collection) -> String {
    let checks: Vec<String> = columns::stored_fields(collection)
        .filter_map(|field| {
            let FieldKind::Number { min, max, only_int } = &field.kind else { return None };
            let column = format!("s.{}", ident(&field.name));
            let mut rules = Vec::new();
            rules.extend(min.map(|min| format!("{column} < '{min}'::float8")));
            rules.extend(max.map(|max| format!("{column} > '{max}'::float8")));
            rules.extend(only_int.then(|| format!("{column} <> trunc({column})")));
            let name = literal(&field.name);
            (!rules.is_empty()).then(|| {
                format!("CASE WHEN {name} = ANY ($34) AND {column} <> 0 AND ({}) THEN {name} END", rules.join(" OR "))
            })
        })
        .collect();
    names(&checks)
}

const NO_NAMES: &str = "'{}'::text[]";

/// The names that the expressions yield.
fn names(checks: &[String]) -> String {
    if checks.is_empty() {
        NO_NAMES.to_owned()
    } else {
        format!("array_remove(ARRAY[{}]::text[], NULL)", checks.join(", "))
    }
}
