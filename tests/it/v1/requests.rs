use inn_tests::{AgentClient, Consent, TestHost, kanban, until};
use serde_json::{Value, json};

mod operating;

const QUEUE: &[&str] = &["queue:summarise-board"];

/// A host with a board, and one request for a summary of it.
struct Asked {
    host: TestHost,
    owner: inn_tests::Person,
    agent: AgentClient,
    board: String,
    request: String,
}

async fn asked() -> Asked {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, QUEUE).await;
    let (board, _) = kanban::board(host.door(), &owner).await;
    let request = kanban::ask(host.door(), &owner, &board).await;
    Asked { host, owner, agent, board, request }
}

impl Asked {
    async fn task(&self) -> Value {
        let path = format!("/apps/{}/api/_a2app/tasks/{}", kanban::SLUG, self.request);
        self.host.door().get(path).by(&self.owner).send().await.expect(200)
    }

    /// Pretends that every lease ran out a moment ago; the sweeper does the rest.
    async fn let_leases_end(&self) {
        let end =
            "UPDATE inn.requests SET lease_until = clock_timestamp() - interval '1 second' WHERE state = 'working'";
        assert_eq!(self.host.sql().await.execute(end, &[]).await.unwrap(), 1);
    }

    /// Pretends that the pause before the next attempt is over.
    async fn skip_back_off(&self) {
        let skip = "UPDATE inn.requests SET next_at = clock_timestamp(), ready = true WHERE state = 'submitted'";
        self.host.sql().await.execute(skip, &[]).await.unwrap();
    }

    async fn wait_for(&self, status: &str) -> Value {
        until(status, || async { Some(self.task().await).filter(|task| task["status"] == status) }).await
    }
}

fn epoch(claimed: &Value) -> i64 {
    claimed["epoch"].as_i64().unwrap()
}

#[tokio::test]
async fn a_request_is_claimed_worked_on_and_answered() {
    let it = asked().await;
    let claimed = it.agent.claim().await.expect("the request");
    assert_eq!((&claimed["id"], &claimed["state"]), (&json!(it.request), &json!("working")));
    assert_eq!(claimed["payload"], json!({"board": it.board}));
    assert_eq!(claimed["requesterLabel"], it.owner.email.as_str());
    assert!(it.agent.claim().await.is_none(), "it is held by one agent at a time");

    let path = |verb: &str| format!("{}/{verb}", it.request);
    let epoch = epoch(&claimed);
    it.agent.queue(&path("heartbeat"), &json!({"epoch": epoch})).send().await.expect(200);
    let step = json!({"epoch": epoch, "step": "Reading cards", "percent": 40});
    it.agent.queue(&path("progress"), &step).send().await.expect(200);
    let task = it.task().await;
    assert_eq!(
        (&task["status"], &task["progress"]),
        (&json!("working"), &json!({"step": "Reading cards", "percent": 40}))
    );
    assert_eq!(task["claim"]["credentialId"], it.agent.id.as_str());

    let result = json!({"epoch": epoch, "result": {"summary": "All is well."}});
    it.agent.queue(&path("complete"), &result).send().await.expect(200);
    let task = it.task().await;
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!({"summary": "All is well."})));
    // What has ended stays as it ended.
    it.agent
        .queue(&path("fail"), &json!({"epoch": epoch, "reason": "changed my mind"}))
        .send()
        .await
        .refused(409, "claim_lost");
    let path = format!("/v1/requests/{}/cancel", it.request);
    let reply = it.host.door().post(path, &json!({"app": kanban::SLUG})).by(&it.owner).send().await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    assert_eq!(it.task().await["status"], "completed");
}

#[tokio::test]
async fn a_result_that_does_not_fit_the_schema_is_refused_and_the_claim_stays() {
    let it = asked().await;
    let claimed = it.agent.claim().await.unwrap();
    let complete = |result: Value| {
        let body = json!({"epoch": epoch(&claimed), "result": result});
        it.agent.queue(&format!("{}/complete", it.request), &body)
    };
    for result in [
        json!(null),
        json!("text"),
        json!({}),
        json!({"summary": 1}),
        json!({"summary": "x", "more": 1}),
        json!({"summary": ""}),
    ] {
        let refusal = complete(result).send().await.refused(400, "invalid_result");
        assert!(!refusal["violations"].as_array().unwrap().is_empty(), "{refusal}");
    }
    assert_eq!(it.task().await["status"], "working");
    complete(json!({"summary": "Fits."})).send().await.expect(200);
}

