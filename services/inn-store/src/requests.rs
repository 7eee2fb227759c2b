//! The queue: what apps ask of agents. Every transition is decided by `inn_rules::requests` from a locked row and written
//! with a guard on state and epoch; ended rows never change and move to the history.

mod apply;
mod archive;
mod ask;
mod cancel;
mod claim;
pub(crate) mod fencing;
mod hold;
mod list;
mod operate;
mod rows;
mod sweep;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use inn_ports::{AskReceipt, Requests, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::register::CallRecord;
use inn_protocol::request::{
    CancelFilter, ClaimOffer, HoldCommand, NewRequest, OperateCommand, QueueRequest, RequestState,
};
use inn_protocol::{AgentId, AppId, RequestId, UserId};

use crate::PgStore;
pub(crate) use rows::answers;

#[async_trait]
impl Requests for PgStore {
    async fn ask(&self, call: &CallRecord, app: &AppSnapshot, request: &NewRequest) -> StoreResult<AskReceipt> {
        ask::ask(self, call, app, request).await
    }

    async fn claim(
        &self,
        call: &CallRecord,
        agent: &AgentId,
        offers: &[ClaimOffer],
        max: u32,
    ) -> StoreResult<Vec<QueueRequest>> {
        claim::claim(self, call, agent, offers, max).await
    }

    async fn claimable(&self, offers: &[ClaimOffer]) -> StoreResult<bool> {
        claim::claimable(self, offers).await
    }

    async fn hold(
        &self,
        call: &CallRecord,
        request: RequestId,
        agent: &AgentId,
        epoch: i64,
        command: &HoldCommand,
    ) -> StoreResult<QueueRequest> {
        hold::hold(self, call, request, agent, epoch, command).await
    }

    async fn request(&self, app: AppId, request: RequestId) -> StoreResult<Option<QueueRequest>> {
        list::find(self, app, request).await
    }

    async fn held_request(&self, agent: &AgentId, request: RequestId) -> StoreResult<Option<QueueRequest>> {
        list::held(self, agent, request).await
    }

    async fn requests(
        &self,
        app: AppId,
        state: Option<RequestState>,
        requester: Option<UserId>,
        limit: u32,
    ) -> StoreResult<Vec<QueueRequest>> {
        list::list(self, app, state, requester, limit).await
    }

    async fn cancel(
        &self,
        call: &CallRecord,
        app: AppId,
        request: RequestId,
        reason: &str,
    ) -> StoreResult<QueueRequest> {
        cancel::cancel(self, call, app, request, reason).await
    }

    async fn operate(
        &self,
        call: &CallRecord,
        app: AppId,
        request: RequestId,
        command: &OperateCommand,
    ) -> StoreResult<QueueRequest> {
        operate::operate(self, call, app, request, command).await
    }

    async fn cancel_many(
        &self,
        call: &CallRecord,
        app: AppId,
        filter: &CancelFilter,
        reason: &str,
    ) -> StoreResult<(u64, bool)> {
        operate::cancel_many(self, call, app, filter, reason).await
    }

    async fn sweep_requests(&self) -> StoreResult<Vec<AppId>> {
        sweep::sweep(self).await
    }

    async fn stuck(&self) -> StoreResult<i64> {
        sweep::stuck(self).await
    }
}
