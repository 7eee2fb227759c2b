//! Bytes by digest: bundles and the files of UIs.

use async_trait::async_trait;
use bytes::Bytes;
use inn_protocol::Digest;

use crate::error::StoreResult;

#[async_trait]
pub trait Blobs: Send + Sync {
    /// Keeps the bytes under their digest. Keeping the same bytes twice is one blob.
    async fn put(&self, digest: Digest, bytes: Bytes) -> StoreResult<()>;
    async fn get(&self, digest: Digest) -> StoreResult<Option<Bytes>>;
}
