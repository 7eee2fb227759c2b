//! Innkeeper under test: a platform of this run's own, the kanban app, an agent with a grant.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use inn_client::{AgentKey, Client, Papers, RetryPolicy};
use serde_json::{Value, json};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::cards;
use crate::face::{Face, text};
use crate::load::Target;
use crate::machine::Processes;
use crate::server::{ReadyFile, Server, inn};

pub(crate) const SLUG: &str = "bench";
const OWNER: &str = "owner@bench.example";
const PASSWORD: &str = "correct horse battery staple";
pub(crate) const CAPABILITY: &str = "summarise-board";
/// As many as the platform lets one app have open.
pub(crate) const MOST_OPEN: usize = 10_000;

/// Settings that differ from the defaults, for the report.
pub(crate) const SETTINGS: &str = "INN_RATE_AUTH, INN_RATE_DATA, INN_RATE_OPERATIONS, INN_RATE_QUEUE = 0 (no rate limits), \
     INN_REALTIME_CALLER_CONNECTIONS = 10000 (one person opens all streams)";

pub(crate) struct Inn {
    server: Server,
    client: Client,
    target: Target,
    data: PathBuf,
}

/// Who calls the app.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) signed: Face,
    /// The agent's key alone, for the queue.
    pub(crate) key: Face,
    pub(crate) session: Face,
    pub(crate) loopback: Face,
}

/// What outlives a restart.
pub(crate) struct Papersheet {
    session: Arc<str>,
    key: AgentKey,
    token: Arc<str>,
}

impl Inn {
    /// Starts it on `<dir>/inn`, which may hold an earlier start's data.
    pub(crate) async fn start(binary: &Path, dir: &Path, synchronous_commit: bool) -> anyhow::Result<Self> {
        let (password, ready) = (dir.join("password"), dir.join("ready.json"));
        fs::write(&password, PASSWORD)?;
        let data = dir.join("inn");
        let mut command = inn(binary);
        command.arg("up").arg("--data").arg(&data).args(["--listen", "127.0.0.1:0", "--owner", OWNER, "--no-demo"]);
        command.arg("--password-file").arg(&password).arg("--ready-file").arg(&ready);
        for class in ["AUTH", "DATA", "OPERATIONS", "QUEUE"] {
            command.env(format!("INN_RATE_{class}"), "0");
        }
        command.env("INN_REALTIME_CALLER_CONNECTIONS", "10000");
        command.env("INN_SYNCHRONOUS_COMMIT", synchronous_commit.to_string());
        let mut server = Server::start(command, dir.join("inn.log"))?;
        let found = server.until(async || serde_json::from_slice::<ReadyFile>(&fs::read(&ready).ok()?).ok()).await;
        let facts = found.context("inn up")?;
        if facts.pid != server.pid() {
            bail!("the ready file names process {}, started was {}", facts.pid, server.pid());
        }
        let port = facts.platform.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse().ok());
        let address = ([127, 0, 0, 1], port.context("the platform's address has no port")?).into();
        let processes = Processes { server: facts.pid, database: facts.postgres_pid };
        let client = Client::new(&facts.platform)?.with_retry(RetryPolicy::NEVER);
        Ok(Self { server, client, target: Target { address, processes }, data })
    }

    pub(crate) const fn processes(&self) -> Processes {
        self.target.processes
    }

    /// `on`, unless the database was started otherwise: read off its command line.
    pub(crate) fn fsync(&self) -> anyhow::Result<&'static str> {
        let Some(pid) = self.target.processes.database else { bail!("the ready file names no database process") };
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline"))?;
        Ok(if line.contains("fsync=off") { "off" } else { "on" })
    }

    /// Deploys the app and gives an agent a grant on it.
    pub(crate) async fn furnish(&self, bundle: Vec<u8>) -> anyhow::Result<Papersheet> {
        let signed_in = self.client.sign_in(OWNER, PASSWORD, None).await?;
        let session: Arc<str> = text(&signed_in, "token")?.into();
        let person = self.client.person(&session);
        person.deploy(Bytes::from(bundle), &[("slug", SLUG), ("capabilities", CAPABILITY)]).await?;
        let key = AgentKey::from_seed(rand::random());
        let agent = self.client.agent(key.clone());
        agent.register("Benchmark").await?;
        let scopes: Vec<String> = cards::SCOPES.iter().map(|&scope| scope.to_owned()).collect();
        let request = agent.request_grant(SLUG, &scopes, "to measure").await?.json()?;
        let consent = json!({"password": PASSWORD});
        let grant = person.approve(&text(&request, "id")?, &consent).await?.json()?;
        let token = agent.new_token(&text(&grant, "id")?).await?.token.into();
        Ok(Papersheet { session, key, token })
    }

    /// So many sessions of the owner.
    pub(crate) async fn sessions(&self, count: usize) -> anyhow::Result<Vec<String>> {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            sessions.push(text(&self.client.sign_in(OWNER, PASSWORD, None).await?, "token")?);
        }
        Ok(sessions)
    }

    pub(crate) async fn callers(&mut self, papers: &Papersheet) -> anyhow::Result<Callers> {
        let file = self.data.join("tokens").join(SLUG);
        let token = self.server.until(async || fs::read_to_string(&file).ok().filter(|text| !text.is_empty())).await;
        let token = token.context("the app's agent token file")?;
        let prefix = format!("/apps/{SLUG}");
        let signed = Papers::Agent { key: papers.key.clone(), token: Arc::clone(&papers.token), delegation: None };
        let signed = Face { client: self.client.clone(), prefix, papers: signed, target: self.target };
        Ok(Callers {
            key: signed.with(Papers::Key(papers.key.clone())),
            session: signed.with(Papers::Session(Arc::clone(&papers.session))),
            loopback: signed.with(Papers::Loopback(token.trim().into())),
            signed,
        })
    }

    pub(crate) fn stop(self) -> anyhow::Result<()> {
        self.server.stop()
    }
}