#[tokio::test]
async fn a_lease_that_ends_gives_the_request_back_and_fences_the_late_answer() {
    let it = asked().await;
    let first = it.agent.claim().await.unwrap();
    it.let_leases_end().await;
    it.wait_for("submitted").await;
    it.skip_back_off().await;
    let second = it.agent.claim().await.expect("the request again");
    assert!(epoch(&second) > epoch(&first));
    assert_eq!(second["attempt"], 2);
    for verb in ["heartbeat", "progress", "complete", "fail", "release"] {
        let body = match verb {
            "progress" => json!({"epoch": epoch(&first), "step": "late", "percent": 1}),
            "complete" => json!({"epoch": epoch(&first), "result": {"summary": "late"}}),
            "heartbeat" => json!({"epoch": epoch(&first)}),
            _ => json!({"epoch": epoch(&first), "reason": "late"}),
        };
        it.agent.queue(&format!("{}/{verb}", it.request), &body).send().await.refused(409, "claim_lost");
    }
    let body = json!({"epoch": epoch(&second), "result": {"summary": "in time"}});
    it.agent.queue(&format!("{}/complete", it.request), &body).send().await.expect(200);
    assert_eq!(it.task().await["result"]["summary"], "in time");
}

#[tokio::test]
async fn attempts_are_counted_and_the_last_one_ends_it_with_a_reason() {
    let it = asked().await;
    for attempt in 1..=3 {
        let claimed = it.agent.claim().await.expect("an attempt");
        assert_eq!((&claimed["attempt"], &claimed["attempts"]), (&json!(attempt), &json!(3)));
        let body = json!({"epoch": epoch(&claimed), "reason": format!("broke {attempt}")});
        it.agent.queue(&format!("{}/fail", it.request), &body).send().await.expect(200);
        assert!(it.agent.claim().await.is_none(), "a pause comes before the next attempt");
        it.skip_back_off().await;
    }
    assert!(it.agent.claim().await.is_none());
    let task = it.task().await;
    assert_eq!(task["status"], "failed");
    assert!(task["reason"].as_str().unwrap().contains("broke 3"), "{task}");
}

