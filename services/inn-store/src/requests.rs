//! The queue: what apps ask of agents. Every transition is decided by `inn_rules::requests` from a locked row and written
//! with a guard on state and epoch; ended rows never change and move to the history.

mod apply;
mod archive;
mod ask;
mod cancel;
mod caps;
mod claim;
mod complete_many;
pub(crate) mod fencing;
mod hold;
mod limits;
mod list;
mod looks;
mod operate;
mod rows;
mod sweep;
#[cfg(test)]
mod tests;
mod why;

use async_trait::async_trait;
use inn_ports::{AskReceipt, Requests, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::queue::{NewLimit, QueueLimit};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::request::{
    CancelFilter, ClaimOffer, Completion, HoldCommand, NewRequest, OperateCommand, QueueRequest, RequestState,
};
use inn_protocol::{AgentId, AppId, Refusal, RequestId, TenantId, UserId};
use inn_rules::requests::Surroundings;
use inn_rules::requests::board::Turn;

use crate::PgStore;
pub(crate) use cancel::cancel_within;
pub(crate) use looks::Queue;
pub(crate) use rows::answers;

#[async_trait]
impl Requests for PgStore {
    async fn ask(&self, call: &CallRecord, app: &AppSnapshot, request: &NewRequest) -> StoreResult<AskReceipt> {
        ask::ask(self, call, app, request).await
    }

    async fn reserve(
        &self,
        agent: &AgentId,
        offers: &[ClaimOffer],
        max: u32,
        thorough: bool,
    ) -> StoreResult<Option<Turn>> {
        looks::reserve(self, agent, offers, max, thorough).await
    }

    async fn claim(
        &self,
        call: &CallRecord,
        agent: &AgentId,
        offers: &[ClaimOffer],
        turn: &Turn,
    ) -> StoreResult<Vec<QueueRequest>> {
        claim::claim(self, call, agent, offers, turn).await
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

    async fn complete_many(
        &self,
        call: &CallRecord,
        agent: &AgentId,
        items: &[Completion],
    ) -> StoreResult<Vec<Result<(), Refusal>>> {
        complete_many::complete_many(self, call, agent, items).await
    }

    async fn held_requests(&self, agent: &AgentId, requests: &[RequestId]) -> StoreResult<Vec<QueueRequest>> {
        list::held_many(self, agent, requests).await
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

    async fn around(&self, request: &QueueRequest) -> StoreResult<Surroundings> {
        why::around(self, request).await
    }

    async fn queue_limits(&self, tenant: TenantId) -> StoreResult<Vec<QueueLimit>> {
        limits::list(self, tenant).await
    }

    async fn set_queue_limit(&self, call: &CallRecord, tenant: TenantId, limit: &NewLimit) -> StoreResult<Receipt> {
        limits::set(self, call, tenant, limit).await
    }

    async fn sweep_requests(&self) -> StoreResult<Vec<AppId>> {
        sweep::sweep(self).await
    }

    async fn stuck(&self) -> StoreResult<i64> {
        sweep::stuck(self).await
    }
}
