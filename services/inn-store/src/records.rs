//! Reading records: lists and single records, each already narrowed by the rule.

mod referrers;
mod shapes;
mod text;
mod views;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use async_trait::async_trait;
use deadpool_postgres::Object;
use futures_util::future::try_join;
use inn_ports::{ListPlan, Page, Records, Referrer, ReferrersPlan, StoreError, StoreResult, ViewPlan};
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::{Code, Refusal};
use inn_rules::filter::Expr;
use serde_json::{Map, Value};
use tokio_postgres::Row;

use crate::PgStore;
use crate::columns::{SqlValue, row_json, table};
use crate::error::broken;
use crate::filter_sql::{SqlParams, order_by, render, window};

pub(crate) use shapes::Shapes;
pub(crate) use views::Views;

/// Most ids one view may ask for.
const MAX_IDS: usize = 1000;

#[async_trait]
impl Records for PgStore {
    async fn list(&self, plan: &ListPlan) -> StoreResult<Page> {
        let collection = readable(&plan.app, &plan.entity)?;
        if plan.filter == Expr::Never {
            return Ok(Page { rows: Vec::new(), total: (!plan.paging.skip_total).then_some(0) });
        }
        let table = table(plan.app.id, collection);
        let mut params = SqlParams::starting_at(1);
        let filter = render(&plan.filter, plan.app.id, "t", &mut params);
        let count = (!plan.paging.skip_total)
            .then(|| (format!("SELECT count(*) FROM {table} AS t WHERE {filter}"), params.clone()));
        let order = order_by(&plan.sort, plan.app.id, "t", &mut params);
        // The page first, the JSON then: in one SELECT PostgreSQL makes the JSON of every matching row before it sorts.
        // What scans a LIMIT keeps its order.
        let rows = format!(
            "SELECT {} FROM (SELECT t.* FROM {table} AS t WHERE {filter} ORDER BY {order} {}) AS t",
            row_json(collection, "t"),
            window(plan.paging)
        );
        let client = self.client().await?;
        // Sent together on one connection: one round trip.
        let (rows, total) = try_join(self.select(&client, &rows, &params), async {
            match &count {
                Some((sql, params)) => counted(&self.select(&client, sql, params).await?).map(Some),
                None => Ok(None),
            }
        })
        .await?;
        Ok(Page { rows: rows.iter().map(record).collect::<StoreResult<_>>()?, total })
    }

    async fn view(&self, plan: &ViewPlan) -> StoreResult<Vec<Map<String, Value>>> {
        let collection = readable(&plan.app, &plan.entity)?;
        if plan.ids.len() > MAX_IDS {
            let message = format!("At most {MAX_IDS} records can be read at once; {} were asked for.", plan.ids.len());
            return Err(Refusal::new(Code::InvalidParameter, message).into());
        }
        // PostgreSQL has no text with U+0000, so no record has such an id.
        let ids: Vec<String> = plan.ids.iter().filter(|id| !id.contains('\0')).cloned().collect();
        if ids.is_empty() || plan.rule == Expr::Never {
            return Ok(Vec::new());
        }
        let mut params = SqlParams::starting_at(1);
        let wanted = match ids.as_slice() {
            [id] => format!("= {}", params.push(SqlValue::Text(id.clone()))),
            _ => format!("= ANY({})", params.push(SqlValue::List(ids.clone()))),
        };
        let rule = render(&plan.rule, plan.app.id, "t", &mut params);
        let rows = format!(
            "SELECT {} FROM {} AS t WHERE t.\"id\" {wanted} AND {rule}",
            row_json(collection, "t"),
            table(plan.app.id, collection)
        );
        let client = self.client().await?;
        let rows = self.select(&client, &rows, &params).await?;
        let mut rows: Vec<Map<String, Value>> = rows.iter().map(record).collect::<StoreResult<_>>()?;
        if ids.len() > 1 {
            let found: HashMap<String, Map<String, Value>> =
                rows.into_iter().filter_map(|row| Some((row.get("id")?.as_str()?.to_owned(), row))).collect();
            rows = ids.iter().filter_map(|id| found.get(id).cloned()).collect();
        }
        Ok(rows)
    }

    async fn referrers(&self, plan: &ReferrersPlan) -> StoreResult<Vec<Referrer>> {
        referrers::referrers(self, plan).await
    }
}

impl PgStore {
    /// Prepared when the text comes again and again, else told in one trip with its types: filter texts are unbounded,
    /// prepared statements must not be.
    async fn select(&self, client: &Object, sql: &str, params: &SqlParams) -> StoreResult<Vec<Row>> {
        let outcome = if self.inner.shapes.is_hot(sql) {
            match client.prepare_cached(sql).await {
                Ok(statement) => client.query(&statement, &params.refs()).await,
                Err(error) => Err(error),
            }
        } else {
            client.query_typed(sql, &params.typed()).await
        };
        outcome.map_err(read_failed)
    }
}

/// A table or column that is not there: the snapshot is older than the schema.
fn read_failed(error: tokio_postgres::Error) -> StoreError {
    match error.code().map(tokio_postgres::error::SqlState::code) {
        Some("42P01" | "42703" | "3F000") => StoreError::Stale,
        _ => broken("read records")(error),
    }
}

fn readable<'a>(app: &'a AppSnapshot, entity: &str) -> StoreResult<&'a Collection> {
    let unknown =
        || Refusal::new(Code::UnknownEntity, format!("`{entity}` is not an entity of this app; see describe."));
    let collection = app.definition.model.collection(entity).ok_or_else(unknown)?;
    Ok(collection)
}

fn record(row: &Row) -> StoreResult<Map<String, Value>> {
    let text: &str = row.try_get(0).map_err(broken("read records"))?;
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "a stored row is not JSON");
        StoreError::Broken
    })
}

fn counted(rows: &[Row]) -> StoreResult<u64> {
    let count: i64 = rows.first().ok_or(StoreError::Broken)?.try_get(0).map_err(broken("count records"))?;
    u64::try_from(count).map_err(|_| StoreError::Broken)
}
