//! Deleting a record that others may refer to. PocketBase's rules (reference notes, section D): a referrer whose
//! relation cascades and comes out empty is deleted as well, a required one that comes out empty refuses the whole
//! delete, every other one loses the reference.
//!
//! The record goes first, then its referrers are looked for in a new statement: a writer that referenced it before
//! holds it `FOR KEY SHARE`, so its row is there to be found; one that comes later finds the record gone.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::{Plan, StoreResult};
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use inn_protocol::plan::Committed;
use inn_protocol::receipt::Verb;
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::values;
use tokio_postgres::types::{ToSql, Type};

use super::text::{self, Shown};
use super::{Kept, refusal, shape_text};
use crate::PgStore;
use crate::columns::{self, SqlValue, ident, literal};
use crate::ddl;
use crate::error::{broken, violated};
use crate::filter_sql::SqlParams;
use crate::outbox;
use crate::step::{self, Said};

/// Records one delete may change or take along. More is a job, not a call.
const MOST: usize = 10_000;

pub(super) fn has_referrers(model: &Model, collection: &Collection) -> bool {
    referrers(model, collection).next().is_some()
}

/// Relation fields that point to the collection, with the collections they are in.
fn referrers<'m>(model: &'m Model, collection: &'m Collection) -> impl Iterator<Item = (&'m Collection, &'m Field)> {
    model.collections.iter().filter(|other| other.kind != CollectionKind::View).flat_map(move |other| {
        text::relations(model, other)
            .filter(move |(_, target)| target.is_some_and(|target| target.id == collection.id))
            .map(move |(field, _)| (other, field))
    })
}

pub(super) async fn delete(store: &PgStore, plan: &Plan, collection: &Collection) -> StoreResult<Committed> {
    let mut client = store.client().await?;
    let step = store.begin_for(&mut client, &plan.record, Some(&plan.write.id)).await?;
    let deleted = match remove(step.tx(), plan, collection).await {
        Ok(deleted) => deleted,
        Err(error) => {
            step.abandon().await;
            return Err(error);
        }
    };
    let shape = shape_text(&plan.write.sentence)?;
    let at = step.finish(&deleted.said(plan, collection, &shape)).await?;
    deleted.kept(at).answer(plan, collection)
}

/// The delete as one write of several in an open transaction, with its entry and receipt.
pub(super) async fn within(tx: &Transaction<'_>, plan: &Plan, collection: &Collection) -> StoreResult<Committed> {
    let deleted = remove(tx, plan, collection).await?;
    let shape = shape_text(&plan.write.sentence)?;
    let at = step::enter(tx, &plan.record.draft, &deleted.said(plan, collection, &shape)).await?;
    deleted.kept(at).answer(plan, collection)
}

/// The record, its referrers and the events of all of them.
async fn remove(tx: &Transaction<'_>, plan: &Plan, collection: &Collection) -> StoreResult<Deleted> {
    let deleted = take(tx, plan, collection).await?.ok_or_else(Refusal::not_found)?;
    let sweep = Sweep { tx, model: &plan.app.definition.model, app: plan.app.id };
    if let Swept::Refused(refusal) = sweep.run(collection, &plan.write.id).await? {
        return Err(refusal.into());
    }
    outbox::changed(tx, plan.app.id, Verb::Delete, &collection.name, &plan.write.id, &deleted.whole).await?;
    Ok(deleted)
}

/// The record as it was.
struct Deleted {
    row: String,
    hidden: Option<String>,
    labels: Option<String>,
    /// Of its change.
    whole: String,
}

impl Deleted {
    fn said<'a>(&'a self, plan: &'a Plan, collection: &'a Collection, shape: &'a str) -> Said<'a> {
        Said {
            sentence: None,
            shape: Some(shape),
            row: &self.row,
            labels: self.labels.as_deref(),
            entity: Some(&collection.name),
            record: Some(&plan.write.id),
            verb: Some(plan.write.verb.as_str()),
        }
    }

    fn kept(&self, at: DateTime<Utc>) -> Kept<'_> {
        Kept { row: &self.row, hidden: self.hidden.as_deref(), labels: self.labels.as_deref(), at }
    }
}

async fn take(tx: &Transaction<'_>, plan: &Plan, collection: &Collection) -> StoreResult<Option<Deleted>> {
    let mut params = SqlParams::starting_at(2);
    let condition = text::condition(plan, &mut params);
    let table = columns::table(plan.app.id, collection);
    let Shown { row, hidden, whole, labels } = Shown::of(plan, collection);
    let text = format!(
        "WITH gone AS (DELETE FROM {table} AS t WHERE t.id = $1 AND {condition} RETURNING t.*) SELECT {row}, {hidden}, {labels}, coalesce({whole}, {row}) FROM gone s"
    );
    let types: Vec<Type> = std::iter::once(Type::TEXT).chain(params.values().iter().map(SqlValue::pg_type)).collect();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&plan.write.id];
    parameters.extend(params.refs());
    let statement = tx.prepare_typed_cached(&text, &types).await.map_err(refusal::moved("delete"))?;
    let row = tx.query_opt(&statement, &parameters).await.map_err(refusal::moved("delete"))?;
    let read = |row: tokio_postgres::Row| {
        Ok(Deleted { row: row.try_get(0)?, hidden: row.try_get(1)?, labels: row.try_get(2)?, whole: row.try_get(3)? })
    };
    row.map(read).transpose().map_err(broken("deleted row"))
}

enum Swept {
    Done,
    Refused(Refusal),
}

