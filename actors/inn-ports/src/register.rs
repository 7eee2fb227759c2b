//! Reading and sealing the register.

use async_trait::async_trait;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::{Entry, EntrySearch, Head, Verification};
use inn_protocol::{CallId, TenantId};

use crate::error::StoreResult;

#[async_trait]
pub trait Register: Send + Sync {
    /// Newest first.
    async fn entries(&self, tenant: TenantId, search: &EntrySearch) -> StoreResult<Vec<Entry>>;
    async fn entry(&self, tenant: TenantId, call: CallId) -> StoreResult<Option<Entry>>;
    async fn receipt(&self, tenant: TenantId, call: CallId) -> StoreResult<Option<Receipt>>;
    /// The newest signed head.
    async fn head(&self, tenant: TenantId) -> StoreResult<Option<Head>>;
    /// Recomputes every digest, the chain and the heads, with the public keys the platform knows.
    async fn verify(&self, tenant: TenantId, expected: Option<&Head>) -> StoreResult<Verification>;
}
