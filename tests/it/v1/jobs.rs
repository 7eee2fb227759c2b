use inn_tests::{Person, TestHost, kanban};
use serde_json::{Value, json};

async fn started() -> (TestHost, Person, String, String) {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (board, _) = kanban::board(host.door(), &owner).await;
    let job = kanban::sum_up(host.door(), &owner, &board).await;
    (host, owner, board, job)
}

#[tokio::test]
async fn jobs_are_listed_newest_first_and_narrowed_by_state() {
    let (host, owner, board, first) = started().await;
    let second = kanban::sum_up(host.door(), &owner, &board).await;
    let list = |query: &str| host.door().get(format!("/v1/jobs?app=kanban{query}")).by(&owner);
    let ids = |answer: Value| -> Vec<String> { answer["items"].as_array().unwrap().iter().map(kanban::id).collect() };
    assert_eq!(ids(list("").send().await.expect(200)), [second.clone(), first.clone()]);
    let cancel = json!({"app": "kanban", "reason": "no longer needed"});
    let canceled = host.door().post(format!("/v1/jobs/{first}/cancel"), &cancel).by(&owner).send().await.expect(200);
    assert_eq!((&canceled["state"], &canceled["error"]["message"]), (&json!("canceled"), &json!("no longer needed")));
    assert_eq!(ids(list("&state=queued").send().await.expect(200)), [second]);
    assert_eq!(ids(list("&state=canceled").send().await.expect(200)), [first]);
    list("&state=lost").send().await.refused(400, "invalid_parameter");
    host.door().get("/v1/jobs").by(&owner).send().await.refused(404, "unknown_app");
    let viewer = host.viewer().await;
    let none = host.door().get("/v1/jobs?app=kanban").by(&viewer).send().await.expect(200);
    assert_eq!(none["items"], json!([]), "a viewer sees what it started, which is nothing");
}

#[tokio::test]
async fn a_job_shows_its_request_its_attempts_and_its_log() {
    let (host, owner, board, job) = started().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let claimed = agent.claim().await.unwrap();
    let (id, epoch) = (kanban::id(&claimed), claimed["epoch"].clone());
    agent.queue(&format!("{id}/fail"), &json!({"epoch": epoch, "reason": "on fire"})).send().await.expect(200);
    let view = host.door().get(format!("/v1/jobs/{job}?app=kanban")).by(&owner).send().await.expect(200);
    assert_eq!(
        (&view["request"], &view["params"], &view["state"]),
        (&json!(id), &json!({"board": board}), &json!("queued"))
    );
    assert_eq!((&view["pastAttempts"][0]["how"], &view["pastAttempts"][0]["by"]), (&json!("failed"), &json!(agent.id)));
    let logs = |query: &str| host.door().get(format!("/v1/jobs/{job}/logs?app=kanban{query}")).by(&owner);
    let lines = logs("").send().await.expect(200);
    let texts: Vec<&str> =
        lines["items"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["queued", "running", "queued: on fire"]);
    let rest = logs("&after=2&limit=10").send().await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 1);
    for wrong in ["&after=-1", "&after=x", "&limit=1001"] {
        logs(wrong).send().await.refused(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn what_failed_or_was_canceled_is_retried_as_a_new_job_for_its_first_caller() {
    let (host, owner, board, _) = started().await;
    let editor = host.editor().await;
    let job = kanban::sum_up(host.door(), &editor, &board).await;
    let retry = |job: &str| host.door().post(format!("/v1/jobs/{job}/retry"), &json!({"app": "kanban"})).by(&owner);
    retry(&job).send().await.refused(409, "conflict");
    let body = json!({"app": "kanban"});
    host.door().post(format!("/v1/jobs/{job}/cancel"), &body).by(&owner).send().await.expect(200);
    let again = retry(&job).send().await.expect(201);
    assert_ne!(again["id"], json!(job));
    assert_eq!((&again["retryOf"], &again["state"]), (&json!(job), &json!("queued")));
    assert_eq!(again["requester"], json!(editor.user), "it is still the editor's");
    let old = host.door().get(format!("/v1/jobs/{job}?app=kanban")).by(&owner).send().await.expect(200);
    assert_eq!(old["state"], "canceled", "the old one stays as it ended");
    retry("job_00000000000000000000000000000000").send().await.refused(404, "job_not_found");
}

#[tokio::test]
async fn jobs_of_another_tenant_are_not_there() {
    let (host, _, _, job) = started().await;
    let rival = host.rival().await;
    for path in [format!("/v1/jobs/{job}?app=kanban"), "/v1/jobs?app=kanban".to_owned()] {
        assert_eq!(host.door().get(path).by(&rival).send().await.status, 404);
    }
}
