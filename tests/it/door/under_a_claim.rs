//! Writes made under a claim (`innkeeper-claim`): once for the request, whoever works on it, and never under a lost one.

use inn_tests::{AgentClient, Consent, Person, Reply, TestHost, kanban};
use serde_json::{Value, json};

const SCOPES: &[&str] = &["queue:summarise-board", "data:cards:read", "data:cards:write", "op:cards.add"];

struct Work {
    host: TestHost,
    owner: Person,
    agents: [AgentClient; 2],
    list: String,
    request: String,
}

impl Work {
    async fn start() -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        let (board, list) = kanban::board(host.door(), &owner).await;
        let agents = [host.agent(&owner, SCOPES).await, host.agent(&owner, SCOPES).await];
        let request = kanban::ask(host.door(), &owner, &board).await;
        Self { host, owner, agents, list, request }
    }

    /// The claim's header.
    async fn claim(&self, agent: &AgentClient) -> String {
        let claimed = agent.claim().await.expect("the request");
        let epoch = json!({"epoch": claimed["epoch"]});
        agent.queue(&format!("{}/heartbeat", self.request), &epoch).send().await.expect(200);
        format!("{};{}", self.request, claimed["epoch"])
    }

    /// The other agent gets it.
    async fn take_back(&self) {
        let path = format!("/v1/requests/{}/take-back", self.request);
        self.host.door().post(path, &json!({"app": kanban::SLUG})).by(&self.owner).send().await.expect(200);
    }

    async fn write(&self, agent: &AgentClient, claim: &str, key: Option<&str>, title: &str) -> Reply {
        let path = format!("/apps/{}/api/collections/cards/records", kanban::SLUG);
        let body = json!({"title": title, "list": self.list});
        let mut call = self.host.door().post(path, &body).by(agent).header("innkeeper-claim", claim);
        if let Some(key) = key {
            call = call.header("idempotency-key", key);
        }
        call.send().await
    }

    async fn cards(&self) -> i64 {
        let path = format!("/apps/{}/api/collections/cards/records", kanban::SLUG);
        self.host.door().get(path).by(&self.owner).send().await.expect(200)["totalItems"].as_i64().unwrap()
    }
}

#[tokio::test]
async fn a_second_worker_that_repeats_a_step_gets_the_first_ones_record() {
    let it = Work::start().await;
    let before = it.cards().await;
    let [first, second] = &it.agents;
    let claim = it.claim(first).await;
    let written = it.write(first, &claim, Some("summary"), "The first words").await;
    let receipt = written.headers["innkeeper-receipt"].clone();
    let written = written.expect(200);
    it.take_back().await;
    let claim = it.claim(second).await;
    // Other words under the same key: the step was done.
    let again = it.write(second, &claim, Some("summary"), "Other words").await;
    assert_eq!(again.headers["innkeeper-receipt"], receipt, "the receipt is the first one's");
    let again = again.expect(200);
    assert_eq!((&again["id"], &again["title"]), (&written["id"], &json!("The first words")));
    assert_eq!(it.cards().await, before + 1);
    // Without a key, equal bodies are one write and others are not.
    let plain = it.write(second, &claim, None, "A second card").await.expect(200);
    assert_eq!(it.write(second, &claim, None, "A second card").await.expect(200)["id"], plain["id"]);
    it.write(second, &claim, None, "A third card").await.expect(200);
    assert_eq!(it.cards().await, before + 3);
    // The scope is the request: without the claim the key is another one.
    let path = format!("/apps/{}/api/collections/cards/records", kanban::SLUG);
    let body = json!({"title": "Without a claim", "list": it.list});
    let free = it.host.door().post(path, &body).by(second).header("idempotency-key", "summary").send().await;
    assert_ne!(free.expect(200)["id"], written["id"]);
}

#[tokio::test]
async fn a_write_under_a_lost_claim_is_refused_and_leaves_nothing() {
    let it = Work::start().await;
    let before = it.cards().await;
    let [first, second] = &it.agents;
    let claim = it.claim(first).await;
    it.take_back().await;
    let lost = it.write(first, &claim, None, "too late").await.refused(409, "claim_lost");
    assert_eq!(lost["lost"]["state"], "submitted", "{lost}");
    let newer = it.claim(second).await;
    let lost = it.write(first, &claim, None, "too late").await.refused(409, "claim_lost");
    assert_eq!(lost["lost"]["state"], "working", "{lost}");
    // Another agent's claim, and one that never was.
    let foreign = it.write(first, &newer, None, "not mine").await.refused(409, "claim_lost");
    assert_ne!(newer, claim, "{foreign}");
    let nothing = "req_00000000000000000000000000000000;1";
    let refused = it.write(first, nothing, None, "nothing").await.refused(409, "claim_lost");
    assert_eq!(refused["lost"], Value::Null, "who never held it learns nothing of it");
    // What has ended is not held any more.
    let done = json!({"epoch": newer.split(';').nth(1).unwrap().parse::<i64>().unwrap(), "result": {"summary": "x"}});
    it.write(second, &newer, None, "in time").await.expect(200);
    second.queue(&format!("{}/complete", it.request), &done).send().await.expect(200);
    let lost = it.write(second, &newer, None, "after the end").await.refused(409, "claim_lost");
    assert_eq!(lost["lost"]["state"], "completed");
    assert_eq!(it.cards().await, before + 1);
}

