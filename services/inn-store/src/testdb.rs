//! For tests: one private server per test process, a migrated template, a fresh database per test.
#![allow(
    clippy::expect_used,
    reason = "support of tests, compiled for nothing else: a failure here fails the test that asked"
)]

use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use inn_embedded::EmbeddedPostgres;
use inn_grants::vault::{SecretKey, Vault};
use inn_protocol::Digest;
use tokio_postgres::{Client, NoTls};

use crate::{HeadSigner, PgStore, StoreConfig, UnsignedHead, migrate};

/// The server of this test process. Its guard removes it when the process ends.
#[derive(Debug)]
pub struct TestServer {
    postgres: EmbeddedPostgres,
    databases: AtomicU64,
}

const TEMPLATE: &str = "inn_template";

impl TestServer {
    /// Starts the server and migrates the template at the first call; later ones wait for it.
    pub fn global() -> &'static Self {
        static SERVER: OnceLock<TestServer> = OnceLock::new();
        SERVER.get_or_init(|| {
            // A thread of its own: starting blocks, and the caller sits on a runtime already.
            std::thread::spawn(Self::prepare).join().expect("the test server starts")
        })
    }

    /// The address of one of its databases.
    pub fn url(&self, database: &str) -> String {
        self.postgres.url(database)
    }

    fn prepare() -> Self {
        let postgres = EmbeddedPostgres::temporary().expect("PostgreSQL starts");
        let server = Self { postgres, databases: AtomicU64::new(0) };
        block_on(async {
            let admin = connect(&server.url("postgres")).await;
            admin.batch_execute(&format!("CREATE DATABASE {TEMPLATE}")).await.expect("the template is created");
            migrate(&server.url(TEMPLATE)).await.expect("the template is migrated");
        });
        server
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the test server answers");
    tokio::spawn(async move {
        // Tests end connections on purpose.
        let _ = connection.await;
    });
    client
}

/// One test's own database.
#[derive(Debug)]
pub struct TestDb {
    url: String,
}

impl TestDb {
    /// A fresh, migrated database and a store on it.
    pub async fn new() -> (PgStore, Self) {
        let server = TestServer::global();
        let name = format!("test_{}", server.databases.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&server.url("postgres")).await;
        admin
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"))
            .await
            .expect("the database is created");
        let db = Self { url: server.url(&name) };
        let store = db.store().await;
        (store, db)
    }

    /// An empty database without any table of ours.
    pub async fn empty() -> Self {
        let server = TestServer::global();
        let name = format!("test_{}", server.databases.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&server.url("postgres")).await;
        admin.batch_execute(&format!("CREATE DATABASE {name}")).await.expect("the database is created");
        Self { url: server.url(&name) }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// The settings of [`Self::store`], to change and connect with.
    pub fn config(&self) -> StoreConfig {
        let io = tokio::runtime::Handle::current();
        let mut config = StoreConfig::new(&self.url, io, Arc::new(TestSigner), test_vault());
        config.pool_size = 8;
        config.statement_timeout = Duration::from_secs(20);
        config
    }

    /// Another node on the same database.
    pub async fn store(&self) -> PgStore {
        PgStore::connect(self.config()).await.expect("the store connects")
    }

    /// A plain connection, as the superuser: for looking at rows and for doing what no code of ours may do.
    pub async fn admin(&self) -> Client {
        connect(&self.url).await
    }
}

/// Seals with a key everybody knows.
pub fn test_vault() -> Arc<Vault> {
    let keys = [(1, SecretKey::from_bytes([1; 32]))].into();
    Arc::new(Vault::new(keys).expect("one key"))
}

/// Chains and "signs" with nothing but SHA-256: for tests that do not care about keys.
#[derive(Debug, Clone, Copy)]
pub struct TestSigner;

impl TestSigner {
    fn mark(head: &UnsignedHead) -> Vec<u8> {
        let UnsignedHead { tenant, seq, head, at } = head;
        Digest::of(format!("test key|{tenant}|{seq}|{head}|{}", at.timestamp_micros()).as_bytes()).0.to_vec()
    }
}

impl HeadSigner for TestSigner {
    fn chain(&self, previous: Digest, entry: Digest) -> Digest {
        Digest::of(&[previous.0, entry.0].concat())
    }

    fn sign(&self, head: &UnsignedHead) -> (String, Vec<u8>) {
        ("test".to_owned(), Self::mark(head))
    }

    fn verify(&self, head: &UnsignedHead, key: &str, signature: &[u8]) -> bool {
        key == "test" && signature == Self::mark(head)
    }
}
