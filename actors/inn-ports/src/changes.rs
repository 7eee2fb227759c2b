//! What happened to records, as it was committed: what realtime is fed from.

use async_trait::async_trait;
use inn_protocol::AppId;
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::LiveCheck;
use inn_protocol::model::Collection;
use inn_rules::filter::Expr;
use inn_rules::realtime::{Action, Snapshot};
use serde_json::{Map, Value};

use crate::error::StoreResult;

/// One committed change of one record.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Of two changes of one record the later has the higher number.
    pub number: i64,
    /// The transaction it was made in.
    pub transaction: u64,
    pub app: AppId,
    pub action: Action,
    /// Name of the collection, then.
    pub collection: String,
    pub record: String,
    /// After the change, or, of a deleted record, before: every column but passwords and token keys.
    pub row: Map<String, Value>,
}

/// Changes that were not seen before, in order of their numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChanges {
    /// What has been looked at.
    pub upto: Snapshot,
    pub changes: Vec<Change>,
    /// There are more of the same snapshot.
    pub more: bool,
}

/// Which parts of a [`LiveCheck`] hold now. What a check does not ask for holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Live {
    pub grant: bool,
    pub member: bool,
    pub session: bool,
    pub app_user: bool,
}

impl Live {
    pub const ALL: Self = Self { grant: true, member: true, session: true, app_user: true };

    pub const fn all(self) -> bool {
        self.grant && self.member && self.session && self.app_user
    }
}

/// How an app and those who listen to it stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// `None`: the app was removed.
    pub app_epoch: Option<i64>,
    /// One for each check, in their order.
    pub live: Vec<Live>,
}

#[async_trait]
pub trait Changes: Send + Sync {
    /// What is committed by now.
    async fn snapshot(&self) -> StoreResult<Snapshot>;

    /// Changes in `upto` (in what is committed now, without it) that are not in `seen` and have a number above `after`;
    /// of one app, or of all. Changes are kept for an hour.
    async fn changes(
        &self,
        seen: &Snapshot,
        upto: Option<&Snapshot>,
        after: i64,
        app: Option<AppId>,
    ) -> StoreResult<NewChanges>;

    /// Does what callers were let in for still hold?
    async fn standing(&self, app: AppId, checks: &[&LiveCheck]) -> StoreResult<Standing>;

    /// Which of the conditions hold for the record of a change, as the change tells it. Other records are as they are
    /// now, and those that were deleted in the same transaction as they were before (ADR 0016). `Stale` when the tables
    /// are not those of this release any more.
    async fn holds(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        change: &Change,
        conditions: &[Expr],
    ) -> StoreResult<Vec<bool>>;
}