#[tokio::test]
async fn leases_that_keep_ending_end_it_too() {
    let it = asked().await;
    for attempt in 1..=3 {
        assert!(it.agent.claim().await.is_some(), "attempt {attempt}");
        it.let_leases_end().await;
        it.wait_for(if attempt < 3 { "submitted" } else { "failed" }).await;
        it.skip_back_off().await;
    }
    let task = it.task().await;
    assert!(task["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{task}");
    assert!(it.agent.claim().await.is_none());
}

#[tokio::test]
async fn a_release_gives_it_back_without_counting() {
    let it = asked().await;
    for _ in 0..4 {
        let claimed = it.agent.claim().await.expect("not used up by releases");
        assert_eq!(claimed["attempt"], 1);
        let body = json!({"epoch": epoch(&claimed), "reason": "busy"});
        it.agent.queue(&format!("{}/release", it.request), &body).send().await.expect(200);
    }
}

#[tokio::test]
async fn a_canceled_request_fences_its_holder() {
    let it = asked().await;
    let claimed = it.agent.claim().await.unwrap();
    let path = format!("/v1/requests/{}/cancel", it.request);
    let body = json!({"app": kanban::SLUG, "reason": "not needed"});
    let canceled = it.host.door().post(&path, &body).by(&it.owner).send().await.expect(200);
    assert_eq!((&canceled["state"], &canceled["reason"]), (&json!("canceled"), &json!("not needed")));
    let late = json!({"epoch": epoch(&claimed), "result": {"summary": "late"}});
    it.agent.queue(&format!("{}/complete", it.request), &late).send().await.refused(409, "claim_lost");
    assert_eq!(it.task().await["result"], Value::Null);
}

#[tokio::test]
async fn only_the_holder_touches_a_claim() {
    let it = asked().await;
    let other = it.host.agent(&it.owner, QUEUE).await;
    let claimed = it.agent.claim().await.unwrap();
    let body = json!({"epoch": epoch(&claimed), "result": {"summary": "not mine"}});
    // To an agent that never held it, it does not exist.
    other.queue(&format!("{}/complete", it.request), &body).send().await.refused(404, "not_found");
    let door = it.host.door();
    door.post(format!("/v1/requests/{}/complete", it.request), &body)
        .by(&it.owner)
        .send()
        .await
        .refused(403, "forbidden");
    door.post(format!("/v1/requests/{}/complete", it.request), &body).send().await.refused(401, "signature_required");
    let nothing = "req_00000000000000000000000000000000";
    let reply = it.agent.queue(&format!("{nothing}/complete"), &body).send().await;
    reply.refused(404, "not_found");
    it.agent.queue("nonsense/complete", &body).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn an_agent_gets_its_persons_requests_and_others_only_by_consent() {
    let it = asked().await;
    let editor = it.host.editor().await;
    let door = it.host.door();
    let of_editor = kanban::ask(door, &editor, &it.board).await;
    assert_eq!(it.agent.claim().await.unwrap()["id"], it.request.as_str());
    assert!(it.agent.claim().await.is_none(), "the editor's request is not for the owner's agent");
    let mut wider = it.host.new_agent().await;
    let consent = Consent { others_requests: true, ..Consent::default() };
    wider.obtain(&it.owner, kanban::SLUG, QUEUE, &consent).await;
    assert_eq!(wider.claim().await.unwrap()["id"], of_editor.as_str());
}

#[tokio::test]
async fn a_claim_takes_what_it_asks_for_and_no_more() {
    let it = asked().await;
    for _ in 0..4 {
        kanban::ask(it.host.door(), &it.owner, &it.board).await;
    }
    let claim = |body: Value| it.agent.queue("claim", &body);
    let none = claim(json!({"apps": ["nothing"]})).send().await.expect(200);
    assert_eq!(none["items"], json!([]));
    let none = claim(json!({"capabilities": ["dig-a-hole"]})).send().await.expect(200);
    assert_eq!(none["items"], json!([]));
    let two =
        claim(json!({"apps": [kanban::SLUG], "capabilities": ["summarise-board"], "max": 2})).send().await.expect(200);
    assert_eq!(two["items"].as_array().unwrap().len(), 2);
    let rest = claim(json!({"max": 1000})).send().await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 3);
    // Oldest first.
    assert_eq!(two["items"][0]["id"], it.request.as_str());
}

#[tokio::test]
async fn a_waiting_claim_is_woken_by_what_is_asked() {
    let it = asked().await;
    it.agent.claim().await.unwrap();
    let waiting = it.agent.queue("claim", &json!({"waitSeconds": 25}));
    let waiting = tokio::spawn(waiting.send());
    let asked = kanban::ask(it.host.door(), &it.owner, &it.board).await;
    let answer = waiting.await.unwrap().expect(200);
    assert_eq!(answer["items"][0]["id"], asked.as_str());
}

#[tokio::test]
async fn members_see_the_queue_of_their_app() {
    let it = asked().await;
    let door = it.host.door();
    let list = |query: &str| door.get(format!("/v1/requests?app={}{query}", kanban::SLUG));
    let all = list("").by(&it.owner).send().await.expect(200);
    assert_eq!(all["items"][0]["id"], it.request.as_str());
    assert_eq!(list("&state=submitted").by(&it.owner).send().await.expect(200)["items"].as_array().unwrap().len(), 1);
    assert_eq!(list("&state=completed").by(&it.owner).send().await.expect(200)["items"], json!([]));
    list("&state=lost").by(&it.owner).send().await.refused(400, "invalid_parameter");
    let view = format!("/v1/requests/{}?app={}", it.request, kanban::SLUG);
    assert_eq!(door.get(&view).by(&it.owner).send().await.expect(200)["state"], "submitted");
    door.get(&view).by(&it.host.editor().await).send().await.expect(200);
    // A viewer sees what they asked for themselves.
    let viewer = it.host.viewer().await;
    assert_eq!(list("").by(&viewer).send().await.expect(200)["items"], json!([]));
    door.get(&view).by(&viewer).send().await.refused(404, "not_found");
    let rival = it.host.rival().await;
    assert_eq!(list("").by(&rival).send().await.status, 404);
    assert_eq!(door.get(&view).by(&rival).send().await.status, 404);
    assert_eq!(list("").send().await.status, 401);
    door.get("/v1/requests").by(&it.owner).send().await.refused(404, "unknown_app");
}

#[tokio::test]
async fn bodies_that_do_not_fit_change_nothing() {
    let it = asked().await;
    let claimed = it.agent.claim().await.unwrap();
    let epoch = epoch(&claimed);
    for (verb, body) in [
        ("heartbeat", json!({})),
        ("heartbeat", json!({"epoch": "1"})),
        ("progress", json!({"epoch": epoch, "step": "x", "percent": 300})),
        ("progress", json!({"epoch": epoch, "step": 1, "percent": 3})),
        ("complete", json!({"epoch": epoch})),
        ("complete", json!({"epoch": epoch, "result": {"summary": "x"}, "extra": 1})),
        ("fail", json!({"reason": "x"})),
    ] {
        let reply = it.agent.queue(&format!("{}/{verb}", it.request), &body).send().await;
        assert_eq!(reply.status, 400, "{verb} {body}: {}", reply.text());
    }
    let over = json!({"epoch": epoch, "step": "x", "percent": 101});
    it.agent.queue(&format!("{}/progress", it.request), &over).send().await.refused(400, "invalid_parameter");
    assert_eq!(it.task().await["status"], "working");
}

#[tokio::test]
async fn many_results_are_given_at_once_and_each_stands_for_itself() {
    let it = asked().await;
    for _ in 0..3 {
        kanban::ask(it.host.door(), &it.owner, &it.board).await;
    }
    let claimed = it.agent.queue("claim", &json!({"max": 4})).send().await.expect(200);
    let claimed = claimed["items"].as_array().unwrap().clone();
    let item =
        |n: usize, result: Value| json!({"id": claimed[n]["id"], "epoch": claimed[n]["epoch"], "result": result});
    let good = json!({"summary": "Done."});
    let mut old = item(2, good.clone());
    old["epoch"] = json!(0);
    let items = json!([item(0, good.clone()), item(1, json!({"summary": 7})), old, item(3, good.clone()), item(0, good.clone()),
        {"id": "req_00000000000000000000000000000000", "epoch": 1, "result": good}]);
    let complete = |items: &Value| it.agent.queue("complete", &json!({"items": items}));
    let answer = complete(&items).send().await.expect(200);
    let codes: Vec<&str> = answer["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["refusal"]["code"].as_str().or_else(|| item["state"].as_str()).unwrap())
        .collect();
    assert_eq!(codes, ["completed", "invalid_result", "claim_lost", "completed", "invalid_parameter", "not_found"]);
    assert_eq!(it.task().await["result"], json!({"summary": "Done."}));
    // What was stored stays; a call in which nothing can be stored is refused.
    complete(&json!([item(0, good.clone())])).send().await.refused(409, "claim_lost");
    complete(&json!([item(1, json!({"summary": 7}))])).send().await.refused(400, "invalid_result");
    complete(&json!([])).send().await.refused(400, "invalid_parameter");
    complete(&json!([{"id": "x", "epoch": 1, "result": 1}])).send().await.refused(400, "invalid_parameter");
    let too_many = Value::Array(vec![item(1, good.clone()); 101]);
    complete(&too_many).send().await.refused(400, "invalid_parameter");
    complete(&json!([item(1, good)])).send().await.expect(200);
    // Another agent's results are none of its business.
    let other = it.host.agent(&it.owner, QUEUE).await;
    let foreign = json!({"items": [item(2, json!({"summary": "x"}))]});
    other.queue("complete", &foreign).send().await.refused(404, "not_found");
    // A revocation in between counts for all of them.
    it.host.door().delete(format!("/v1/grants/{}", it.agent.grant)).by(&it.owner).send().await.expect(200);
    complete(&json!([item(2, json!({"summary": "late"}))])).send().await.refused(409, "claim_lost");
}
