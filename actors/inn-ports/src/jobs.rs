//! Jobs: runs of long operations.

use async_trait::async_trait;
use inn_protocol::job::{Job, JobLine, JobState};
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, JobId, UserId};

use crate::error::StoreResult;

#[async_trait]
pub trait Jobs: Send + Sync {
    async fn job(&self, app: AppId, job: JobId) -> StoreResult<Option<Job>>;
    /// Newest first: everybody's, or what one person started.
    async fn jobs(
        &self,
        app: AppId,
        state: Option<JobState>,
        requester: Option<UserId>,
        limit: u32,
    ) -> StoreResult<Vec<Job>>;
    /// Up to `limit` lines of its log with numbers above `after`, oldest first.
    async fn job_lines(&self, app: AppId, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<JobLine>>;
    /// A job of an agent's ends with its request. Refused with `conflict` when it has ended, `not_found` when the app has
    /// none of that id.
    async fn cancel_job(&self, call: &CallRecord, app: AppId, job: JobId, reason: &str) -> StoreResult<Job>;
    /// Takes up again or ends what lost its lease or its time, and moves away what ended a while ago. Answers the apps
    /// whose jobs changed.
    async fn sweep_jobs(&self) -> StoreResult<Vec<AppId>>;
    /// Open jobs without owner, deadline or next step; must be 0.
    async fn stuck_jobs(&self) -> StoreResult<i64>;
}
