//! Against a real `redis-server` of the test's own: unix socket in a temporary folder, nothing on the network.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use inn_ports::{Bus, Topic};
use inn_protocol::{AppId, TenantId};
use tempfile::TempDir;
use tokio::runtime::Handle;

use super::{RedisBus, Shared};
use crate::connect;

const LONG: Duration = Duration::from_secs(20);

/// A Redis server that ends with the test.
struct Server {
    folder: TempDir,
    process: Option<Child>,
}

impl Server {
    fn start() -> Self {
        let mut server = Self { folder: tempfile::tempdir().unwrap(), process: None };
        server.run();
        server
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("redis.sock")
    }

    fn run(&mut self) {
        let socket = self.socket();
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(self.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed by this test: `apt-get install -y redis-server` (./ops/test does it)");
        self.process = Some(process);
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(&socket).is_err() {
            assert!(started.elapsed() < LONG, "redis-server did not start");
            std::thread::yield_now();
        }
    }

    fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        if Path::new(&self.socket()).exists() {
            std::fs::remove_file(self.socket()).unwrap();
        }
    }

    fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// A node whose subscription stands: each new one tells its node to forget everything. Listens before the node starts, so
/// that this is never missed.
async fn listening(server: &Server) -> Arc<dyn Bus> {
    let client = redis::Client::open(server.url()).unwrap();
    let shared = Arc::new(Shared::new());
    let mut hints = shared.hub.policy_hints();
    let node = RedisBus::spawn(&client, shared, &Handle::current());
    assert_eq!(tokio::time::timeout(LONG, hints.next()).await.unwrap(), Some(None));
    Arc::new(node)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hint_reaches_the_other_node_and_only_its_waiters() {
    let server = Server::start();
    let (a, b) = (listening(&server).await, listening(&server).await);
    let (app, tenant) = (AppId::new(), TenantId::new());
    let mut hints = b.policy_hints();
    let woken = tokio::spawn({
        let b = Arc::clone(&b);
        async move { b.wait(&[Topic::Requests(app)], LONG).await }
    });
    let other = tokio::spawn({
        let b = Arc::clone(&b);
        async move { b.wait(&[Topic::Requests(AppId::new())], Duration::from_millis(300)).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    a.publish(Topic::Requests(app)).await;
    a.publish(Topic::Policy(tenant)).await;
    assert!(woken.await.unwrap());
    assert_eq!(tokio::time::timeout(LONG, hints.next()).await.unwrap(), Some(Some(tenant)));
    assert!(!other.await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_hints_become_few_messages() {
    let server = Server::start();
    let node = listening(&server).await;
    let client = redis::Client::open(server.url()).unwrap();
    let mut watcher = client.get_async_pubsub().await.unwrap();
    watcher.subscribe(super::CHANNEL).await.unwrap();
    let app = AppId::new();
    for _ in 0..2000 {
        node.publish(Topic::Requests(app)).await;
    }
    let mut messages = 0;
    let mut stream = watcher.on_message();
    while let Ok(Some(_)) =
        tokio::time::timeout(Duration::from_millis(300), futures_util::StreamExt::next(&mut stream)).await
    {
        messages += 1;
    }
    assert!((1..=200).contains(&messages), "{messages} messages for 2000 hints");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_that_is_down_costs_time_only_and_its_return_means_forget_everything() {
    let mut server = Server::start();
    let (a, b) = (listening(&server).await, listening(&server).await);
    server.kill();

    let app = AppId::new();
    let own = tokio::spawn({
        let a = Arc::clone(&a);
        async move { a.wait(&[Topic::Requests(app)], LONG).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    let started = Instant::now();
    for _ in 0..100 {
        a.publish(Topic::Requests(app)).await;
    }
    assert!(started.elapsed() < Duration::from_secs(1), "publishing waits for nobody");
    assert!(own.await.unwrap(), "the own node is woken without Redis");

    let mut hints = b.policy_hints();
    server.run();
    assert_eq!(tokio::time::timeout(LONG, hints.next()).await.unwrap(), Some(None), "what was missed is unknown");
    // Both nodes hear each other again.
    let tenant = TenantId::new();
    let heard = async {
        loop {
            a.publish(Topic::Policy(tenant)).await;
            let next = tokio::time::timeout(Duration::from_millis(200), hints.next()).await;
            if next == Ok(Some(Some(tenant))) {
                return;
            }
        }
    };
    tokio::time::timeout(LONG, heard).await.expect("hints flow again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_on_the_channel_changes_nothing() {
    let server = Server::start();
    let (a, b) = (listening(&server).await, listening(&server).await);
    let client = redis::Client::open(server.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let mut hints = b.policy_hints();
    for message in [&b"hello"[..], b"", b"\xff\xfe", &vec![b'x'; 1 << 20]] {
        redis::cmd("PUBLISH").arg(super::CHANNEL).arg(message).query_async::<()>(&mut connection).await.unwrap();
    }
    let tenant = TenantId::new();
    a.publish(Topic::Policy(tenant)).await;
    assert_eq!(tokio::time::timeout(LONG, hints.next()).await.unwrap(), Some(Some(tenant)));
}

#[tokio::test]
async fn a_bad_address_is_refused_without_repeating_it() {
    for address in ["", "http://10.0.0.1", "redis://user:hunter2@:bad", "not an address hunter2"] {
        let Err(error) = connect(Some(address), &Handle::current()) else { panic!("{address} was taken") };
        let text = error.to_string();
        assert!(text.contains("redis://") && !text.contains("hunter2"), "{text}");
    }
}

#[tokio::test]
async fn a_dropped_bus_ends_its_hints() {
    let server = Server::start();
    let node = connect(Some(&server.url()), &Handle::current()).unwrap();
    let mut hints = node.policy_hints();
    drop(node);
    let ended = async { while hints.next().await.is_some() {} };
    tokio::time::timeout(LONG, ended).await.expect("no more hints after the bus is gone");
}