#[tokio::test]
async fn operations_and_batches_are_fenced_too() {
    let it = Work::start().await;
    let [first, _] = &it.agents;
    let claim = it.claim(first).await;
    let door = it.host.door();
    let app = |path: &str| format!("/apps/{}{path}", kanban::SLUG);
    let card = json!({"title": "By operation", "list": it.list});
    let run = || door.post(app("/api/ops/cards.add"), &card).by(first).header("innkeeper-claim", &claim);
    let added = run().send().await.expect(200);
    assert_eq!(run().send().await.expect(200)["id"], added["id"]);
    let batch = json!({"requests": [{"method": "POST", "url": "/api/collections/cards/records", "body": card}]});
    let all = || door.post(app("/api/batch"), &batch).by(first).header("innkeeper-claim", &claim);
    all().send().await.expect(200);
    all().send().await.refused(409, "duplicate_request");
    it.take_back().await;
    let late = json!({"title": "Late", "list": it.list});
    let run = door.post(app("/api/ops/cards.add"), &late).by(first).header("innkeeper-claim", &claim);
    run.send().await.refused(409, "claim_lost");
    let batch = json!({"requests": [{"method": "POST", "url": "/api/collections/cards/records", "body": late}]});
    let all = door.post(app("/api/batch"), &batch).by(first).header("innkeeper-claim", &claim);
    all.send().await.refused(409, "claim_lost");
}

#[tokio::test]
async fn a_claim_counts_only_under_a_signature_that_covers_it() {
    let it = Work::start().await;
    let [first, _] = &it.agents;
    let claim = it.claim(first).await;
    let path = format!("/apps/{}/api/collections/cards/records", kanban::SLUG);
    let body = json!({"title": "x", "list": it.list});
    let call = || it.host.door().post(&path, &body);
    call().by(first).late_header("innkeeper-claim", claim.clone()).send().await.refused(401, "invalid_signature");
    call().by(&it.owner).header("innkeeper-claim", &claim).send().await.refused(401, "signature_required");
    for nonsense in [
        "",
        "x",
        "req_1;1",
        &it.request,
        &format!("{};", it.request),
        &format!("{};-1", it.request),
        &format!("{};1;2", it.request),
    ] {
        let refusal =
            call().by(first).header("innkeeper-claim", nonsense).send().await.refused(400, "invalid_parameter");
        assert_eq!(refusal["violations"][0]["field"], "innkeeper-claim");
    }
    // A read needs no claim, and is none's business.
    it.host.door().get(&path).by(first).header("innkeeper-claim", &claim).send().await.expect(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_equal_writes_at_once_one_is_made() {
    let it = std::sync::Arc::new(Work::start().await);
    let before = it.cards().await;
    let claim = it.claim(&it.agents[0]).await;
    let writers: Vec<_> = (0..20)
        .map(|n| {
            let (it, claim) = (std::sync::Arc::clone(&it), claim.clone());
            tokio::spawn(async move { it.write(&it.agents[0], &claim, Some("step"), &format!("words {n}")).await })
        })
        .collect();
    for writer in writers {
        let reply = writer.await.unwrap();
        assert!(reply.status == 200 || reply.json()["code"] == "in_progress", "{}", reply.text());
    }
    assert_eq!(it.cards().await, before + 1);
}

#[tokio::test]
async fn who_may_only_write_is_told_of_the_duplicate_without_the_record() {
    let it = Work::start().await;
    let mut writer = it.host.new_agent().await;
    writer.obtain(&it.owner, kanban::SLUG, &["queue:summarise-board", "data:cards:write"], &Consent::default()).await;
    let claim = it.claim(&writer).await;
    let first = it.write(&writer, &claim, Some("step"), "x").await.expect(200);
    let refusal = it.write(&writer, &claim, Some("step"), "x").await.refused(409, "duplicate_request");
    assert_eq!(refusal["id"], first["id"]);
}
