//! The queue.

use async_trait::async_trait;
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

use crate::error::StoreResult;

#[derive(Debug, Clone)]
pub struct AskReceipt {
    pub request: QueueRequest,
    pub receipt: Receipt,
}

#[async_trait]
pub trait Requests: Send + Sync {
    async fn ask(&self, call: &CallRecord, app: &AppSnapshot, request: &NewRequest) -> StoreResult<AskReceipt>;
    /// Keeps up to `max` (1 to 100) waiting requests that some offer covers for one claim of this agent: of the tenant,
    /// the apps and the requesters whose turn it is. `None` when nothing waits; a picture of the last second is good enough
    /// for that unless `thorough`. What is kept and not claimed is free again within a second.
    async fn reserve(
        &self,
        agent: &AgentId,
        offers: &[ClaimOffer],
        max: u32,
        thorough: bool,
    ) -> StoreResult<Option<Turn>>;
    /// Claims what a turn (made from these offers) stands for. Empty when others were faster, and that writes no entry.
    /// `Stale` when a grant is no longer what its offer was made from.
    async fn claim(
        &self,
        call: &CallRecord,
        agent: &AgentId,
        offers: &[ClaimOffer],
        turn: &Turn,
    ) -> StoreResult<Vec<QueueRequest>>;
    /// Guarded by state, holder and epoch; the grant the claim was made under must be live.
    async fn hold(
        &self,
        call: &CallRecord,
        request: RequestId,
        agent: &AgentId,
        epoch: i64,
        command: &HoldCommand,
    ) -> StoreResult<QueueRequest>;
    /// Stores up to 100 results in one call. Answers for each in turn whether it was stored; refused as a whole, with the
    /// first refusal, when none was.
    async fn complete_many(
        &self,
        call: &CallRecord,
        agent: &AgentId,
        items: &[Completion],
    ) -> StoreResult<Vec<Result<(), Refusal>>>;
    /// Those of these requests that an agent holds, or held and that have not moved to the history.
    async fn held_requests(&self, agent: &AgentId, requests: &[RequestId]) -> StoreResult<Vec<QueueRequest>>;
    async fn request(&self, app: AppId, request: RequestId) -> StoreResult<Option<QueueRequest>>;
    /// The request an agent holds or held, with the app it belongs to.
    async fn held_request(&self, agent: &AgentId, request: RequestId) -> StoreResult<Option<QueueRequest>>;
    /// Newest first: everybody's, or what one person asked for.
    async fn requests(
        &self,
        app: AppId,
        state: Option<RequestState>,
        requester: Option<UserId>,
        limit: u32,
    ) -> StoreResult<Vec<QueueRequest>>;
    async fn cancel(
        &self,
        call: &CallRecord,
        app: AppId,
        request: RequestId,
        reason: &str,
    ) -> StoreResult<QueueRequest>;
    /// What a member of the tenant does over the holder's head or for it. Refused with `conflict` when the request is not
    /// in a state for it, `not_found` when the app has none of that id.
    async fn operate(
        &self,
        call: &CallRecord,
        app: AppId,
        request: RequestId,
        command: &OperateCommand,
    ) -> StoreResult<QueueRequest>;
    /// Cancels up to 1,000 open requests, oldest first. Answers how many, and whether there may be more.
    async fn cancel_many(
        &self,
        call: &CallRecord,
        app: AppId,
        filter: &CancelFilter,
        reason: &str,
    ) -> StoreResult<(u64, bool)>;
    /// What stands around a request, as far as the store knows (what the release declares is not its business).
    async fn around(&self, request: &QueueRequest) -> StoreResult<Surroundings>;
    /// Weights and caps of a tenant.
    async fn queue_limits(&self, tenant: TenantId) -> StoreResult<Vec<QueueLimit>>;
    /// Sets one of them, in force from the next look of every node on (a second). Refused with `forbidden` when a tenant
    /// is weighed by another than the platform's first.
    async fn set_queue_limit(&self, call: &CallRecord, tenant: TenantId, limit: &NewLimit) -> StoreResult<Receipt>;
    /// Requeues or ends what lost its lease. Answers the apps with something newly claimable.
    async fn sweep_requests(&self) -> StoreResult<Vec<AppId>>;
    /// Non-terminal rows without owner, deadline or next step; must be 0.
    async fn stuck(&self) -> StoreResult<i64>;
}
