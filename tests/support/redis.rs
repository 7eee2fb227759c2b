//! A Redis of the test's own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Ends with the test. Listens on a socket in a folder of its own, nothing on the network.
pub struct Redis {
    process: Child,
    folder: TempDir,
}

impl Redis {
    pub fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--dir"])
            .arg(folder.path())
            .arg("--unixsocket")
            .arg(folder.path().join("redis.sock"))
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is needed by this test: `apt-get install -y redis-server` (./ops/test does it)");
        let redis = Self { process, folder };
        let began = Instant::now();
        while std::os::unix::net::UnixStream::connect(redis.socket()).is_err() {
            assert!(began.elapsed() < Duration::from_secs(20), "redis-server does not start");
            std::thread::yield_now();
        }
        redis
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// For `redis.url`.
    pub fn url(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// It is gone, as when its machine dies.
    pub fn kill(&mut self) {
        self.process.kill().expect("it ran");
        self.process.wait().expect("it ended");
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have been killed by the test.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
