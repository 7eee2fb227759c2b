use inn_tests::{Person, Reply, TestHost, kanban};
use serde_json::{Value, json};

const QUEUE: &[&str] = &["queue:summarise-board"];

struct Stage {
    host: TestHost,
    owner: Person,
    board: String,
}

impl Stage {
    async fn start() -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        let (board, _) = kanban::board(host.door(), &owner).await;
        Self { host, owner, board }
    }

    async fn set(&self, limit: Value) -> Reply {
        self.host.door().post("/v1/queue-limits", &limit).by(&self.owner).send().await
    }

    async fn why(&self, request: &str) -> Value {
        let path = format!("/v1/requests/{request}/why?app={}", kanban::SLUG);
        self.host.door().get(path).by(&self.owner).send().await.expect(200)
    }

    async fn ask(&self, more: Value) -> Reply {
        let mut body = json!({"capability": "summarise-board", "payload": {"board": self.board}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = format!("/apps/{}/api/_a2app/tasks", kanban::SLUG);
        self.host.door().post(path, &body).by(&self.owner).send().await
    }
}

fn codes(why: &Value) -> Vec<&str> {
    why["waitsFor"].as_array().unwrap().iter().map(|reason| reason["code"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_cap_holds_from_the_next_second_on_and_is_told_to_who_waits() {
    let it = Stage::start().await;
    let agent = it.host.agent(&it.owner, QUEUE).await;
    let [first, second] = [
        kanban::ask(it.host.door(), &it.owner, &it.board).await,
        kanban::ask(it.host.door(), &it.owner, &it.board).await,
    ];
    let receipt = it.set(json!({"kind": "app", "app": kanban::SLUG, "most": 1})).await.expect(200);
    assert_eq!(receipt["sentence"], "The queue serves app kanban with weight 1, at most 1 at a time");
    assert_eq!(agent.claim().await.unwrap()["id"], first.as_str());
    assert!(agent.claim().await.is_none());
    let why = it.why(&second).await;
    assert_eq!(codes(&why), ["cap", "agent"], "{why}");
    let list = it.host.door().get("/v1/queue-limits").by(&it.owner).send().await.expect(200);
    assert_eq!((&list["items"][0]["appSlug"], &list["items"][0]["most"]), (&json!(kanban::SLUG), &json!(1)));
    // Taken away, it no longer counts.
    it.set(json!({"kind": "app", "app": kanban::SLUG})).await.expect(200);
    assert_eq!(it.host.door().get("/v1/queue-limits").by(&it.owner).send().await.expect(200)["items"], json!([]));
    assert_eq!(agent.claim().await.unwrap()["id"], second.as_str());
    // Zero is a pause.
    it.set(json!({"kind": "person", "subject": it.owner.email, "most": 0})).await.expect(200);
    kanban::ask(it.host.door(), &it.owner, &it.board).await;
    assert!(agent.claim().await.is_none());
}

#[tokio::test]
async fn limits_that_make_no_sense_are_refused_with_every_violation() {
    let it = Stage::start().await;
    for (limit, fields) in [
        (json!({"kind": "nonsense"}), vec!["kind"]),
        (json!({"kind": "app"}), vec!["app"]),
        (json!({"kind": "app", "app": kanban::SLUG, "subject": "x"}), vec!["subject"]),
        (json!({"kind": "capability", "app": kanban::SLUG}), vec!["subject"]),
        (
            json!({"kind": "agent", "subject": "not an id", "weight": 0, "most": 100_001}),
            vec!["subject", "weight", "most"],
        ),
        (
            json!({"kind": "person", "app": kanban::SLUG, "subject": "a\u{0}b", "weight": 101}),
            vec!["app", "subject", "weight"],
        ),
        (json!({"kind": "tenant", "subject": "acme", "most": 3}), vec!["most"]),
    ] {
        let refusal = it.set(limit.clone()).await.refused(400, "invalid_parameter");
        let found: Vec<&str> = refusal["violations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|violation| violation["field"].as_str().unwrap())
            .collect();
        assert_eq!(found, fields, "{limit}");
    }
    it.set(json!({"kind": "app", "app": "nothing"})).await.refused(404, "unknown_app");
    it.set(json!({"kind": "tenant", "subject": "nobody"})).await.refused(404, "not_found");
    let rival = it.host.rival().await;
    let foreign = json!({"kind": "app", "app": kanban::SLUG, "most": 0});
    it.host.door().post("/v1/queue-limits", &foreign).by(&rival).send().await.refused(404, "unknown_app");
    let own = json!({"kind": "tenant", "subject": "acme", "weight": 100});
    it.host.door().post("/v1/queue-limits", &own).by(&rival).send().await.refused(403, "forbidden");
    it.set(json!({"kind": "tenant", "subject": "acme", "weight": 2})).await.expect(200);
}

#[tokio::test]
async fn a_request_says_what_it_waits_for_at_every_step() {
    let it = Stage::start().await;
    let request = kanban::ask(it.host.door(), &it.owner, &it.board).await;
    assert_eq!(codes(&it.why(&request).await), ["no_agent"]);
    let agent = it.host.agent(&it.owner, QUEUE).await;
    assert_eq!(codes(&it.why(&request).await), ["agent"]);
    let editor = it.host.editor().await;
    let of_editor = kanban::ask(it.host.door(), &editor, &it.board).await;
    assert_eq!(codes(&it.why(&of_editor).await), ["no_agent_for_requester", "turns"]);
    let claimed = agent.claim().await.unwrap();
    assert_eq!(codes(&it.why(&request).await), ["acknowledgement"]);
    agent
        .queue(&format!("{request}/fail"), &json!({"epoch": claimed["epoch"], "reason": "broke"}))
        .send()
        .await
        .expect(200);
    assert_eq!(codes(&it.why(&request).await), ["pause", "turns", "agent"]);
}

#[tokio::test]
async fn an_app_asks_once_for_what_it_asked_for_already() {
    let it = Stage::start().await;
    let first = it.ask(json!({"unique": "queued"})).await.expect(201);
    assert_eq!(it.ask(json!({"unique": "queued"})).await.expect(201)["id"], first["id"]);
    assert_ne!(it.ask(json!({"unique": "queued", "uniqueKey": "today"})).await.expect(201)["id"], first["id"]);
    assert_ne!(it.ask(json!({})).await.expect(201)["id"], first["id"]);
    it.ask(json!({"unique": "sometimes"})).await.refused(400, "invalid_body");
    it.ask(json!({"uniqueKey": "x"})).await.refused(400, "invalid_parameter");
    it.ask(json!({"unique": "both", "uniqueKey": ""})).await.refused(400, "invalid_parameter");
    // What somebody else asked for is never joined.
    let editor = it.host.editor().await;
    let body = json!({"capability": "summarise-board", "payload": {"board": it.board}, "unique": "queued"});
    let path = format!("/apps/{}/api/_a2app/tasks", kanban::SLUG);
    let other = it.host.door().post(path, &body).by(&editor).send().await.expect(201);
    assert_ne!(other["id"], first["id"]);
}
