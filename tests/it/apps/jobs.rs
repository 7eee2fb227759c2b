use inn_tests::{AgentClient, Consent, Person, TestHost, kanban, until};
use serde_json::{Value, json};

fn jobs(path: &str) -> String {
    format!("/apps/kanban/api/_jobs/{path}")
}

struct Started {
    host: TestHost,
    owner: Person,
    agent: AgentClient,
    board: String,
    job: String,
}

async fn started() -> Started {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let (board, _) = kanban::board(host.door(), &owner).await;
    let job = kanban::sum_up(host.door(), &owner, &board).await;
    Started { host, owner, agent, board, job }
}

impl Started {
    async fn view(&self) -> Value {
        self.host.door().get(jobs(&self.job)).by(&self.owner).send().await.expect(200)
    }

    /// Everything a stream of the job says from this number on, up to its end.
    async fn stream(&self, last: &str) -> String {
        let call = self.host.door().get(jobs(&self.job)).header("accept", "text/event-stream");
        let call = if last.is_empty() { call } else { call.header("last-event-id", last) };
        let answer = call.by(&self.owner).open().await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        answer.text().await.unwrap()
    }
}

#[tokio::test]
async fn an_operation_of_an_agent_answers_with_a_job_at_once_and_the_job_tells_how_it_goes() {
    let it = started().await;
    let first = it.view().await;
    let members: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    let all = ["jobId", "operation", "status", "progress", "result", "error", "createdAt", "updatedAt", "pollAfterMs"];
    assert_eq!(members, all);
    assert_eq!((&first["status"], &first["operation"]), (&json!("queued"), &json!("board.sum-up")));

    let claimed = it.agent.claim().await.expect("the request behind the job");
    assert_eq!(claimed["payload"], json!({"board": it.board}), "the params are the payload");
    assert_eq!(it.view().await["status"], "running");
    let (id, epoch) = (kanban::id(&claimed), &claimed["epoch"]);
    let say = |verb: &str, body: Value| it.agent.queue(&format!("{id}/{verb}"), &body);
    say("progress", json!({"epoch": epoch, "step": "reading", "percent": 40})).send().await.expect(200);
    assert_eq!(it.view().await["progress"], json!({"step": "reading", "percent": 40}));
    say("ask", json!({"epoch": epoch, "question": "Which cards?"})).send().await.expect(200);
    assert_eq!(it.view().await["status"], "running", "to its caller a job that waits for an answer still runs");
    say("complete", json!({"epoch": epoch, "result": {"summary": "All is well."}})).send().await.expect(200);
    let done = it.view().await;
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &json!({"summary": "All is well."})));
    assert_eq!(it.host.count("SELECT count(*) FROM inn.jobs").await, 1);
}

#[tokio::test]
async fn the_answer_names_the_job_its_place_and_its_receipt() {
    let it = started().await;
    let run = |params: Value| it.host.door().post("/apps/kanban/api/ops/board.sum-up", &params);
    let answer = run(json!({"board": it.board})).by(&it.owner).send().await;
    let body = answer.expect(202);
    let place = answer.header("location").unwrap().to_owned();
    assert_eq!(place, jobs(body["jobId"].as_str().unwrap()));
    it.host.door().get(&place).by(&it.owner).send().await.expect(200);
    let receipt = format!("/v1/receipts/{}", answer.header("innkeeper-receipt").unwrap());
    let receipt = it.host.door().get(receipt).by(&it.owner).send().await.expect(200);
    assert_eq!(receipt["stored"]["job"], body["jobId"]);

    let once = || run(json!({"board": it.board})).header("idempotency-key", "k1").by(&it.owner);
    let first = once().send().await.expect(202);
    let again = once().send().await.refused(409, "duplicate_request");
    assert_eq!(again["id"], first["jobId"], "a repeated call is pointed to its job");
}

