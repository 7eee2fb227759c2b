//! Bytes that are no rows: bundles and pages by digest, files of records by key, thumbs beside them. In a directory, or
//! in an S3-compatible store that several nodes share.
//!
//! Every write is one object, whole or not at all. What a crash leaves of one (a part-written file of a directory) lies
//! under the key of its file and goes with it.

mod by_digest;
mod config;
mod files;
mod picture;
#[cfg(test)]
mod tests;
mod thumbs;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use inn_ports::{StoreError, StoreResult};
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio::sync::Semaphore;

pub use config::{BlobConfig, BlobPlace, S3Config, SetupError};

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct BlobStore {
    inner: Arc<Inner>,
}

struct Inner {
    objects: Arc<dyn ObjectStore>,
    /// Root of a store that is a directory.
    dir: Option<PathBuf>,
    io: tokio::runtime::Handle,
    /// Pictures opened at one time.
    thumbs: Semaphore,
}

impl BlobStore {
    /// Opens the place; a directory is made when it is missing. Nothing is asked over the network.
    pub fn open(config: BlobConfig) -> Result<Self, SetupError> {
        let (objects, dir) = config::open(config.place)?;
        let thumbs = Semaphore::new(config.thumb_workers.max(1));
        Ok(Self { inner: Arc::new(Inner { objects, dir, io: config.io, thumbs }) })
    }

    /// Whether the place answers: asks for something that is not there.
    pub async fn check(&self) -> StoreResult<()> {
        let objects = Arc::clone(&self.inner.objects);
        let path = object_store::path::Path::from("check");
        let asked = self.on_io(async move { objects.head(&path).await }).await?;
        match asked {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("check", &error)),
        }
    }

    /// Runs on the runtime that owns every client of the outside. What was begun there is ended there, also when whoever
    /// asked has gone.
    async fn on_io<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> StoreResult<T> {
        self.inner.io.spawn(work).await.map_err(|error| {
            tracing::error!(%error, "work on the object store died");
            StoreError::Broken
        })
    }
}

/// Logs the cause once.
fn failed(what: &'static str, error: &object_store::Error) -> StoreError {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    tracing::error!(what, error = %text, "the object store failed");
    StoreError::Unavailable
}
