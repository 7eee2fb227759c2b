//! Rows written out as JSON straight from their columns, without a tree of values in between.

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use inn_ports::{Ledger as _, ListPlan, PageText, RecordTexts, StoreError, StoreResult, ViewPlan};
use inn_protocol::Code;
use inn_protocol::model::{Collection, Field, FieldKind};
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_rules::filter::{Expr, Op, Operand};
use inn_rules::schema::Storage;
use inn_rules::values::{MemberValue, RecordShape, number_value};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::{counted, readable, views};
use crate::PgStore;
use crate::columns::{SqlValue, ident, table};
use crate::error::broken;
use crate::filter_sql::{SqlParams, order_by, render, window};

#[async_trait]
impl RecordTexts for PgStore {
    async fn list_text(&self, plan: &ListPlan, shape: &RecordShape) -> StoreResult<PageText> {
        let collection = readable(&plan.app, &plan.entity)?;
        let counts = !plan.paging.skip_total;
        if plan.filter == Expr::Never {
            return Ok(PageText { items: "[]".to_owned(), total: counts.then_some(0) });
        }
        let table = table(plan.app.id, collection);
        let mut params = SqlParams::starting_at(1);
        let filter = render(&plan.filter, plan.app.id, "t", &mut params);
        let count = counts.then(|| (format!("SELECT count(*) FROM {table} AS t WHERE {filter}"), params.clone()));
        let order = order_by(&plan.sort, plan.app.id, "t", &mut params);
        let (columns, window) = (columns(shape, "t"), window(plan.paging));
        let client = self.client().await?;
        let Some((count, count_params)) = count else {
            let sql = format!("SELECT {columns} FROM {table} AS t WHERE {filter} ORDER BY {order} {window}");
            let rows = self.select(&client, &sql, &params).await?;
            return Ok(PageText { items: array(&rows, shape)?, total: None });
        };
        if narrows(&plan.filter, collection) {
            // Few rows match, so they are walked once, for page and count together, and only the page's are fetched
            // whole. The numbers keep the order across the join.
            let sql = format!(
                "SELECT {columns}, p.n FROM (SELECT c, n, row_number() OVER () AS place FROM \
                 (SELECT t.ctid AS c, count(*) OVER () AS n FROM {table} AS t WHERE {filter} ORDER BY {order} {window}) AS w) AS p \
                 JOIN {table} AS t ON t.ctid = p.c ORDER BY p.place"
            );
            let rows = self.select(&client, &sql, &params).await?;
            if let Some(row) = rows.first() {
                let total: i64 = row.try_get(column_names(shape).count()).map_err(broken("count records"))?;
                let items = array(&rows, shape)?;
                return Ok(PageText { items, total: Some(u64::try_from(total).unwrap_or_default()) });
            }
            // Beyond the last page there is no row to read the count from.
            let total = counted(&self.select(&client, &count, &count_params).await?)?;
            return Ok(PageText { items: "[]".to_owned(), total: Some(total) });
        }
        let sql = format!("SELECT {columns} FROM {table} AS t WHERE {filter} ORDER BY {order} {window}");
        // Sent together on one connection: one round trip.
        let (rows, total) = futures_util::future::try_join(self.select(&client, &sql, &params), async {
            counted(&self.select(&client, &count, &count_params).await?)
        })
        .await?;
        Ok(PageText { items: array(&rows, shape)?, total: Some(total) })
    }

    async fn view_text(&self, plan: &ViewPlan, shape: &RecordShape) -> StoreResult<Option<String>> {
        let collection = readable(&plan.app, &plan.entity)?;
        let Some(id) = plan.ids.first().filter(|id| !id.contains('\0')) else { return Ok(None) };
        if plan.rule == Expr::Never {
            return Ok(None);
        }
        let mut params = SqlParams::starting_at(1);
        let id = params.push(SqlValue::Text(id.clone()));
        let rule = render(&plan.rule, plan.app.id, "t", &mut params);
        let (columns, table) = (columns(shape, "t"), table(plan.app.id, collection));
        let sql = format!("SELECT {columns} FROM {table} AS t WHERE t.\"id\" = {id} AND {rule}");
        let client = self.client().await?;
        let rows = self.select(&client, &sql, &params).await?;
        rows.first().map(|row| record(row, 0, shape)).transpose()
    }

