//! Connections: opened on the I/O runtime, so that a busy worker never holds up another worker's query.

use std::future::Future;
use std::pin::Pin;
use std::str::FromStr;
use std::time::Duration;

use deadpool_postgres::{Connect, Manager, ManagerConfig, Pool, QueueMode, RecyclingMethod, Runtime};
use inn_ports::StoreResult;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, Config, NoTls};

use crate::error::{SetupError, broken};
use crate::{PgStore, StoreConfig};

pub(crate) fn open(config: &StoreConfig) -> Result<Pool, SetupError> {
    let mut target = parse(&config.url)?;
    let timeout = config.statement_timeout.as_millis();
    let synchronous = if config.synchronous_commit { "on" } else { "off" };
    // A transaction left idle would hold row locks and hold back the sealer; a plan with fixed texts needs no JIT.
    let ours = format!(
        "-c statement_timeout={timeout} -c synchronous_commit={synchronous} -c idle_in_transaction_session_timeout=30000 \
         -c lock_timeout={timeout} -c timezone=UTC -c jit=off -c search_path=public"
    );
    let options = match target.get_options() {
        // What the address itself asks for comes last and wins.
        Some(theirs) => format!("{ours} {theirs}"),
        None => ours,
    };
    target.options(options);
    if target.get_application_name().is_none() {
        target.application_name("inn");
    }
    target.connect_timeout(config.acquire_timeout);
    target
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(30))
        .keepalives_interval(Duration::from_secs(5))
        .keepalives_retries(3);
    let manager = Manager::from_connect(
        target,
        OnRuntime(config.io.clone()),
        ManagerConfig { recycling_method: RecyclingMethod::Fast },
    );
    Pool::builder(manager)
        .max_size(config.pool_size.max(2))
        // The connection that was used last has the statement prepared and its caches warm; in turn, a quiet host would
        // meet a cold server process with every call.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(config.acquire_timeout))
        .create_timeout(Some(config.acquire_timeout))
        .build()
        .map_err(|error| SetupError::Unreachable(error.to_string()))
}

/// How the connections of one store are doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Open connections, at most the configured number.
    pub size: usize,
    /// Of these, the ones nobody uses.
    pub available: usize,
    /// Callers that wait for one.
    pub waiting: usize,
}

impl PgStore {
    /// A look at the pool, without waiting. The numbers are of one moment, and may be of two when it is busy.
    pub fn pool_status(&self) -> PoolStatus {
        let status = self.inner.pool.status();
        PoolStatus { size: status.size, available: status.available, waiting: status.waiting }
    }

    /// What the server calls itself, `15.18 (Debian 15.18-0+deb12u1)` for instance.
    pub async fn server_version(&self) -> StoreResult<String> {
        let client = self.client().await?;
        let row = client.query_one("SHOW server_version", &[]).await.map_err(broken("server version"))?;
        row.try_get(0).map_err(broken("server version"))
    }
}

pub(crate) fn parse(url: &str) -> Result<Config, SetupError> {
    // The parser's message never holds the password; the address itself may.
    Config::from_str(url).map_err(|error| SetupError::InvalidUrl(crate::error::chain(&error)))
}

/// Opens sockets and runs connection tasks on one runtime, whoever asks.
struct OnRuntime(tokio::runtime::Handle);

type Connecting<'a> =
    Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), tokio_postgres::Error>> + Send + 'a>>;

impl Connect for OnRuntime {
    fn connect(&self, target: &Config) -> Connecting<'_> {
        let (target, io) = (target.clone(), self.0.clone());
        Box::pin(async move {
            let runtime = io.clone();
            let here = target.clone();
            let opening = io.spawn(async move { dial(&target, &runtime).await });
            match opening.await {
                Ok(opened) => opened,
                // The I/O runtime is shutting down: whoever still asks is served by its own.
                Err(_) => dial(&here, &tokio::runtime::Handle::current()).await,
            }
        })
    }
}

async fn dial(
    target: &Config,
    runtime: &tokio::runtime::Handle,
) -> Result<(Client, JoinHandle<()>), tokio_postgres::Error> {
    let (client, connection) = target.connect(NoTls).await?;
    let task = runtime.spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = %crate::error::chain(&error), "database connection ended");
        }
    });
    Ok((client, task))
}

#[cfg(test)]
mod tests {
    use crate::testdb::TestDb;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_pool_tells_what_is_open_free_and_waited_for() {
        let (_, db) = TestDb::new().await;
        let mut config = db.config();
        config.pool_size = 2;
        let store = crate::PgStore::connect(config).await.unwrap();
        let one = store.client().await.unwrap();
        let two = store.client().await.unwrap();
        let status = store.pool_status();
        assert_eq!((status.size, status.available, status.waiting), (2, 0, 0));
        let waiter = tokio::spawn({
            let store = store.clone();
            async move { store.server_version().await }
        });
        while store.pool_status().waiting == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(!waiter.is_finished(), "it waits for a connection");
        drop((one, two));
        let version = waiter.await.unwrap().unwrap();
        assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{version}");
        let status = store.pool_status();
        assert_eq!((status.size, status.available, status.waiting), (2, 2, 0));
    }
}
