//! One PostgreSQL per test process, and in it a template database that every test starts from.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use inn_embedded::EmbeddedPostgres;
use inn_grants::password;
use inn_ports::People as _;
use inn_protocol::people::Tenant;
use inn_protocol::{TenantId, UserId};
use inn_server::keys::{KeyRing, Origin};
use inn_server::{Platform, Role};
use inn_store::{PgStore, StoreConfig};
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use crate::call::Papers;
use crate::host::{PASSWORD, door, settings};
use crate::{bundle, kanban};

const TEMPLATE: &str = "inn_tests";

pub(crate) struct Template {
    postgres: EmbeddedPostgres,
    /// Keys, blobs and token files, as the template's platform left them.
    files: Vec<(PathBuf, Vec<u8>)>,
    databases: AtomicU64,
}

impl Template {
    /// Made at the first call; later ones wait for it. Blocks.
    pub(crate) fn get() -> &'static Self {
        static TEMPLATE: OnceLock<Template> = OnceLock::new();
        TEMPLATE.get_or_init(make)
    }

    /// A fresh database for one test.
    pub(crate) async fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let admin = connect(&self.postgres.url("postgres")).await;
        admin
            .batch_execute(&format!("CREATE DATABASE {name} TEMPLATE {TEMPLATE}"))
            .await
            .expect("a database is cloned");
        self.postgres.url(&name)
    }

    /// Lays the platform's files into a data directory.
    pub(crate) fn furnish(&self, dir: &Path) {
        for (path, bytes) in &self.files {
            let path = dir.join(path);
            let parent = path.parent().expect("a folder");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).expect("a folder");
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).expect("a file");
            file.write_all(bytes).expect("a file is written");
        }
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("the test server answers");
    tokio::spawn(async move {
        // Ends with the test that opened it.
        let _ = connection.await;
    });
    client
}

fn make() -> Template {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
    let postgres = EmbeddedPostgres::temporary().expect("PostgreSQL starts");
    let url = postgres.url(TEMPLATE);
    let dir = tempfile::tempdir().expect("a folder");
    runtime.block_on(async {
        let admin = connect(&postgres.url("postgres")).await;
        admin.batch_execute(&format!("CREATE DATABASE {TEMPLATE}")).await.expect("the template is created");
        inn_store::migrate(&url).await.expect("the template is migrated");
        found(&url, dir.path()).await;
    });
    let platform =
        Platform::start(settings(dir.path(), &url), Role::Serve { migrate: false }).expect("a platform starts");
    runtime.block_on(people_and_app(platform.url()));
    // The app's token file is made by a loop; tests of it start from a template that has it.
    let token_file = dir.path().join("tokens").join(kanban::SLUG);
    runtime.block_on(crate::until("the agent token file", || async { token_file.is_file().then_some(()) }));
    platform.stop().expect("the platform stops");
    let mut files = Vec::new();
    for folder in ["keys", "blobs", "tokens"] {
        collect(dir.path(), &dir.path().join(folder), &mut files);
    }
    Template { postgres, files, databases: AtomicU64::new(0) }
}

/// Tenant and owner, as `inn up` makes them.
pub(crate) async fn found(url: &str, dir: &Path) {
    let keys = Arc::new(KeyRing::open(&dir.join("keys"), Origin::Made).expect("keys are made"));
    let vault = keys.vault();
    let config = StoreConfig::new(url, tokio::runtime::Handle::current(), keys, vault);
    let store = PgStore::connect(config).await.expect("the store connects");
    let tenant = Tenant { id: TenantId::new(), slug: "acme".to_owned(), name: "Acme".to_owned() };
    let hash = password::hash(PASSWORD, rand::random()).expect("a password");
    assert!(store.found(&tenant, UserId::new(), "owner@acme.example", &hash).await.expect("a tenant is founded"));
}

/// Everybody else and the kanban demo, through the front door.
pub(crate) async fn people_and_app(platform: &str) {
    let door = door(platform);
    let sign_in = json!({"email": "owner@acme.example", "password": PASSWORD});
    let session = door.post("/v1/session", &sign_in).send().await.expect(200);
    let owner = Papers::Session(session["token"].as_str().expect("a token").to_owned());
    for role in ["editor", "viewer"] {
        let member = json!({"email": format!("{role}@acme.example"), "role": role, "password": PASSWORD});
        door.post("/v1/members", &member).by(owner.clone()).send().await.expect(200);
    }
    let deploy = format!("/v1/apps?slug={}&capabilities=*", kanban::SLUG);
    let packed = bundle::pack(kanban::files());
    door.post(deploy, &json!(null)).body(packed).by(owner.clone()).send().await.expect(201);
    // A second tenant with an owner of its own, in which nobody of the first is a member.
    door.post("/v1/tenants", &json!({"slug": "rival", "name": "Rival"})).by(owner.clone()).send().await.expect(201);
    door.patch("/v1/session", &json!({"tenant": "rival"})).by(owner.clone()).send().await.expect(200);
    let rival = json!({"email": "owner@rival.example", "role": "owner", "password": PASSWORD});
    door.post("/v1/members", &rival).by(owner.clone()).send().await.expect(200);
    let user = session["session"]["user"].as_str().expect("an id");
    door.delete(format!("/v1/members/{user}")).by(owner).send().await.expect(200);
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below the root").to_owned();
            files.push((name, fs::read(&path).expect("a readable file")));
        }
    }
}
