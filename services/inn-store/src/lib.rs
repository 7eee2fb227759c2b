//! Everything that is kept, in PostgreSQL: the only crate that speaks SQL.
//!
//! One type, [`PgStore`], implements every storing trait of `inn-ports`; the files are cut by noun. Two paths write:
//! [`commit`] (a record write: one statement, one round trip) and [`step`] (everything else: one transaction).
//! Both leave entry, receipt, outbox, nonce and idempotency key together with the effect, or nothing at all.

mod app_auth;
mod apps;
mod clock;
mod columns;
mod commit;
mod ddl;
mod deploy;
mod directory;
mod error;
mod files;
mod filter_sql;
mod grants;
mod housekeeping;
mod jobs;
mod ledger;
mod migrate;
mod outbox;
mod people;
mod pool;
mod records;
mod register;
mod requests;
mod seal;
mod step;
#[cfg(any(test, feature = "testing"))]
pub mod testdb;

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use inn_grants::vault::Vault;
use inn_ports::{Bus, StoreResult};

pub use clock::DatabaseClock;
pub use error::SetupError;
pub use housekeeping::Housekept;
pub use migrate::{migrate, pending};
pub use pool::PoolStatus;
pub use seal::{HeadSigner, UnsignedHead};

/// How to reach the database and how hard to lean on it.
#[derive(Clone)]
pub struct StoreConfig {
    /// `postgresql://…`; a unix socket as a percent-encoded host (`postgresql://inn@%2Frun%2Finn/inn`).
    pub url: String,
    /// Connections at most. Two cores are saturated by eight.
    pub pool_size: usize,
    /// How long a call waits for a connection before it is told that the database is busy.
    pub acquire_timeout: Duration,
    /// The server ends a statement after this long.
    pub statement_timeout: Duration,
    /// `false` trades the last fraction of a second at a crash for speed; answers then mean "committed", not "on disk".
    pub synchronous_commit: bool,
    /// The runtime that owns every connection (never an actix worker's own).
    pub io: tokio::runtime::Handle,
    /// Signs and checks the register's heads.
    pub signer: Arc<dyn HeadSigner>,
    /// Seals what must be kept and read again.
    pub vault: Arc<Vault>,
    /// Told when records were changed.
    pub bus: Option<Arc<dyn Bus>>,
}

impl StoreConfig {
    /// The defaults of one node on a small machine.
    pub fn new(
        url: impl Into<String>,
        io: tokio::runtime::Handle,
        signer: Arc<dyn HeadSigner>,
        vault: Arc<Vault>,
    ) -> Self {
        Self {
            url: url.into(),
            pool_size: 16,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            bus: None,
            synchronous_commit: true,
            io,
            signer,
            vault,
        }
    }
}

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct PgStore {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) pool: Pool,
    pub(crate) signer: Arc<dyn HeadSigner>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) ledger: ledger::Sender,
    /// Which statement texts reads prepare.
    pub(crate) shapes: records::Shapes,
    /// Looks at single records, gathered.
    pub(crate) views: records::Views,
    /// What waits in the queue, as far as this node knows.
    pub(crate) queue: requests::Queue,
    pub(crate) bus: Option<Arc<dyn Bus>>,
    /// Names this process in leases.
    pub(crate) node: uuid::Uuid,
}

/// Distinct statement texts kept prepared on one connection. Every (release, collection, verb) is one text, so a
/// busy node with many apps would otherwise grow without end, on both sides of the socket.
const STATEMENTS_PER_CONNECTION: usize = 256;

impl PgStore {
    /// Opens the pool and starts the register's writer. The schema must be there: see [`migrate`].
    pub async fn connect(config: StoreConfig) -> Result<Self, SetupError> {
        let pool = pool::open(&config)?;
        // One connection now, so that a wrong address is told at start and not on the first call.
        drop(pool.get().await.map_err(|error| SetupError::Unreachable(error::chain(&error)))?);
        let ledger = ledger::start(&config.io, pool.clone());
        let views = records::Views::new(pool.clone(), config.io.clone());
        let inner = Inner {
            pool,
            views,
            signer: config.signer,
            vault: config.vault,
            ledger,
            shapes: records::Shapes::default(),
            queue: requests::Queue::default(),
            bus: config.bus,
            node: uuid::Uuid::new_v4(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A connection of the pool. `Unavailable` when there is none within the configured time.
    pub(crate) async fn client(&self) -> StoreResult<Object> {
        let client = self.inner.pool.get().await.map_err(|error| error::no_connection(&error))?;
        if client.statement_cache.size() > STATEMENTS_PER_CONNECTION {
            client.statement_cache.clear();
        }
        Ok(client)
    }
}

/// Every noun is there: a missing trait fails the build here and not at whoever uses the store.
const _: fn() = || {
    fn keeps_everything<T: inn_ports::Store + Clone + Send + Sync + 'static>() {}
    keeps_everything::<PgStore>();
};
