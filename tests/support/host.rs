//! A platform of one test's own.

use std::path::Path;
use std::time::Duration;

use inn_embedded::EmbeddedPostgres;
use inn_server::{Platform, Role, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_postgres::Client;

use crate::agent::{AgentClient, Consent};
use crate::call::{Door, Papers};
use crate::template::{Template, connect, found, people_and_app};
use crate::{bundle, kanban};

/// Of everybody in the template.
pub const PASSWORD: &str = "correct horse battery staple";

/// One platform on a private database. Several nodes of it may run. Dropped, everything ends.
pub struct TestHost {
    nodes: Vec<Platform>,
    doors: Vec<Door>,
    database: String,
    dir: TempDir,
}

/// A signed-in person.
#[derive(Clone)]
pub struct Person {
    pub door: Door,
    pub token: String,
    pub user: String,
    pub email: String,
}

impl From<&Person> for Papers {
    fn from(person: &Person) -> Self {
        Self::Session(person.token.clone())
    }
}

impl TestHost {
    /// One node with the settings of a test: loopback, no rate limits.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// One node with some settings changed.
    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let template = tokio::task::spawn_blocking(Template::get).await.expect("the template is made");
        let database = template.database().await;
        Self::on(database, change).await
    }

    /// One node on a database of the test's choice (behind a proxy that can be cut, say), prepared like every other.
    pub async fn on(database: String, change: impl FnOnce(&mut Settings)) -> Self {
        let template = tokio::task::spawn_blocking(Template::get).await.expect("the template is made");
        let dir = tempfile::tempdir().expect("a folder");
        template.furnish(dir.path());
        let mut host = Self { nodes: Vec::new(), doors: Vec::new(), database, dir };
        host.add_node(change).await;
        host
    }

    /// One node on a PostgreSQL of the test's own, which may be killed. Made from nothing, so it takes a while.
    pub async fn on_server(server: &EmbeddedPostgres, change: impl FnOnce(&mut Settings)) -> Self {
        let database = server.url("inn_faults");
        let admin = connect(&server.url("postgres")).await;
        admin.batch_execute("CREATE DATABASE inn_faults").await.expect("a database");
        inn_store::migrate(&database).await.expect("a migrated database");
        let dir = tempfile::tempdir().expect("a folder");
        found(&database, dir.path()).await;
        let mut host = Self { nodes: Vec::new(), doors: Vec::new(), database, dir };
        host.add_node(change).await;
        people_and_app(host.url()).await;
        host
    }

    /// Another node on the same database and the same keys.
    pub async fn add_node(&mut self, change: impl FnOnce(&mut Settings)) {
        let mut settings = settings(self.dir.path(), &self.database);
        change(&mut settings);
        let listen = settings.http.listen;
        let public = settings.http.public_url.clone();
        let start = move || Platform::start(settings, Role::Serve { migrate: false });
        let platform = tokio::task::spawn_blocking(start).await.expect("no panic").expect("the platform starts");
        let door = match public.as_ref().and_then(url::Url::host_str) {
            // Reached by its socket, addressed by its public name.
            Some(public) => door_at(format!("http://{listen}"), public.to_owned(), format!("apps.{public}")),
            None => door(platform.url()),
        };
        self.nodes.push(platform);
        self.doors.push(door);
    }

    /// Why another node on the same database does not start.
    pub async fn refused_node(&self, change: impl FnOnce(&mut Settings)) -> String {
        let mut settings = settings(self.dir.path(), &self.database);
        change(&mut settings);
        let start = move || Platform::start(settings, Role::Serve { migrate: false }).err();
        let refused = tokio::task::spawn_blocking(start).await.expect("no panic");
        format!("{:#}", refused.expect("it does not start"))
    }

    /// The first node.
    pub fn door(&self) -> &Door {
        &self.doors[0]
    }

    pub fn doors(&self) -> &[Door] {
        &self.doors
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub fn url(&self) -> &str {
        self.nodes[0].url()
    }

    /// A connection past everything, for looking at rows and for breaking what no code of ours may break.
    pub async fn sql(&self) -> Client {
        connect(&self.database).await
    }

    /// How many rows a query finds.
    pub async fn count(&self, query: &str) -> i64 {
        self.sql().await.query_one(query, &[]).await.expect("a count").get(0)
    }

    /// Name of an app's own database schema.
    pub async fn app_schema(&self, slug: &str) -> String {
        let name = "SELECT 'app_' || replace(id::text, '-', '') FROM inn.apps WHERE slug = $1";
        self.sql().await.query_one(name, &[&slug]).await.expect("an app").get(0)
    }

    pub async fn owner(&self) -> Person {
        self.sign_in("owner@acme.example").await
    }

    pub async fn editor(&self) -> Person {
        self.sign_in("editor@acme.example").await
    }

    pub async fn viewer(&self) -> Person {
        self.sign_in("viewer@acme.example").await
    }

    /// Owner of the other tenant.
    pub async fn rival(&self) -> Person {
        self.sign_in("owner@rival.example").await
    }

    pub async fn sign_in(&self, email: &str) -> Person {
        let body = json!({"email": email, "password": PASSWORD});
        let answer = self.door().post("/v1/session", &body).send().await.expect(200);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Person {
            door: self.door().clone(),
            token: text(&answer["token"]),
            user: text(&answer["session"]["user"]),
            email: email.to_owned(),
        }
    }

    /// A registered agent without any grant.
    pub async fn new_agent(&self) -> AgentClient {
        AgentClient::register(self.door()).await
    }

    /// A registered agent with a granted token for the kanban app.
    pub async fn agent(&self, person: &Person, scopes: &[&str]) -> AgentClient {
        let mut agent = self.new_agent().await;
        agent.obtain(person, kanban::SLUG, scopes, &Consent::default()).await;
        agent
    }

    /// Token of the app's agent token file.
    pub fn loopback_token(&self, slug: &str) -> String {
        let path = self.dir.path().join("tokens").join(slug);
        std::fs::read_to_string(path).expect("a token file").trim().to_owned()
    }

    /// Deploys files as a bundle; expects it to be new.
    pub async fn deploy(&self, owner: &Person, slug: &str, files: bundle::Files) -> Value {
        let packed = bundle::pack(files);
        let call = self.door().call(reqwest::Method::POST, format!("/v1/apps?slug={slug}&capabilities=*"));
        call.header("content-type", "application/octet-stream").body(packed).by(owner).send().await.expect(201)
    }
}

/// What every test's platform starts with.
pub(crate) fn settings(dir: &Path, database: &str) -> Settings {
    let mut settings = Settings::default();
    dir.clone_into(&mut settings.data.dir);
    settings.http.listen = ([127, 0, 0, 1], 0).into();
    settings.http.workers = 1;
    settings.http.io_threads = 1;
    // Connections that tests leave open must not keep a platform alive.
    settings.http.shutdown = Duration::ZERO;
    settings.rates.auth = 0;
    settings.rates.data = 0;
    settings.rates.operations = 0;
    settings.rates.queue = 0;
    settings.limits.app_threads = 1;
    settings.database.url = Some(database.to_owned());
    settings.database.pool_size = 8;
    settings
}

/// The door of a platform on loopback.
pub(crate) fn door(url: &str) -> Door {
    let authority = url.strip_prefix("http://").expect("http on loopback").to_owned();
    let (_, port) = authority.rsplit_once(':').expect("a port");
    door_at(format!("http://127.0.0.1:{port}"), authority.clone(), authority)
}

fn door_at(socket: String, authority: String, apps_domain: String) -> Door {
    let http = reqwest::Client::builder()
        .tls_certs_only([])
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_mins(1))
        .build()
        .expect("a client");
    Door { http, socket, authority, apps_domain }
}

/// A port nobody listens on just now, for hosts whose public name does not tell it.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
