//! Looks at single records that arrive while another look is under way go together: one statement for all of them.
//!
//! Nobody is delayed for the sake of a bigger batch, and every record is read after it was asked for.

use std::collections::HashMap;
use std::sync::Arc;

use deadpool_postgres::Pool;
use inn_ports::{StoreError, StoreResult};
use inn_rules::values::RecordShape;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_postgres::types::Type;

use super::read_failed;
use super::text::record;
use crate::error::no_connection;

/// Ids of one statement.
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
    id: String,
    answer: oneshot::Sender<StoreResult<Option<String>>>,
}

impl Views {
    pub(crate) fn new(pool: Pool, io: tokio::runtime::Handle) -> Self {
        Self { inner: Arc::new(Inner { pool, io, queues: Mutex::default() }) }
    }

    /// The record of that id as text. `sql` selects the shape's columns by `id = ANY ($1::text[])`, the id last.
    pub(super) async fn one(&self, sql: String, id: &str, shape: &RecordShape) -> StoreResult<Option<String>> {
        let (answer, told) = oneshot::channel();
        let waiting = Waiting { id: id.to_owned(), answer };
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
            Ok(found) => {
                for waiting in batch {
                    let text = found.get(&waiting.id).cloned();
                    // Whoever asked may have gone.
                    waiting.answer.send(Ok(text)).ok();
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
    ) -> StoreResult<HashMap<String, String>> {
        let client = self.pool.get().await.map_err(|error| no_connection(&error))?;
        let statement = client.prepare_typed_cached(sql, &[Type::TEXT_ARRAY]).await.map_err(read_failed)?;
        let ids: Vec<&str> = batch.iter().map(|waiting| waiting.id.as_str()).collect();
        let rows = client.query(&statement, &[&ids]).await.map_err(read_failed)?;
        let place = statement.columns().len().saturating_sub(1);
        rows.iter().map(|row| Ok((row.try_get(place).map_err(read_failed)?, record(row, shape)?))).collect()
    }
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