#[tokio::test]
async fn params_are_checked_for_agents_and_only_warned_about_for_pages() {
    let it = started().await;
    let run = |params: Value| it.host.door().post("/apps/kanban/api/ops/board.sum-up", &params);
    let refusal = run(json!({})).by(&it.agent).send().await.expect(400);
    assert_eq!(refusal["violations"][0]["field"], "board");
    assert!(run(json!({"board": it.board})).by(&it.agent).send().await.expect(202).get("warnings").is_none());
    // The payload is a contract with agents: what it does not allow is refused for everybody.
    run(json!({"board": it.board, "colour": "red"})).by(&it.owner).send().await.expect(400);
    run(json!({"board": "short"})).by(&it.owner).send().await.expect(400);

    let mut files = kanban::files();
    let text = |files: &inn_tests::bundle::Files, path: &str| String::from_utf8(files[path].clone()).unwrap();
    let path = files.keys().find(|path| path.ends_with("manifest.json") && !path.contains("pb/")).unwrap().clone();
    let open = text(&files, &path).replace("\"additionalProperties\": false", "\"additionalProperties\": true");
    files.insert(path, open.into_bytes());
    it.host.deploy(&it.owner, "open", files).await;
    let loose = json!({"board": it.board, "colour": "red"});
    let warned = it.host.door().post("/apps/open/api/ops/board.sum-up", &loose).by(&it.owner).send().await.expect(202);
    assert_eq!(warned["warnings"][0]["field"], "colour", "{warned}");
}

#[tokio::test]
async fn a_job_is_seen_by_its_caller_and_by_editors_and_by_no_other_agent() {
    let it = started().await;
    let door = it.host.door();
    let path = jobs(&it.job);
    door.get(&path).by(&it.host.editor().await).send().await.expect(200);
    door.get(&path).by(&it.host.viewer().await).send().await.refused(404, "job_not_found");
    assert_eq!(door.get(&path).by(&it.host.rival().await).send().await.status, 404);
    door.get(&path).by(&it.agent).send().await.expect(200);
    let narrow = it.host.agent(&it.owner, &["data:cards:read"]).await;
    door.get(&path).by(&narrow).send().await.refused(404, "job_not_found");
    let mut editors = it.host.new_agent().await;
    editors.obtain(&it.host.editor().await, kanban::SLUG, kanban::SCOPES, &Consent::default()).await;
    door.get(&path).by(&editors).send().await.refused(404, "job_not_found");
    door.post(format!("{path}/cancel"), &json!({})).by(&editors).send().await.refused(404, "job_not_found");
    for nonsense in ["job_nonsense", "x", "req_00000000000000000000000000000000"] {
        door.get(jobs(nonsense)).by(&it.owner).send().await.refused(404, "job_not_found");
    }
    let mine = kanban::sum_up(door, &it.agent, &it.board).await;
    door.get(jobs(&mine)).by(&it.agent).send().await.expect(200);
    door.get(jobs(&mine)).by(&it.owner).send().await.expect(200);
}

#[tokio::test]
async fn canceling_a_job_takes_the_work_from_its_agent() {
    let it = started().await;
    let claimed = it.agent.claim().await.unwrap();
    let cancel = || it.host.door().post(jobs(&format!("{}/cancel", it.job)), &json!({})).by(&it.owner);
    let canceled = cancel().send().await.expect(200);
    assert_eq!((&canceled["status"], &canceled["error"]["code"]), (&json!("canceled"), &json!("canceled")));
    let beat = it.agent.queue(&format!("{}/heartbeat", kanban::id(&claimed)), &json!({"epoch": claimed["epoch"]}));
    beat.send().await.refused(409, "claim_lost");
    cancel().send().await.refused(409, "conflict");
}

#[tokio::test]
async fn an_operation_whose_capability_is_not_consented_is_refused_and_starts_nothing() {
    let it = started().await;
    it.host
        .sql()
        .await
        .execute("UPDATE inn.apps SET consented = '{}', epoch = nextval('inn.epoch')", &[])
        .await
        .unwrap();
    let call = it.host.door().post("/apps/kanban/api/ops/board.sum-up", &json!({"board": it.board})).by(&it.owner);
    call.send().await.refused(403, "not_consented");
    assert_eq!(it.host.count("SELECT count(*) FROM inn.jobs").await, 1, "the first one");
}

