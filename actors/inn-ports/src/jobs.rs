//! Jobs: runs of long operations.

use async_trait::async_trait;
use inn_protocol::app::AppSnapshot;
use inn_protocol::job::{Job, JobLine, JobState, NewUpstreamJob, Report, RunOutcome, StartedJob};
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, JobId, UserId};

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
    /// Makes a job that a service of the app's carries out, due at once. Refused with `rate_limited` when the app has as
    /// many open ones as it may.
    async fn start_job(&self, call: &CallRecord, app: &AppSnapshot, job: &NewUpstreamJob) -> StoreResult<Job>;
    /// Up to `max` jobs that are due, of apps in turn, for this node alone until its leases end. They are renewed with
    /// [`Self::renew_job`] and end with [`Self::settle_job`].
    async fn take_jobs(&self, node: &str, max: u32) -> StoreResult<Vec<StartedJob>>;
    /// Keeps the lease; `true` when somebody has canceled. Refused with `claim_lost` when the node has lost the job.
    async fn renew_job(&self, node: &str, job: JobId, epoch: i64) -> StoreResult<bool>;
    /// What came of the node's work, once. Refused with `claim_lost` when the node has lost the job.
    async fn settle_job(&self, node: &str, job: JobId, epoch: i64, outcome: &RunOutcome) -> StoreResult<Job>;
    /// What its service says of it by itself. Refused with `job_not_found` when there is no job of that id in the app or
    /// the token is another one's, `conflict` when it has ended.
    async fn report_job(
        &self,
        call: &CallRecord,
        app: AppId,
        job: JobId,
        token: &Digest,
        report: &Report,
    ) -> StoreResult<Job>;
    /// Takes up again or ends what lost its lease or its time, and moves away what ended a while ago. Answers the apps
    /// whose jobs changed.
    async fn sweep_jobs(&self) -> StoreResult<Vec<AppId>>;
    /// Open jobs without owner, deadline or next step; must be 0.
    async fn stuck_jobs(&self) -> StoreResult<i64>;
}
