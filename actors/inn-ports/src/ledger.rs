//! The single commit path.

use async_trait::async_trait;
use inn_protocol::plan::Committed;
use inn_protocol::register::{CallOutcome, CallRecord};

use crate::error::StoreResult;
use crate::{Batch, BatchDone, BatchFailed, Plan};

#[async_trait]
pub trait Ledger: Send + Sync {
    /// One transaction and one round trip: nonce, idempotency key, live check, record, entry, outbox, receipt.
    async fn commit(&self, plan: &Plan) -> StoreResult<Committed>;

    /// Several record writes in one transaction, planned one after the other inside it.
    async fn commit_all(&self, batch: &Batch) -> Result<BatchDone, BatchFailed>;

    /// Writes the entry of a call that changes nothing (a read or a refusal), together with its nonce and live check.
    /// Group commit: durable when it returns. [`crate::StoreError::Stale`] and a replayed nonce are reported, and the answer of a read
    /// must then not be given.
    async fn record(&self, call: CallRecord, outcome: CallOutcome) -> StoreResult<()>;
}