    async fn view_entered(
        &self,
        call: CallRecord,
        plan: &ViewPlan,
        shape: &RecordShape,
    ) -> StoreResult<Option<String>> {
        let collection = readable(&plan.app, &plan.entity)?;
        let mut params = SqlParams::starting_at(25);
        let rule = render(&plan.rule, plan.app.id, "t", &mut params);
        if let (Some(id), true) = (plan.ids.first().filter(|id| !id.contains('\0')), params.values().is_empty()) {
            // The same statement for everybody: whoever asks now can be answered by one.
            let sql = views::statement(&table(plan.app.id, collection), shape, &rule);
            return self.inner.views.one(sql, call, id, shape).await;
        }
        let found = self.view_text(plan, shape).await?;
        let refused = CallOutcome::Refused { code: Code::NotFound.as_str() };
        self.record(call, if found.is_some() { CallOutcome::Done } else { refused }).await?;
        Ok(found)
    }
}

/// Does an index leave few rows of the table? Then walking them once beats counting them and walking them again; over
/// a whole table it would keep every row's number in memory.
fn narrows(filter: &Expr, collection: &Collection) -> bool {
    match filter {
        Expr::All(parts) => parts.iter().any(|part| narrows(part, collection)),
        Expr::Compare(comparison) if comparison.op == Op::Eq => match (&comparison.left, &comparison.right) {
            (Operand::Field(field), Operand::Text(text)) | (Operand::Text(text), Operand::Field(field)) => {
                let whole = !field.lower && !field.length && !field.each && !text.is_empty();
                whole && collection.field(&field.name).is_some_and(is_single_relation)
            }
            _ => false,
        },
        _ => false,
    }
}

/// Those have an index from us.
fn is_single_relation(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Relation { .. }) && !field.is_multiple()
}

/// The select list of a shape's columns.
fn columns(shape: &RecordShape, alias: &str) -> String {
    let columns: Vec<String> = column_names(shape).map(|name| format!("{alias}.{}", ident(name))).collect();
    columns.join(", ")
}

/// The fields a shape reads, in its order.
pub(super) fn column_names(shape: &RecordShape) -> impl Iterator<Item = &str> {
    shape.members.iter().filter_map(|member| match &member.value {
        MemberValue::Column { name, .. } => Some(name.as_str()),
        MemberValue::Constant(_) => None,
    })
}

fn array(rows: &[Row], shape: &RecordShape) -> StoreResult<String> {
    let mut out = Vec::with_capacity(rows.len() * 512 + 2);
    out.push(b'[');
    for (place, row) in rows.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write_row(row, 0, shape, &mut out)?;
    }
    out.push(b']');
    text(out)
}

/// One row's JSON; its columns begin at `first`.
pub(super) fn record(row: &Row, first: usize, shape: &RecordShape) -> StoreResult<String> {
    let mut out = Vec::with_capacity(512);
    write_row(row, first, shape, &mut out)?;
    text(out)
}

fn text(bytes: Vec<u8>) -> StoreResult<String> {
    String::from_utf8(bytes).map_err(|error| unwritable(&error))
}

fn write_row(row: &Row, first: usize, shape: &RecordShape, out: &mut Vec<u8>) -> StoreResult<()> {
    let mut place = first;
    for (nth, member) in shape.members.iter().enumerate() {
        out.push(if nth == 0 { b'{' } else { b',' });
        out.extend_from_slice(member.key.as_bytes());
        match &member.value {
            MemberValue::Constant(json) => out.extend_from_slice(json.as_bytes()),
            MemberValue::Column { storage, .. } => {
                write_column(row, place, *storage, out)?;
                place += 1;
            }
        }
    }
    out.push(b'}');
    Ok(())
}

fn write_column(row: &Row, place: usize, storage: Storage, out: &mut Vec<u8>) -> StoreResult<()> {
    let failed = || broken("read records");
    match storage {
        Storage::Text => write_json(row.try_get::<_, &str>(place).map_err(failed())?, out),
        Storage::Number => write_json(&number_value(row.try_get(place).map_err(failed())?), out),
        Storage::Bool => {
            let flag: bool = row.try_get(place).map_err(failed())?;
            out.extend_from_slice(if flag { b"true" } else { b"false" });
            Ok(())
        }
        Storage::List => write_json(&row.try_get::<_, Vec<&str>>(place).map_err(failed())?, out),
        Storage::Json | Storage::Geo => {
            let json: Option<JsonText<'_>> = row.try_get(place).map_err(failed())?;
            out.extend_from_slice(json.map_or("null", |json| json.0).as_bytes());
            Ok(())
        }
    }
}

fn write_json(value: &(impl Serialize + ?Sized), out: &mut Vec<u8>) -> StoreResult<()> {
    serde_json::to_writer(out, value).map_err(|error| unwritable(&error))
}

fn unwritable(error: &dyn std::error::Error) -> StoreError {
    tracing::error!(%error, "a stored row cannot be written as JSON");
    StoreError::Broken
}

/// A `json` column as it is kept.
struct JsonText<'a>(&'a str);

impl<'a> FromSql<'a> for JsonText<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(std::str::from_utf8(raw)?))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::JSON
    }
}