struct Sweep<'t> {
    tx: &'t Transaction<'t>,
    model: &'t Model,
    app: AppId,
}

impl Sweep<'_> {
    async fn run(&self, collection: &Collection, id: &str) -> StoreResult<Swept> {
        let mut work = vec![(collection, vec![id.to_owned()])];
        let mut touched = 0;
        while let Some((gone_from, ids)) = work.pop() {
            let mut referrers: Vec<_> = referrers(self.model, gone_from).collect();
            referrers.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
            for (other, field) in referrers {
                let cascades = matches!(field.kind, FieldKind::Relation { cascade_delete: true, .. });
                let emptied = Self::emptied(field);
                if cascades {
                    let deleted = self
                        .change(
                            other,
                            "delete",
                            &format!("DELETE FROM {} AS t WHERE {emptied}", self.table(other)),
                            &ids,
                        )
                        .await?;
                    touched += deleted.len();
                    if !deleted.is_empty() {
                        work.push((other, deleted));
                    }
                } else if field.required && self.exists(other, &emptied, &ids).await? {
                    return Ok(Swept::Refused(required(other, field)));
                }
                // A cascading single reference has nothing left to shorten.
                if !cascades || field.is_multiple() {
                    touched += self.change(other, "update", &self.shorten(other, field), &ids).await?.len();
                }
                if touched > MOST {
                    return Ok(Swept::Refused(too_many()));
                }
            }
        }
        Ok(Swept::Done)
    }

    fn table(&self, collection: &Collection) -> String {
        columns::table(self.app, collection)
    }

    /// Rows `t` whose reference comes out empty without the ids in `$1`.
    fn emptied(field: &Field) -> String {
        let column = ident(&field.name);
        if field.is_multiple() {
            format!("t.{column} && $1 AND t.{column} <@ $1")
        } else {
            format!("t.{column} = ANY ($1)")
        }
    }

    fn shorten(&self, collection: &Collection, field: &Field) -> String {
        let column = ident(&field.name);
        let (value, condition) = if field.is_multiple() {
            (
                format!(
                    "ARRAY(SELECT u.v FROM unnest(t.{column}) WITH ORDINALITY AS u (v, n) WHERE NOT u.v = ANY ($1) ORDER BY u.n)"
                ),
                format!("t.{column} && $1"),
            )
        } else {
            ("''".to_owned(), format!("t.{column} = ANY ($1)"))
        };
        let mut sets = format!("{column} = {value}");
        for autodate in
            collection.fields.iter().filter(|f| matches!(f.kind, FieldKind::Autodate { on_update: true, .. }))
        {
            let _ = write!(sets, ", {} = {}", ident(&autodate.name), text::NOW);
        }
        format!(
            "UPDATE {} AS t SET {sets} FROM (SELECT clock_timestamp() AS at) AS moment WHERE {condition}",
            self.table(collection)
        )
    }

    /// Runs one change of referrers, each of which is a change that is told. Answers their ids.
    async fn change(
        &self,
        collection: &Collection,
        verb: &str,
        change: &str,
        ids: &[String],
    ) -> StoreResult<Vec<String>> {
        let (entity, verb) = (literal(&collection.name), literal(verb));
        let whole = outbox::whole(collection, "c").unwrap_or_else(|| columns::row_json(collection, "c"));
        let text = format!(
            "WITH changed AS ({change} RETURNING t.*),
             told AS (
                INSERT INTO inn.changes (app, verb, collection, record, \"row\") SELECT $2, {verb}, {entity}, c.id, {whole} FROM changed c
             )
             SELECT id FROM changed"
        );
        let types = [Type::TEXT_ARRAY, Type::UUID];
        let statement = self.tx.prepare_typed_cached(&text, &types).await.map_err(refusal::moved("referrers"))?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&ids, &self.app.uuid()];
        let rows = self.tx.query(&statement, &parameters).await.map_err(|error| match violated(&error) {
            Some(index) => not_unique(collection, &index).into(),
            None => refusal::moved("referrers")(error),
        })?;
        rows.iter().map(|row| row.try_get(0).map_err(broken("referrers"))).collect()
    }

    async fn exists(&self, collection: &Collection, condition: &str, ids: &[String]) -> StoreResult<bool> {
        let text = format!("SELECT EXISTS (SELECT FROM {} AS t WHERE {condition})", self.table(collection));
        let statement =
            self.tx.prepare_typed_cached(&text, &[Type::TEXT_ARRAY]).await.map_err(refusal::moved("referrers"))?;
        let row = self.tx.query_one(&statement, &[&ids]).await.map_err(refusal::moved("referrers"))?;
        row.try_get(0).map_err(broken("referrers"))
    }
}

/// In PocketBase's words.
const REFERENCED: &str =
    "Failed to delete record. Make sure that the record is not part of a required relation reference.";

fn required(collection: &Collection, field: &Field) -> Refusal {
    let place = format!("whoever may change {}.{}, which needs this record", collection.name, field.name);
    Refusal::new(Code::RecordReferenced, REFERENCED).fix(place)
}

/// A reference that was taken away left a value that another record of the collection has already.
fn not_unique(collection: &Collection, index: &str) -> Refusal {
    let fields = ddl::unique_fields(collection, index).unwrap_or_default();
    let refusal = values::not_unique(fields.iter().map(String::as_str));
    Refusal { code: Code::RecordReferenced, message: REFERENCED.to_owned(), ..refusal }
}

fn too_many() -> Refusal {
    Refusal::new(
        Code::RecordReferenced,
        format!("Deleting this record would change more than {MOST} others. Delete those that refer to it first."),
    )
}
