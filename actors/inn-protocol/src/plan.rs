//! Plans: what one call will write, decided before the database is touched.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::app::AppSnapshot;
use crate::receipt::{Receipt, SentenceShape, Verb};
use crate::register::CallRecord;

/// The record write of one call, with everything that must commit together with it.
///
/// `R` is the compiled rule (`inn_rules::filter::Expr`): this crate knows that there is one, not what it says.
#[derive(Debug, Clone)]
pub struct Plan<R> {
    pub record: CallRecord,
    pub app: Arc<AppSnapshot>,
    pub write: Write<R>,
}

#[derive(Debug, Clone)]
pub struct Write<R> {
    pub verb: Verb,
    /// Collection name as the model spells it.
    pub entity: String,
    /// The record: chosen by us or the caller on create, given on update and delete.
    pub id: String,
    /// Normalised values by field name: everything on create (without `id` and autodates), the sent fields on update.
    pub values: Map<String, Value>,
    /// Number fields to add to, in the database and so atomically (`f+`, `f-` of PocketBase; updates only).
    pub increments: Map<String, Value>,
    /// Fields whose non-blank value must be found in the stored row, or nothing is kept (`not_stored`).
    pub read_back: Vec<String>,
    /// Must hold for the stored row before an update or delete; `None` lets every row through.
    pub rule: Option<R>,
    /// Second condition on the row (the fixed filter of a `crud` operation).
    pub fixed: Option<R>,
    pub sentence: SentenceShape,
}

/// What the commit answered.
#[derive(Debug, Clone)]
pub struct Committed {
    pub verb: Verb,
    pub receipt: Receipt,
    /// The stored row with every column by field name; on delete the row as it was.
    pub row: Map<String, Value>,
    /// An earlier call of the same request and key did it: nothing was written now, the row is as it stands.
    pub earlier: bool,
}
