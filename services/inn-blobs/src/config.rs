//! Where the bytes lie.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

/// How to reach the bytes, and how hard to work on pictures.
pub struct BlobConfig {
    pub place: BlobPlace,
    /// The runtime that owns the connections.
    pub io: tokio::runtime::Handle,
    /// Pictures opened at one time for thumbs; each may take 400 MiB for a moment.
    pub thumb_workers: usize,
}

impl BlobConfig {
    /// In a directory, one picture at a time.
    pub fn directory(dir: impl Into<PathBuf>, io: tokio::runtime::Handle) -> Self {
        Self { place: BlobPlace::Directory(dir.into()), io, thumb_workers: 1 }
    }
}

#[derive(Debug, Clone)]
pub enum BlobPlace {
    Directory(PathBuf),
    S3(S3Config),
}

/// An S3-compatible store.
#[derive(Clone)]
pub struct S3Config {
    pub bucket: String,
    /// Everything of ours lies below this; empty for the whole bucket.
    pub prefix: String,
    /// `None`: Amazon's own for the region.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key: String,
    pub secret_key: String,
}

/// Keys hidden.
impl fmt::Debug for S3Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bucket, prefix, endpoint, region, .. } = self;
        write!(f, "S3Config {{ bucket: {bucket:?}, prefix: {prefix:?}, endpoint: {endpoint:?}, region: {region:?} }}")
    }
}

/// Why the place could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the blob directory {} cannot be used: {cause}", dir.display())]
    Directory { dir: PathBuf, cause: String },
    #[error("the object store cannot be used: {0}")]
    S3(String),
}

pub(crate) fn open(place: BlobPlace) -> Result<(Arc<dyn ObjectStore>, Option<PathBuf>), SetupError> {
    match place {
        BlobPlace::Directory(dir) => Ok((directory(&dir)?, Some(dir))),
        BlobPlace::S3(config) => Ok((s3(&config)?, None)),
    }
}

fn directory(dir: &Path) -> Result<Arc<dyn ObjectStore>, SetupError> {
    let broken = |cause: String| SetupError::Directory { dir: dir.to_owned(), cause };
    std::fs::create_dir_all(dir).map_err(|error| broken(error.to_string()))?;
    let store = LocalFileSystem::new_with_prefix(dir).map_err(|error| broken(error.to_string()))?;
    // A committed release or record must find its bytes after a crash.
    Ok(Arc::new(store.with_fsync(true)))
}

fn s3(config: &S3Config) -> Result<Arc<dyn ObjectStore>, SetupError> {
    let plain = config.endpoint.as_ref().is_some_and(|endpoint| endpoint.starts_with("http://"));
    let client = ClientOptions::new()
        .with_allow_http(plain)
        .with_connect_timeout(Duration::from_secs(5))
        .with_timeout(Duration::from_secs(30));
    // A call waits for this; its own deadline is 30 s.
    let retry = RetryConfig { max_retries: 3, retry_timeout: Duration::from_secs(20), ..RetryConfig::default() };
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(&config.bucket)
        .with_region(&config.region)
        .with_access_key_id(&config.access_key)
        .with_secret_access_key(&config.secret_key)
        .with_client_options(client)
        .with_retry(retry);
    if let Some(endpoint) = &config.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let store = builder.build().map_err(|error| SetupError::S3(error.to_string()))?;
    if config.prefix.is_empty() {
        return Ok(Arc::new(store));
    }
    Ok(Arc::new(PrefixStore::new(store, config.prefix.as_str())))
}
