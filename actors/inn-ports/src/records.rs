//! Reading records.

use std::sync::Arc;

use async_trait::async_trait;
use inn_protocol::app::AppSnapshot;
use inn_protocol::query::Paging;
use inn_protocol::register::CallRecord;
use inn_rules::filter::Expr;
use inn_rules::query::SortKey;
use inn_rules::values::RecordShape;
use serde_json::{Map, Value};

use crate::error::StoreResult;

#[derive(Debug, Clone)]
pub struct ListPlan {
    pub app: Arc<AppSnapshot>,
    pub entity: String,
    /// Rule ∧ filter.
    pub filter: Expr,
    pub sort: Vec<SortKey>,
    pub paging: Paging,
}

#[derive(Debug, Clone)]
pub struct ViewPlan {
    pub app: Arc<AppSnapshot>,
    pub entity: String,
    /// At most 1000 ids; the answer keeps their order and leaves out what is missing or does not match.
    pub ids: Vec<String>,
    pub rule: Expr,
}

/// Which records refer to these: the back relations of an `expand`.
#[derive(Debug, Clone)]
pub struct ReferrersPlan {
    pub app: Arc<AppSnapshot>,
    /// The collection that refers, and its relation field.
    pub entity: String,
    pub field: String,
    /// Records referred to.
    pub ids: Vec<String>,
    /// Most referring records for each of them; the oldest ones count.
    pub most: u32,
    /// Most pairs altogether. More is refused (`too_large`).
    pub most_pairs: u32,
}

/// One reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referrer {
    /// One of the plan's ids.
    pub of: String,
    pub id: String,
}

/// Rows by field name, every column (hidden ones too: the edge renders).
#[derive(Debug, Clone)]
pub struct Page {
    pub rows: Vec<Map<String, Value>>,
    /// `None` when the count was skipped.
    pub total: Option<u64>,
}

#[async_trait]
pub trait Records: Send + Sync {
    async fn list(&self, plan: &ListPlan) -> StoreResult<Page>;
    async fn view(&self, plan: &ViewPlan) -> StoreResult<Vec<Map<String, Value>>>;

    /// Ids only, in the order of their insertion: who may see those records is for [`Self::view`] to say.
    async fn referrers(&self, plan: &ReferrersPlan) -> StoreResult<Vec<Referrer>>;
}

/// The same reads, answered as the JSON text the caller gets: for rows that need nothing but being written out.
#[async_trait]
pub trait RecordTexts: Send + Sync {
    async fn list_text(&self, plan: &ListPlan, shape: &RecordShape) -> StoreResult<PageText>;

    /// One record (the first id of the plan). `None`: missing, or the rule does not let it through.
    async fn view_text(&self, plan: &ViewPlan, shape: &RecordShape) -> StoreResult<Option<String>>;

    /// [`Self::view_text`] together with the entry of its call: `done`, or refused as `not_found`. `Stale` when what the
    /// call was decided from has moved on; there is no entry then.
    async fn view_entered(&self, call: CallRecord, plan: &ViewPlan, shape: &RecordShape)
    -> StoreResult<Option<String>>;
}

/// A page of records as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageText {
    /// A JSON array of the rendered records.
    pub items: String,
    /// `None` when the count was skipped.
    pub total: Option<u64>,
}
