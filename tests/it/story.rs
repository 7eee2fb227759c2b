//! The main job, end to end over HTTP: on one node, and with calls alternating between two nodes on one database, where
//! each step is asked of the node that has not just heard of the one before.

use std::cell::Cell;

use inn_tests::host::PASSWORD;
use inn_tests::{AgentClient, Call, Door, Papers, TestHost, bundle, kanban, until};
use reqwest::Method;
use serde_json::{Value, json};

/// Every call goes to the next node in turn.
struct Story {
    host: TestHost,
    turn: Cell<usize>,
}

impl Story {
    fn door(&self) -> &Door {
        let doors = self.host.doors();
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        &doors[turn % doors.len()]
    }

    fn call(&self, method: Method, target: &str, body: &Value, by: impl Into<Papers>) -> Call {
        let call = self.door().call(method, target).by(by);
        if body.is_null() { call } else { call.json(body) }
    }

    async fn get(&self, target: &str, by: impl Into<Papers>) -> Value {
        self.call(Method::GET, target, &Value::Null, by).send().await.expect(200)
    }

    async fn post(&self, target: &str, body: &Value, by: impl Into<Papers>, status: u16) -> Value {
        self.call(Method::POST, target, body, by).send().await.expect(status)
    }
}

async fn play(host: TestHost) {
    let story = Story { host, turn: Cell::new(0) };
    let owner = story.host.owner().await;

    // 1. A bundle is packed and deployed.
    let packed = bundle::pack(kanban::files());
    let deploy =
        story.door().call(Method::POST, "/v1/apps?slug=board&capabilities=summarise-board").body(packed).by(&owner);
    let deployed = deploy.send().await.expect(201);
    assert!(deployed["receipt"]["sentence"].is_string(), "{deployed}");
    let records = |entity: &str| format!("/apps/board/api/collections/{entity}/records");

    // 2. An agent makes a key pair and registers. 3. It asks for a grant.
    let mut agent = AgentClient::unknown(story.door());
    let body = json!({"publicKey": agent.key.public().to_base64url(), "name": "Robo"});
    story.post("/v1/agents", &body, agent.key_papers(), 201).await;
    let wanted = json!({"app": "board", "scopes": kanban::SCOPES, "reason": "to keep the board tidy"});
    let request = story.post("/v1/grant-requests", &wanted, agent.key_papers(), 201).await;
    let request = format!("/v1/grant-requests/{}", request["id"].as_str().unwrap());

    // 4. The owner consents to part of it.
    let part = [
        "data:boards:read",
        "data:boards:write",
        "data:lists:write",
        "data:cards:read",
        "data:cards:write",
        "op:cards.archive",
        "queue:summarise-board",
    ];
    let consent = json!({"scopes": part, "password": PASSWORD});
    let grant = story.post(&format!("{request}/approve"), &consent, &owner, 201).await;
    assert_eq!(grant["scopes"].as_array().unwrap().len(), part.len());
    let seen = story.get(&request, agent.key_papers()).await;
    assert_eq!((&seen["status"], &seen["grant"]), (&json!("approved"), &grant["id"]));
    agent.grant = grant["id"].as_str().unwrap().to_owned();

    // 5. The agent takes a token by proof of possession and reads, writes, runs an operation, each call signed.
    let token = story.post("/v1/token", &json!({"grant": agent.grant}), agent.key_papers(), 200).await;
    agent.token = token["token"].as_str().unwrap().to_owned();
    let board = kanban::id(&story.post(&records("boards"), &json!({"name": "House"}), &agent, 200).await);
    let list =
        kanban::id(&story.post(&records("lists"), &json!({"title": "To Do", "board": board}), &agent, 200).await);
    let card =
        kanban::id(&story.post(&records("cards"), &json!({"title": "Eat chicken", "list": list}), &agent, 200).await);
    assert_eq!(story.get(&records("cards"), &agent).await["totalItems"], 1);
    let archived = story.post("/apps/board/api/ops/cards.archive", &json!({"id": card}), &agent, 200).await;
    assert_eq!(archived["archived"], true);
    let not_granted = story.call(Method::GET, &records("lists"), &Value::Null, &agent).send().await;
    not_granted.refused(403, "insufficient_scope");

    // 6. The app's user asks for a summary. 7. The agent claims it, works, and writes the result back.
    let ask = json!({"capability": "summarise-board", "payload": {"board": board}});
    let task = story.post("/apps/board/api/_a2app/tasks", &ask, &owner, 201).await;
    let task = format!("/apps/board/api/_a2app/tasks/{}", kanban::id(&task));
    let claimed = story.post("/v1/requests/claim", &json!({"waitSeconds": 10}), agent.key_papers(), 200).await;
    let claimed = claimed["items"][0].clone();
    let work = format!("/v1/requests/{}", kanban::id(&claimed));
    let step = json!({"epoch": claimed["epoch"], "step": "Reading", "percent": 50});
    story.post(&format!("{work}/progress"), &step, agent.key_papers(), 200).await;
    let result = json!({"epoch": claimed["epoch"], "result": {"summary": "One card, archived."}});
    story.post(&format!("{work}/complete"), &result, agent.key_papers(), 200).await;
    let done = story.get(&task, &owner).await;
    assert_eq!((&done["status"], &done["result"]["summary"]), (&json!("completed"), &json!("One card, archived.")));

    // 8. The owner reads the register.
    let entries = story.get(&format!("/v1/audit?agent={}&limit=100", agent.id), &owner).await;
    let actions: Vec<&str> =
        entries["items"].as_array().unwrap().iter().map(|e| e["facts"]["action"].as_str().unwrap()).collect();
    for action in ["records.create", "records.list", "operations.run", "requests.claim", "requests.complete"] {
        assert!(actions.contains(&action), "{action} is missing in {actions:?}");
    }

    // 9. They revoke the grant while the agent holds another claim.
    story.post("/apps/board/api/_a2app/tasks", &ask, &owner, 201).await;
    let held = story.post("/v1/requests/claim", &json!({"waitSeconds": 10}), agent.key_papers(), 200).await["items"][0]
        .clone();
    let revoke = story.call(Method::DELETE, &format!("/v1/grants/{}", agent.grant), &Value::Null, &owner).send().await;
    assert_eq!(revoke.expect(200)["claimsFenced"], 1);

    // 10. The next call, the held claim and the next token are refused on every node, and the register says so.
    let mut refused = Vec::new();
    for _ in 0..2 {
        let call = story.call(Method::GET, &records("cards"), &Value::Null, &agent).send().await;
        call.refused(401, "token_revoked");
        let write = story.call(Method::POST, &records("boards"), &json!({"name": "x"}), &agent).send().await;
        write.refused(401, "token_revoked");
        let late = json!({"epoch": held["epoch"], "result": {"summary": "late"}});
        let target = format!("/v1/requests/{}/complete", kanban::id(&held));
        let answer = story.call(Method::POST, &target, &late, agent.key_papers()).send().await;
        answer.refused(409, "claim_lost");
        let token =
            story.call(Method::POST, "/v1/token", &json!({"grant": agent.grant}), agent.key_papers()).send().await;
        token.refused(401, "token_revoked");
        refused.extend([answer.call_id().to_owned(), token.call_id().to_owned()]);
    }
    let sql = story.host.sql().await;
    for call in refused {
        let call = call.parse::<inn_protocol::CallId>().unwrap().uuid();
        let row = sql.query_one("SELECT outcome FROM inn.entries WHERE call = $1", &[&call]).await.expect("an entry");
        assert!(row.get::<_, &str>(0).starts_with("refused:"));
    }
    assert_eq!(story.get(&records("boards"), &owner).await["totalItems"], 1);

    // The register holds together, whichever node sealed it.
    until("the sealer", || async {
        let verified = story.get("/v1/audit/verify", &owner).await;
        assert_eq!(verified["problems"], json!([]), "{verified}");
        (verified["entries"] == verified["sealed"] || verified["sealed"].as_i64()? > 20).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_main_job_on_one_node() {
    play(TestHost::start().await).await;
}

#[tokio::test]
async fn the_main_job_with_calls_alternating_between_two_nodes() {
    let mut host = TestHost::start().await;
    host.add_node(|_| {}).await;
    assert_eq!(host.doors().len(), 2);
    play(host).await;
}

#[tokio::test]
async fn a_nonce_counts_once_on_both_nodes() {
    let mut host = TestHost::start().await;
    host.add_node(|_| {}).await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    // One authority for both, as behind one address.
    let [first, second] = host.doors() else { panic!("two nodes") };
    let nonce = Some(inn_tests::call::fresh_nonce());
    let signing = || inn_tests::Signing { nonce: nonce.clone(), ..Default::default() };
    let list = |door: &Door| door.get(kanban::records("boards")).by(&agent).signing(signing());
    list(first).send().await.expect(200);
    list(second).send().await.refused(401, "replayed_nonce");
    let write = |door: &Door| kanban::create(door, "boards", &json!({"name": "x"}), &agent).key("once");
    write(first).send().await.expect(200);
    write(second).send().await.refused(409, "duplicate_request");
}
