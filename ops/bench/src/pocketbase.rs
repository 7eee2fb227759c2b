//! PocketBase under test: the same collections, public rules, default settings.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use hyper::Method;
use inn_client::{Client, Outgoing, Papers, RetryPolicy};
use serde_json::{Value, json};

use crate::face::{Face, text};
use crate::load::Target;
use crate::machine::Processes;
use crate::server::{Server, run};

const EMAIL: &str = "root@bench.example";
const PASSWORD: &str = "correct horse battery staple";

pub(crate) struct PocketBase {
    server: Server,
    pub(crate) face: Face,
}

impl PocketBase {
    pub(crate) async fn start(binary: &Path, dir: &Path, schema: &Value) -> anyhow::Result<Self> {
        let home = dir.join("pocketbase");
        // All folders are named: the defaults lie beside the binary.
        let folders = |mut command: Command| {
            for name in ["dir", "hooksDir", "migrationsDir", "publicDir"] {
                command.arg(format!("--{name}")).arg(home.join(name));
            }
            command.args(["--automigrate=0", "--hooksWatch=0"]);
            command
        };
        let mut upsert = Command::new(binary);
        upsert.args(["superuser", "upsert", EMAIL, PASSWORD]);
        run(folders(upsert))?;

        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut serve = Command::new(binary);
        serve.args(["serve", &format!("--http=127.0.0.1:{port}")]);
        let mut server = Server::start(folders(serve), dir.join("pocketbase.log"))?;
        let client = Client::new(&format!("http://127.0.0.1:{port}"))?.with_retry(RetryPolicy::NEVER);
        let processes = Processes { server: server.pid(), database: None };
        let target = Target { address: ([127, 0, 0, 1], port).into(), processes };
        let face = Face { client, prefix: String::new(), papers: Papers::Nothing, target };
        let health = Outgoing::get("/api/health");
        server.until(async || face.call(&health).await.ok()).await.context("pocketbase serve")?;

        let who = json!({"identity": EMAIL, "password": PASSWORD});
        let answer = face.call(&Outgoing::post("/api/collections/_superusers/auth-with-password", &who)).await?;
        let token = text(&answer, "token")?;
        let import = Outgoing::new(Method::PUT, "/api/collections/import");
        let import =
            import.json(&json!({"collections": schema, "deleteMissing": false})).header("authorization", &token)?;
        face.call(&import).await.context("the schema could not be imported")?;
        Ok(Self { server, face })
    }

    /// What it says its version is.
    pub(crate) fn version(binary: &Path) -> anyhow::Result<String> {
        let output = Command::new(binary).arg("--version").output().with_context(|| binary.display().to_string())?;
        if !output.status.success() {
            bail!("{} --version ended with {}", binary.display(), output.status);
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("pocketbase version ").to_owned())
    }

    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }
}
