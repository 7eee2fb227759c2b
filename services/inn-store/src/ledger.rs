//! The commit path's trait and the register's writer for calls that change nothing (group commit).

pub(crate) mod entries;
mod writer;

use async_trait::async_trait;
use inn_ports::{Batch, BatchDone, BatchFailed, Ledger, Plan, StoreResult};
use inn_protocol::plan::Committed;
use inn_protocol::register::{CallOutcome, CallRecord};

use crate::PgStore;

pub(crate) use writer::{Sender, start};

#[async_trait]
impl Ledger for PgStore {
    async fn commit(&self, plan: &Plan) -> StoreResult<Committed> {
        crate::commit::commit(self, plan).await
    }

    async fn commit_all(&self, batch: &Batch) -> Result<BatchDone, BatchFailed> {
        crate::commit::commit_all(self, batch).await
    }

    async fn record(&self, call: CallRecord, outcome: CallOutcome) -> StoreResult<()> {
        self.inner.ledger.record(call, outcome).await
    }
}

#[cfg(test)]
mod tests;
