//! Bytes by digest, in an object store: bundles and the files of UIs.

#[cfg(test)]
mod tests;

use async_trait::async_trait;
use bytes::Bytes;
use inn_ports::{Blobs, StoreError, StoreResult};
use inn_protocol::Digest;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};

use crate::PgStore;

#[async_trait]
impl Blobs for PgStore {
    async fn put(&self, digest: Digest, bytes: Bytes) -> StoreResult<()> {
        if Digest::of(&bytes) != digest {
            tracing::error!(%digest, "bytes to keep do not have the digest they are kept under");
            return Err(StoreError::Broken);
        }
        // Written beside and moved into place, so nobody ever reads half a blob, and a damaged one is replaced.
        self.inner
            .blobs
            .put(&place(digest), PutPayload::from_bytes(bytes))
            .await
            .map_err(|error| failed("put", digest, &error))?;
        Ok(())
    }

    async fn get(&self, digest: Digest) -> StoreResult<Option<Bytes>> {
        let found = match self.inner.blobs.get(&place(digest)).await {
            Ok(found) => found,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed("get", digest, &error)),
        };
        let bytes = found.bytes().await.map_err(|error| failed("get", digest, &error))?;
        if Digest::of(&bytes) != digest {
            tracing::error!(%digest, "a kept blob no longer has its digest: the store is damaged");
            return Err(StoreError::Broken);
        }
        Ok(Some(bytes))
    }
}

/// Two levels, so that no directory grows without end.
fn place(digest: Digest) -> Path {
    let name = digest.to_string();
    let folder: String = name.chars().take(2).collect();
    Path::from_iter([folder, name])
}

fn failed(what: &'static str, digest: Digest, error: &object_store::Error) -> StoreError {
    tracing::error!(what, %digest, error = %crate::error::chain(error), "blob store failed");
    StoreError::Unavailable
}
