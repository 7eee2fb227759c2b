//! Several record writes of one call that stand or fall together.

use std::sync::Arc;

use inn_protocol::Refusal;
use inn_protocol::app::AppSnapshot;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_rules::filter::Expr;
use serde_json::{Map, Value};

use crate::{Plan, StoreError};

/// The call that brought the writes, and the writes in their order. Each sees what those before it did.
pub struct Batch {
    /// Guards, entry and receipt of the whole.
    pub record: CallRecord,
    pub app: Arc<AppSnapshot>,
    pub steps: Vec<Arc<dyn BatchStep>>,
}

/// One of the writes, planned inside the transaction because what it becomes may depend on those before it.
pub trait BatchStep: Send + Sync {
    /// The record it changes or deletes, entity and id. Those of a whole batch are locked in one order before the first
    /// write, so that batches that cross each other wait for each other instead of failing.
    fn target(&self) -> Option<(String, String)>;

    /// What has to be read before it can be planned.
    fn look(&self) -> Option<BatchLook>;

    /// The plan, whose record is a call of its own: it has its own entry and receipt, and no nonce and no key.
    fn plan(&self, seen: Option<Seen>) -> Result<Plan, Refusal>;
}

/// A record that is looked at.
#[derive(Debug, Clone)]
pub struct BatchLook {
    pub entity: String,
    pub id: String,
    /// Must hold for the row to be shown to the plan.
    pub rule: Expr,
}

/// There is such a record, and its row when the rule lets it be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen(pub Option<Map<String, Value>>);

/// All were committed, each with its receipt, and the whole has one, too.
#[derive(Debug)]
pub struct BatchDone {
    pub writes: Vec<Committed>,
    pub receipt: Receipt,
}

/// Nothing was committed.
#[derive(Debug)]
pub struct BatchFailed {
    /// The write that could not be done; `None` when it was the whole.
    pub step: Option<usize>,
    pub error: StoreError,
}

impl From<StoreError> for BatchFailed {
    fn from(error: StoreError) -> Self {
        Self { step: None, error }
    }
}

/// The sentence of the receipt of the whole.
pub fn batch_sentence(writes: usize) -> String {
    match writes {
        1 => "Carried out 1 write.".to_owned(),
        _ => format!("Carried out {writes} writes together."),
    }
}

/// What the receipt of the whole holds: the receipts of its writes.
pub fn batch_stored(writes: &[Committed]) -> Map<String, Value> {
    let listed = writes.iter().map(|write| {
        serde_json::json!({
            "receipt": write.receipt.id,
            "entity": write.receipt.entity,
            "record": write.receipt.record,
            "verb": write.verb.as_str(),
        })
    });
    std::iter::once(("writes".to_owned(), Value::Array(listed.collect()))).collect()
}
