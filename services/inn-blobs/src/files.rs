//! Files of records, in pieces under `files/<app>/<two letters>/<file>/`.

use std::ops::Range;
use std::path::Path as DiskPath;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use inn_ports::{FileKey, Objects, StoreError, StoreResult, Thumb};
use inn_rules::files::ThumbSpec;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};

use crate::{BlobStore, failed, thumbs};

#[async_trait]
impl Objects for BlobStore {
    async fn put_piece(&self, file: FileKey, number: u32, bytes: Bytes) -> StoreResult<()> {
        self.put_under(file, &number.to_string(), bytes).await
    }

    async fn piece(&self, file: FileKey, number: u32, range: Range<u64>) -> StoreResult<Option<Bytes>> {
        let objects = Arc::clone(&self.inner.objects);
        let path = under(file, &number.to_string());
        match self.on_io(async move { objects.get_range(&path, range).await }).await? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("read a piece", &error)),
        }
    }

    async fn remove(&self, file: FileKey) -> StoreResult<()> {
        let folder = folder(file);
        if let Some(dir) = &self.inner.dir {
            // With what an interrupted write left, which a listing does not show.
            let dir = dir.join(folder.as_ref());
            return self.on_io(async move { remove_folder(&dir).await }).await?;
        }
        let objects = Arc::clone(&self.inner.objects);
        let removed = self.on_io(async move { remove_objects(&*objects, &folder).await }).await?;
        removed.map_err(|error| failed("remove a file", &error))
    }

    async fn thumb(&self, file: FileKey, size: u64, spec: ThumbSpec) -> StoreResult<Option<Thumb>> {
        thumbs::thumb(self, file, size, spec).await
    }
}

impl BlobStore {
    pub(crate) async fn put_under(&self, file: FileKey, name: &str, bytes: Bytes) -> StoreResult<()> {
        let objects = Arc::clone(&self.inner.objects);
        let path = under(file, name);
        let put = async move { objects.put(&path, PutPayload::from_bytes(bytes)).await };
        self.on_io(put).await?.map_err(|error| failed("put", &error))?;
        Ok(())
    }

    pub(crate) async fn get_under(&self, file: FileKey, name: &str) -> StoreResult<Option<Bytes>> {
        let objects = Arc::clone(&self.inner.objects);
        let path = under(file, name);
        match self.on_io(async move { objects.get(&path).await?.bytes().await }).await? {
            Ok(bytes) => Ok(Some(bytes)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed("get", &error)),
        }
    }
}

/// The end of an id is random, its start is the time.
fn folder(file: FileKey) -> Path {
    let name = file.file.uuid().simple().to_string();
    let spread: String = name.chars().skip(name.len() - 2).collect();
    Path::from_iter(["files".to_owned(), file.app.uuid().simple().to_string(), spread, name])
}

fn under(file: FileKey, name: &str) -> Path {
    folder(file).join(name)
}

async fn remove_folder(dir: &DiskPath) -> StoreResult<()> {
    match tokio::fs::remove_dir_all(dir).await {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            tracing::error!(%error, dir = %dir.display(), "a file's folder could not be removed");
            Err(StoreError::Unavailable)
        }
    }
}

async fn remove_objects(objects: &dyn ObjectStore, folder: &Path) -> object_store::Result<()> {
    let mut listed = objects.list(Some(folder));
    while let Some(object) = listed.try_next().await? {
        match objects.delete(&object.location).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