/// The kanban demo with room for more open requests, as the ZIP of a project. Without `indexed` the index that the app
/// declares on its cards is left out, as in the reference measurement: then what counts is what a server does by itself.
/// Answers the schema, too.
pub(crate) fn bundle(kanban: &Path, indexed: bool) -> anyhow::Result<(Vec<u8>, Value)> {
    let mut files = BTreeMap::new();
    collect(kanban, "", &mut files)?;
    edit(&mut files, "manifest.json", |manifest| {
        if let Some(limit) = manifest.pointer_mut("/innkeeper/limits/maxOpenRequests") {
            *limit = MOST_OPEN.into();
        }
    })?;
    let schema = edit(&mut files, "pb/pb_schema.json", |schema| {
        let collections = schema.as_array_mut().into_iter().flatten();
        for collection in collections.filter(|collection| !indexed && collection.get("name") == Some(&json!("cards"))) {
            if let Some(indexes) = collection.get_mut("indexes") {
                *indexes = json!([]);
            }
        }
    })?;
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in files {
        zip.start_file(path, SimpleFileOptions::default())?;
        zip.write_all(&bytes)?;
    }
    Ok((zip.finish()?.into_inner(), schema))
}

type Files = BTreeMap<String, Vec<u8>>;

fn edit(files: &mut Files, path: &str, change: impl FnOnce(&mut Value)) -> anyhow::Result<Value> {
    let bytes = files.get(path).with_context(|| format!("the kanban demo has no {path} (--kanban)"))?;
    let mut value: Value = serde_json::from_slice(bytes).with_context(|| path.to_owned())?;
    change(&mut value);
    files.insert(path.to_owned(), serde_json::to_vec_pretty(&value)?);
    Ok(value)
}

fn collect(dir: &Path, below: &str, files: &mut Files) -> anyhow::Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.insert(path, fs::read(entry.path())?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_limit_and_the_index_of_the_app_are_changed() {
        let kanban = Path::new(env!("CARGO_MANIFEST_DIR")).join("../demo/kanban");
        let (zip, bare) = bundle(&kanban, false).unwrap();
        assert!(zip.starts_with(b"PK"));
        let (_, whole) = bundle(&kanban, true).unwrap();
        let cards = |schema: &Value| {
            schema.as_array().unwrap().iter().find(|collection| collection["name"] == "cards").unwrap().clone()
        };
        assert_eq!(cards(&bare)["indexes"], json!([]));
        assert_ne!(cards(&whole)["indexes"], json!([]));
        assert_eq!(cards(&bare)["fields"], cards(&whole)["fields"]);
    }
}
