//! Group commit: entries of reads and refusals wait for the insert that is running, then go together in one
//! statement. Nobody is delayed for the sake of a bigger batch.

use std::sync::LazyLock;

use deadpool_postgres::Pool;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::register::{CallOutcome, CallRecord};
use tokio::sync::{mpsc, oneshot};

use super::entries::{Columns, HEAD, verdict};
use crate::error::{broken, no_connection};

/// Entries that may wait; more are told that the register is busy, and the call is not answered.
const WAITING: usize = 4096;
/// Entries of one statement.
const BATCH: usize = 500;

static INSERT: LazyLock<String> = LazyLock::new(|| {
    format!("{HEAD}, {} SELECT live, fresh FROM passed ORDER BY ord", super::entries::insert("outcome", "passed"))
});

struct Waiting {
    call: CallRecord,
    outcome: CallOutcome,
    answer: oneshot::Sender<StoreResult<()>>,
}

/// The way into the writer. The writer ends when the last one is dropped and everything taken is written.
#[derive(Clone)]
pub(crate) struct Sender(mpsc::Sender<Waiting>);

impl Sender {
    pub(crate) async fn record(&self, call: CallRecord, outcome: CallOutcome) -> StoreResult<()> {
        let (answer, told) = oneshot::channel();
        self.0.try_send(Waiting { call, outcome, answer }).map_err(|error| {
            tracing::error!(%error, "the register's writer takes no more entries");
            StoreError::Unavailable
        })?;
        told.await.unwrap_or(Err(StoreError::Unavailable))
    }
}

/// Starts the writer on the I/O runtime.
pub(crate) fn start(io: &tokio::runtime::Handle, pool: Pool) -> Sender {
    let (sender, mut receiver) = mpsc::channel(WAITING);
    io.spawn(async move {
        let mut batch = Vec::with_capacity(BATCH);
        while receiver.recv_many(&mut batch, BATCH).await > 0 {
            let (pool, batch) = (pool.clone(), std::mem::take(&mut batch));
            // In a task of its own: should one batch panic, those who wait for it are told, and the writer lives on.
            if let Err(error) = tokio::spawn(async move { write(&pool, batch).await }).await {
                tracing::error!(%error, "a batch of register entries was not written");
            }
        }
    });
    Sender(sender)
}

async fn write(pool: &Pool, batch: Vec<Waiting>) {
    let whole: Vec<&Waiting> = batch.iter().collect();
    match insert(pool, &whole).await {
        Ok(results) => answer(batch, results),
        // One entry that the database cannot take must not cost the others theirs.
        Err(StoreError::Broken) if batch.len() > 1 => {
            for waiting in batch {
                let result = insert(pool, &[&waiting]).await;
                let result = result.and_then(|results| results.into_iter().next().unwrap_or(Err(StoreError::Broken)));
                answer(vec![waiting], vec![result]);
            }
        }
        Err(error) => {
            let results = batch.iter().map(|_| Err(error.clone())).collect();
            answer(batch, results);
        }
    }
}

fn answer(batch: Vec<Waiting>, results: Vec<StoreResult<()>>) {
    for (waiting, result) in batch.into_iter().zip(results) {
        // Whoever asked may have gone; the entry stands all the same.
        let _ = waiting.answer.send(result);
    }
}

/// One statement for all of them; each is told its own result. Entries of tenants whose nonces clash inside the batch
/// count in the order they came.
async fn insert(pool: &Pool, batch: &[&Waiting]) -> StoreResult<Vec<StoreResult<()>>> {
    let client = pool.get().await.map_err(|error| no_connection(&error))?;
    let mut columns = Columns::default();
    for waiting in batch {
        columns.push(&waiting.call, &waiting.outcome);
    }
    let statement = client.prepare_cached(&INSERT).await.map_err(broken("register writer"))?;
    // A connection lost here leaves the entry's fate open, but nothing else has happened: "unavailable" is the truth
    // for the caller, whose read is then not answered.
    let rows = client.query(&statement, &columns.parameters()).await.map_err(broken("register writer"))?;
    Ok(rows.iter().map(verdict).collect())
}