#[tokio::test]
async fn a_stream_tells_every_line_once_and_goes_on_after_the_last_one_seen() {
    let it = started().await;
    let claimed = it.agent.claim().await.unwrap();
    let (id, epoch) = (kanban::id(&claimed), &claimed["epoch"]);
    let say = |verb: &str, body: Value| it.agent.queue(&format!("{id}/{verb}"), &body);
    let (heard, ()) = tokio::join!(it.stream(""), async {
        say("progress", json!({"epoch": epoch, "step": "reading", "percent": 40})).send().await.expect(200);
        say("complete", json!({"epoch": epoch, "result": {"summary": "Fine."}})).send().await.expect(200);
    });
    let ids: Vec<&str> = heard.lines().filter_map(|line| line.strip_prefix("id: ")).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "4"], "{heard}");
    let names: Vec<&str> = heard.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["state", "state", "progress", "state", "end"], "{heard}");
    let last = heard.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let end: Value = serde_json::from_str(last).unwrap();
    assert_eq!((&end["status"], &end["result"]["summary"]), (&json!("completed"), &json!("Fine.")));

    let rest = it.stream("3").await;
    let names: Vec<&str> = rest.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["state", "end"], "{rest}");
    let over = it.stream("4").await;
    assert_eq!(over.matches("event: ").count(), 1, "the end is told to whoever comes late: {over}");
    assert_eq!(it.stream("999").await.matches("event: ").count(), 5, "a number from elsewhere starts over");
    let entries = "SELECT count(*) FROM inn.entries WHERE action = 'jobs.follow' AND outcome = 'done'";
    assert_eq!(it.host.count(entries).await, 4, "each stream is in the register");
}

#[tokio::test]
async fn a_stream_ends_when_its_reader_may_no_longer_see_the_job() {
    let it = started().await;
    let editor = it.host.editor().await;
    let call = it.host.door().get(jobs(&it.job)).header("accept", "text/event-stream").by(&editor);
    let answer = call.open().await;
    let reading = tokio::spawn(answer.text());
    let gone = format!("/v1/members/{}", editor.user);
    assert!(it.host.door().delete(gone).by(&it.owner).send().await.status < 300);
    until("the stream to end", || async { reading.is_finished().then_some(()) }).await;
    let heard = reading.await.unwrap().unwrap_or_default();
    assert!(!heard.contains("event: end"), "{heard}");
    let refused = it.host.door().get(jobs(&it.job)).by(&editor).send().await;
    assert!(matches!(refused.status, 401 | 404), "{}", refused.text());
}

#[tokio::test]
async fn a_job_goes_on_at_another_node_and_its_stream_with_it() {
    let mut it = started().await;
    it.host.add_node(|_| {}).await;
    let [first, second] = it.host.doors() else { panic!("two nodes") };
    let claimed = it.agent.claim().await.unwrap();
    let id = kanban::id(&claimed);
    let mut agent = it.agent.clone();
    agent.door = second.clone();
    let body = json!({"epoch": claimed["epoch"], "step": "reading", "percent": 40});
    agent.queue(&format!("{id}/progress"), &body).send().await.expect(200);
    let seen = first.get(jobs(&it.job)).by(&it.owner).send().await.expect(200);
    assert_eq!(seen["progress"]["percent"], 40, "said at one node, seen at the other");
    let call = second.get(jobs(&it.job)).header("accept", "text/event-stream").header("last-event-id", "2");
    let answer = call.by(&it.owner).open().await;
    let body = json!({"epoch": claimed["epoch"], "result": {"summary": "Fine."}});
    it.agent.queue(&format!("{id}/complete"), &body).send().await.expect(200);
    let heard = answer.text().await.unwrap();
    let names: Vec<&str> = heard.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(names, ["progress", "state", "end"], "{heard}");
}
