//! A store for one question or one deed outside a running platform: no head is signed and no secret
//! opened with it.

use std::sync::Arc;
use std::time::Duration;

use inn_store::{PgStore, StoreConfig};
use tempfile::TempDir;

use crate::keys::{KeyRing, Origin};

/// The store wants a signer; it is made up and goes with this value.
pub(crate) struct Scratch {
    pub(crate) store: PgStore,
    _dir: TempDir,
}

impl Scratch {
    pub(crate) async fn open(url: &str, io: &tokio::runtime::Handle) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let keys = Arc::new(KeyRing::open(&dir.path().join("keys"), Origin::Made)?);
        let vault = keys.vault();
        let mut config = StoreConfig::new(url, io.clone(), keys, vault);
        config.pool_size = 2;
        config.acquire_timeout = Duration::from_secs(10);
        Ok(Self { store: PgStore::connect(config).await?, _dir: dir })
    }
}
