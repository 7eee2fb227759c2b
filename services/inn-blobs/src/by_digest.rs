//! Bundles and the files of UIs: the same bytes twice are one object.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use inn_ports::{Blobs, StoreError, StoreResult};
use inn_protocol::Digest;
use object_store::path::Path;
use object_store::{ObjectStoreExt as _, PutPayload};

use crate::{BlobStore, failed};

#[async_trait]
impl Blobs for BlobStore {
    async fn put(&self, digest: Digest, bytes: Bytes) -> StoreResult<()> {
        if Digest::of(&bytes) != digest {
            tracing::error!(%digest, "bytes to keep do not have the digest they are kept under");
            return Err(StoreError::Broken);
        }
        // Written beside and moved into place, so nobody ever reads half a blob, and a damaged one is replaced.
        let objects = Arc::clone(&self.inner.objects);
        let put = async move { objects.put(&place(digest), PutPayload::from_bytes(bytes)).await };
        self.on_io(put).await?.map_err(|error| failed("put", &error))?;
        Ok(())
    }

    async fn get(&self, digest: Digest) -> StoreResult<Option<Bytes>> {
        let objects = Arc::clone(&self.inner.objects);
        let get = async move { objects.get(&place(digest)).await?.bytes().await };
        let bytes = match self.on_io(get).await? {
            Ok(bytes) => bytes,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(failed("get", &error)),
        };
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
