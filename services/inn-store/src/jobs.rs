//! Jobs: open ones in `inn.jobs`, ended ones in `inn.jobs_history`. Of kind `agent`, a trigger keeps the row where its
//! request is; everything else is decided by `inn_rules::jobs` from a locked row and written with a guard on state and epoch.

mod apply;
mod cancel;
mod list;
mod rows;
mod run;
mod start;
mod sweep;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use inn_ports::{Jobs, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::job::{Job, JobLine, JobState, NewUpstreamJob, Report, RunOutcome, StartedJob};
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, JobId, UserId};

use crate::PgStore;

#[async_trait]
impl Jobs for PgStore {
    async fn job(&self, app: AppId, job: JobId) -> StoreResult<Option<Job>> {
        list::find(self, app, job).await
    }

    async fn jobs(
        &self,
        app: AppId,
        state: Option<JobState>,
        requester: Option<UserId>,
        limit: u32,
    ) -> StoreResult<Vec<Job>> {
        list::list(self, app, state, requester, limit).await
    }

    async fn job_lines(&self, app: AppId, job: JobId, after: i64, limit: u32) -> StoreResult<Vec<JobLine>> {
        list::lines(self, app, job, after, limit).await
    }

    async fn cancel_job(&self, call: &CallRecord, app: AppId, job: JobId, reason: &str) -> StoreResult<Job> {
        cancel::cancel(self, call, app, job, reason).await
    }

    async fn start_job(&self, call: &CallRecord, app: &AppSnapshot, job: &NewUpstreamJob) -> StoreResult<Job> {
        start::start(self, call, app, job).await
    }

    async fn take_jobs(&self, node: &str, max: u32) -> StoreResult<Vec<StartedJob>> {
        run::take(self, node, max).await
    }

    async fn renew_job(&self, node: &str, job: JobId, epoch: i64) -> StoreResult<bool> {
        run::renew(self, node, job, epoch).await
    }

    async fn settle_job(&self, node: &str, job: JobId, epoch: i64, outcome: &RunOutcome) -> StoreResult<Job> {
        run::settle(self, node, job, epoch, outcome).await
    }

    async fn report_job(
        &self,
        call: &CallRecord,
        app: AppId,
        job: JobId,
        token: &Digest,
        report: &Report,
    ) -> StoreResult<Job> {
        run::report(self, call, app, job, token, report).await
    }

    async fn sweep_jobs(&self) -> StoreResult<Vec<AppId>> {
        sweep::sweep(self).await
    }

    async fn stuck_jobs(&self) -> StoreResult<i64> {
        sweep::stuck(self).await
    }
}
