//! No endpoint without an authorization case and a register entry. The tables say what each kind of caller gets; whoever
//! adds an endpoint adds its row. There are no exceptions.

mod app_routes;
mod endpoints;

use inn_tests::{Call, Papers, Person, Reply, TestHost, kanban};
use serde_json::{Value, json};

/// In the order of the tables' columns.
const CALLERS: [&str; 6] = ["stranger", "viewer", "editor", "owner", "key", "agent"];

/// What the samples are about. Made anew for every row, so that one row's effects are not another's.
struct Sample {
    papers: Vec<Papers>,
    board: String,
    list: String,
    card: String,
    archived: String,
    /// Pending.
    grant_request: String,
    /// The agent's.
    grant: String,
    /// Claimed by the agent.
    request: String,
    epoch: i64,
    /// In the queue, asked by the owner.
    task: String,
    /// Waits for an agent, started by the owner.
    job: String,
    viewer: String,
    /// The agent's.
    public_key: String,
    release: String,
    /// A call of the owner's that has a receipt.
    receipt: String,
}

struct World {
    host: TestHost,
}

impl World {
    async fn new() -> Self {
        Self { host: TestHost::start().await }
    }

    /// In this tenant, whatever others the person is in by now.
    async fn sign_in(&self, role: &str) -> Person {
        let person = self.host.sign_in(&format!("{role}@acme.example")).await;
        let switch = self.host.door().patch("/v1/session", &json!({"tenant": "acme"})).by(&person).send().await;
        switch.expect(200);
        person
    }

    async fn sample(&self) -> Sample {
        let door = self.host.door();
        let owner = self.sign_in("owner").await;
        self.clear_queue(&owner).await;
        // The row before may have lowered or removed somebody.
        for role in ["viewer", "editor"] {
            let member = json!({"email": format!("{role}@acme.example"), "role": role});
            let set = door.post("/v1/members", &member).by(&owner).send().await;
            assert_eq!(set.status, 200, "{}", set.text());
        }
        let (viewer, editor) = (self.sign_in("viewer").await, self.sign_in("editor").await);
        let (board, list) = kanban::board(door, &owner).await;
        let card = kanban::card(door, &owner, &list, "Sample").await;
        let archived = kanban::card(door, &owner, &list, "Archived").await;
        let archive = json!({"archived": true});
        let receipt =
            door.patch(kanban::record("cards", &archived), &archive).by(&owner).send().await.call_id().to_owned();
        let mut agent = self.host.new_agent().await;
        agent.obtain(&owner, kanban::SLUG, kanban::SCOPES, &inn_tests::Consent::default()).await;
        let asked = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
        kanban::ask(door, &owner, &board).await;
        let claimed = agent.claim().await.expect("a request");
        let task = kanban::ask(door, &owner, &board).await;
        let job = kanban::sum_up(door, &owner, &board).await;
        let app = door.get("/v1/apps/kanban").by(&owner).send().await.expect(200);
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Sample {
            papers: vec![
                Papers::Nobody,
                (&viewer).into(),
                (&editor).into(),
                (&owner).into(),
                agent.key_papers(),
                (&agent).into(),
            ],
            board,
            list,
            card,
            archived,
            grant_request: text(&asked["id"]),
            grant: agent.grant.clone(),
            request: text(&claimed["id"]),
            epoch: claimed["epoch"].as_i64().expect("an epoch"),
            task,
            job,
            viewer: viewer.user,
            public_key: agent.key.public().to_base64url(),
            release: text(&app["release"]),
            receipt,
        }
    }

    /// The app's manifest allows so many open requests and no more.
    async fn clear_queue(&self, owner: &Person) {
        let door = self.host.door();
        for state in ["submitted", "working"] {
            let open = door.get(format!("/v1/requests?app=kanban&state={state}")).by(owner).send().await.expect(200);
            for request in open["items"].as_array().expect("a list") {
                let path = format!("/v1/requests/{}/cancel", kanban::id(request));
                door.post(path, &json!({"app": "kanban"})).by(owner).send().await.expect(200);
            }
        }
    }

    /// Calls as everybody in turn and says what differs from the row.
    async fn compare(
        &self,
        what: &str,
        action: &str,
        sample: &Sample,
        call: impl Fn() -> Call,
        expected: [u16; 6],
    ) -> Vec<String> {
        let mut problems = Vec::new();
        let mut got = [0; 6];
        for (index, papers) in sample.papers.iter().enumerate() {
            let reply = call().by(papers.clone()).send().await;
            got[index] = reply.status;
            if index > 0 && !action.is_empty() {
                problems.extend(self.missing_entry(what, CALLERS[index], action, &reply).await);
            }
        }
        if got != expected {
            problems.push(format!("{what}: {CALLERS:?} got {got:?}, the table says {expected:?}"));
        }
        problems
    }

    async fn missing_entry(&self, what: &str, caller: &str, action: &str, reply: &Reply) -> Option<String> {
        let call = reply.call_id().parse::<inn_protocol::CallId>().expect("a call's id").uuid();
        let found = self
            .host
            .sql()
            .await
            .query("SELECT action, outcome FROM inn.entries WHERE call = $1", &[&call])
            .await
            .unwrap();
        let entries: Vec<(String, String)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
        let outcome =
            if reply.status < 400 { "done".to_owned() } else { format!("refused:{}", reply.json()["code"].as_str()?) };
        let right = matches!(&entries[..], [(found, ended)] if found == action && *ended == outcome);
        (!right).then(|| {
            format!("{what} as {caller} ({}): expected one entry {action} {outcome}, found {entries:?}", reply.status)
        })
    }
}
