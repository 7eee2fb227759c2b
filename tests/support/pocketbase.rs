//! The real PocketBase, which ours is held against.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::host::free_port;

/// Behaves as 0.39.7 in the records API (`reference` notes on PocketBase, section 0); later ones read filters differently.
pub const VERSION: &str = "0.39.8";

/// Address and password of its superuser.
pub const ROOT: (&str, &str) = ("root@harbour.example", "a password of root");

/// Where the binary is: `POCKETBASE`, else where `ops/test` has installed it. `None` when there is none, or when
/// `POCKETBASE=none`.
///
/// A path in `POCKETBASE` where nothing is fails the test: whoever sets it wants the test to run.
pub fn binary() -> Option<PathBuf> {
    match std::env::var_os("POCKETBASE") {
        Some(none) if none == "none" => None,
        Some(path) => {
            let path = PathBuf::from(path);
            assert!(path.is_file(), "POCKETBASE names {}, where there is no file", path.display());
            Some(path)
        }
        None => Some(crate::built().join("bench-venv/bin/pocketbase")).filter(|path| path.is_file()),
    }
}

/// One running PocketBase on data of its own. Dropped, it ends.
pub struct PocketBase {
    http: reqwest::Client,
    url: String,
    superuser: String,
    // In this order: first it ends, then its data goes.
    _running: Running,
    _dir: TempDir,
}

impl PocketBase {
    /// Starts it and signs in as superuser.
    pub async fn start(binary: &Path) -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        run(binary, dir.path(), &["superuser", "upsert", ROOT.0, ROOT.1]);
        let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().expect("a client");
        // Somebody else may take the port between finding and using it.
        for _ in 0..5 {
            let url = format!("http://127.0.0.1:{}", free_port());
            let mut running = Running::start(binary, dir.path(), &url);
            if running.answers(&http, &url).await {
                let mut started = Self { http, url, superuser: String::new(), _running: running, _dir: dir };
                started.superuser = started.sign_in("_superusers", ROOT.0, ROOT.1).await;
                return started;
            }
        }
        panic!("PocketBase does not start: {}", std::fs::read_to_string(dir.path().join("log")).unwrap_or_default());
    }

    /// `http://127.0.0.1:<port>`
    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn superuser(&self) -> &str {
        &self.superuser
    }

    /// A token of a record of an auth collection.
    pub async fn sign_in(&self, collection: &str, identity: &str, password: &str) -> String {
        let path = format!("/api/collections/{collection}/auth-with-password");
        let body = json!({"identity": identity, "password": password});
        let (status, answer) = self.ask_json(&Method::POST, &path, None, &body).await;
        assert_eq!(status, 200, "{answer}");
        answer["token"].as_str().expect("a token").to_owned()
    }

    /// One HTTP request with a JSON body.
    pub async fn ask_json(&self, method: &Method, target: &str, token: Option<&str>, body: &Value) -> (u16, Value) {
        let headers = [("content-type".to_owned(), "application/json".to_owned())];
        self.ask(method, target, token, &headers, Some(body.to_string().into_bytes())).await
    }

    /// One HTTP request. The body of the answer is `null` when it is empty.
    pub async fn ask(
        &self,
        method: &Method,
        target: &str,
        token: Option<&str>,
        headers: &[(String, String)],
        body: Option<Vec<u8>>,
    ) -> (u16, Value) {
        let mut request = self.http.request(method.clone(), format!("{}{target}", self.url));
        if let Some(token) = token {
            request = request.header("authorization", token);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(body) = body {
            request = request.body(body);
        }
        let response = request.send().await.unwrap_or_else(|error| panic!("{method} {target}: {error}"));
        let status = response.status().as_u16();
        let bytes = response.bytes().await.expect("a body");
        let text = String::from_utf8_lossy(&bytes);
        if text.is_empty() {
            return (status, Value::Null);
        }
        (status, serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned())))
    }
}

struct Running(Child);

impl Running {
    fn start(binary: &Path, dir: &Path, url: &str) -> Self {
        let log = File::create(dir.join("log")).expect("a log file");
        let listen = url.replace("http://", "--http=");
        let mut command = command(binary, dir, &["serve", &listen]);
        command.stdout(log.try_clone().expect("a log file")).stderr(log);
        Self(command.spawn().expect("PocketBase starts"))
    }

    async fn answers(&mut self, http: &reqwest::Client, url: &str) -> bool {
        let health = format!("{url}/api/health");
        for _ in 0..400 {
            if let Ok(Some(_)) = self.0.try_wait() {
                return false;
            }
            if http.get(&health).send().await.is_ok_and(|answer| answer.status().is_success()) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        false
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Every folder is given: its defaults are beside the binary.
fn command(binary: &Path, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).stdin(Stdio::null());
    for (option, folder) in
        [("--dir", "data"), ("--hooksDir", "hooks"), ("--migrationsDir", "migrations"), ("--publicDir", "public")]
    {
        command.arg(option).arg(dir.join(folder));
    }
    if arguments[0] == "serve" {
        command.args(["--automigrate=0", "--hooksWatch=0"]);
    }
    command
}

fn run(binary: &Path, dir: &Path, arguments: &[&str]) {
    let done = command(binary, dir, arguments).output().expect("PocketBase runs");
    assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}
