//! Single records with the entries of their calls: one statement reads and registers.
//!
//! Calls that arrive while a statement is under way go together in the next one. Nobody is delayed for the sake of a
//! bigger batch, and every record is read after it was asked for, at the moment its call was found to be still allowed.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::Pool;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::Code;
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_rules::values::RecordShape;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::read_failed;
use super::text::{column_names, record};
use crate::columns::ident;
use crate::error::no_connection;
use crate::ledger::entries::{self, Columns, HEAD, verdict};

/// Calls of one statement.
const BATCH: usize = 200;
/// Looks that may wait under one statement text; more are told that the database is busy.
const WAITING: usize = 4096;

/// The batches under way. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Views {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    io: tokio::runtime::Handle,
    /// By statement text, while a flight is under way; the text stands for app, entity, rule and shape.
    queues: Mutex<HashMap<String, Vec<Waiting>>>,
}

struct Waiting {
    call: CallRecord,
    id: String,
    answer: oneshot::Sender<StoreResult<Option<String>>>,
}

impl Views {
    pub(crate) fn new(pool: Pool, io: tokio::runtime::Handle) -> Self {
        Self { inner: Arc::new(Inner { pool, io, queues: Mutex::default() }) }
    }

    /// The record of that id as text, after the entry of its call: `done`, or refused as `not_found` when there is no
    /// such record or the rule does not let it through. `sql` is [`statement`]'s.
    pub(super) async fn one(
        &self,
        sql: String,
        call: CallRecord,
        id: &str,
        shape: &RecordShape,
    ) -> StoreResult<Option<String>> {
        let (answer, told) = oneshot::channel();
        let waiting = Waiting { call, id: id.to_owned(), answer };
        self.join(sql, waiting, shape)?;
        told.await.unwrap_or(Err(StoreError::Unavailable))
    }

    /// Waits with the others, or starts a flight when there is none.
    fn join(&self, sql: String, waiting: Waiting, shape: &RecordShape) -> StoreResult<()> {
        let mut queues = self.inner.queues.lock();
        match queues.get_mut(&sql) {
            Some(queue) if queue.len() >= WAITING => Err(StoreError::Unavailable),
            Some(queue) => {
                queue.push(waiting);
                Ok(())
            }
            None => {
                queues.insert(sql.clone(), Vec::new());
                let (inner, shape) = (Arc::clone(&self.inner), shape.clone());
                self.inner.io.spawn(async move { inner.fly(sql, vec![waiting], &shape).await });
                Ok(())
            }
        }
    }
}

impl Inner {
    /// Reads batch after batch until nobody waits any more.
    async fn fly(&self, sql: String, first: Vec<Waiting>, shape: &RecordShape) {
        let _end = End { inner: self, sql: &sql };
        let mut batch = first;
        loop {
            self.read(&sql, batch, shape).await;
            match self.next(&sql) {
                Some(next) => batch = next,
                None => return,
            }
        }
    }

    /// Who waits now. `None` ends the flight, and the next look starts a new one.
    fn next(&self, sql: &str) -> Option<Vec<Waiting>> {
        let mut queues = self.queues.lock();
        let queue = queues.get_mut(sql)?;
        if queue.is_empty() {
            queues.remove(sql);
            return None;
        }
        let rest = queue.split_off(queue.len().min(BATCH));
        Some(std::mem::replace(queue, rest))
    }

    async fn read(&self, sql: &str, batch: Vec<Waiting>, shape: &RecordShape) {
        match self.rows(sql, &batch, shape).await {
            Ok(results) => {
                for (waiting, result) in batch.into_iter().zip(results) {
                    // Whoever asked may have gone; the entry stands all the same.
                    waiting.answer.send(result).ok();
                }
            }
            // One entry that the database cannot take must not cost the others theirs.
            Err(StoreError::Broken) if batch.len() > 1 => {
                for waiting in batch {
                    let one = std::slice::from_ref(&waiting);
                    let result = self.rows(sql, one, shape).await;
                    let result =
                        result.and_then(|results| results.into_iter().next().unwrap_or(Err(StoreError::Broken)));
                    waiting.answer.send(result).ok();
                }
            }
            Err(error) => {
                for waiting in batch {
                    waiting.answer.send(Err(error.clone())).ok();
                }
            }
        }
    }

    async fn rows(
        &self,
        sql: &str,
        batch: &[Waiting],
        shape: &RecordShape,
    ) -> StoreResult<Vec<StoreResult<Option<String>>>> {
        let client = self.pool.get().await.map_err(|error| no_connection(&error))?;
        let statement = client.prepare_cached(sql).await.map_err(read_failed)?;
        let mut columns = Columns::default();
        for waiting in batch {
            columns.push(&waiting.call, &CallOutcome::Done);
        }
        let ids: Vec<&str> = batch.iter().map(|waiting| waiting.id.as_str()).collect();
        let entry = columns.parameters();
        let parameters: Vec<_> = entry.into_iter().chain([&ids as &(dyn ToSql + Sync)]).collect();
        // A connection lost here leaves the entry's fate open, but nothing else has happened.
        let rows = client.query(&statement, &parameters).await.map_err(read_failed)?;
        let one = |row: &Row| {
            verdict(row)?;
            let found: bool = row.try_get(2).map_err(read_failed)?;
            found.then(|| record(row, FIRST, shape)).transpose()
        };
        Ok(rows.iter().map(one).collect())
    }
}

/// Where the record's columns begin, after `live`, `fresh` and `found`.
const FIRST: usize = 3;

/// The statement that reads one record a call and keeps the calls' entries. `rule` is a condition on `t` without
/// parameters.
pub(super) fn statement(table: &str, shape: &RecordShape, rule: &str) -> String {
    let names: Vec<String> = (0..column_names(shape).count()).map(|place| format!("_c{place}")).collect();
    // Renamed, since a field may be called as a column of the batch is.
    let columns: Vec<String> =
        column_names(shape).zip(&names).map(|(column, name)| format!("t.{} AS {name}", ident(column))).collect();
    let (columns, names) = (columns.join(", "), names.join(", "));
    let refused = CallOutcome::Refused { code: Code::NotFound.as_str() }.text();
    let entries = entries::insert(&format!("CASE WHEN found THEN 'done' ELSE '{refused}' END"), "seen");
    // LIMIT keeps it a look by index for each call, whatever the planner thinks of the batch.
    format!(
        "{HEAD},
seen AS MATERIALIZED (
    SELECT p.*, r.found IS NOT NULL AS found, {names} FROM passed p
    JOIN unnest($24::text[]) WITH ORDINALITY AS w (wanted, place) ON w.place = p.ord
    LEFT JOIN LATERAL (SELECT true AS found, {columns} FROM {table} AS t WHERE t.\"id\" = w.wanted AND {rule} LIMIT 1) AS r
        ON p.live AND p.fresh
),
{entries}
SELECT live, fresh, found, {names} FROM seen ORDER BY ord"
    )
}

/// Takes the queue away when a flight ends early (a panic), so that the next look starts a new one.
struct End<'a> {
    inner: &'a Inner,
    sql: &'a str,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.inner.queues.lock().remove(self.sql);
        }
    }
}
