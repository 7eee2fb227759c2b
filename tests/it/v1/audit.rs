use inn_tests::{Person, TestHost, kanban, until};
use serde_json::{Value, json};

async fn verify(host: &TestHost, owner: &Person) -> Value {
    host.door().get("/v1/audit/verify").by(owner).send().await.expect(200)
}

/// Waits until everything so far is sealed; answers the head.
async fn sealed_head(host: &TestHost, owner: &Person) -> Value {
    let mark = host.door().get("/v1/members").by(owner).send().await.call_id().to_owned();
    until("the sealer", || async {
        let found = host.door().get("/v1/audit?action=members.list").by(owner).send().await.expect(200);
        let entry = found["items"].as_array().unwrap().iter().find(|entry| entry["call"] == mark.as_str()).cloned()?;
        entry["seq"].as_i64()
    })
    .await;
    host.door().get("/v1/audit/head").by(owner).send().await.expect(200)
}

#[tokio::test]
async fn the_register_says_who_did_what_for_whom_with_what_outcome() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:boards:write"]).await;
    let door = host.door();
    let done =
        kanban::create(door, "boards", &json!({"name": "x"}), &agent).header("x-a2app-agent", "Robo").send().await;
    done.expect(200);
    let refused = door.get(kanban::records("cards")).by(&agent).send().await;
    refused.refused(403, "insufficient_scope");
    let read = door.get(kanban::records("boards")).by(&owner).send().await;
    read.expect(200);

    let page = door.get(format!("/v1/audit?grant={}", agent.grant)).by(&owner).send().await.expect(200);
    let find = |id: &str| page["items"].as_array().unwrap().iter().find(|entry| entry["call"] == id).cloned();
    let entry = find(done.call_id()).expect("an entry of the write");
    assert_eq!(entry["outcome"], "done");
    assert!(entry["effect"].is_string(), "the effect is under the digest: {entry}");
    let facts = &entry["facts"];
    assert_eq!((&facts["action"], &facts["target"]), (&json!("records.create"), &json!("boards")));
    assert_eq!((&facts["user"], &facts["agent"]), (&json!(owner.user), &json!(agent.id)));
    assert_eq!((&facts["via"], &facts["claimedAgent"]), (&json!("signed"), &json!("Robo")));
    assert!(facts["signatureBase"].as_str().unwrap().contains("@path"), "the agent cannot deny it: {facts}");
    let entry = find(refused.call_id()).expect("an entry of the refusal");
    assert_eq!(entry["outcome"], "refused:insufficient_scope");
    assert!(find(read.call_id()).is_none(), "not of this grant");

    let page = door.get("/v1/audit?action=records.list&outcome=done").by(&owner).send().await.expect(200);
    assert_eq!(page["items"][0]["call"], read.call_id());
    let page = door.get(format!("/v1/audit?agent={}&outcome=refused", agent.id)).by(&owner).send().await.expect(200);
    assert_eq!(page["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn pages_of_the_register_neither_repeat_nor_skip() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let mut calls = Vec::new();
    for _ in 0..7 {
        calls.push(door.get("/v1/members").by(&owner).send().await.call_id().to_owned());
    }
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page = door.get(format!("/v1/audit?action=members.list&limit=3{next}")).by(&owner).send().await.expect(200);
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|entry| entry["call"].as_str().unwrap().to_owned()));
        if items.len() < 3 {
            break;
        }
        next = format!("&before={}", page["next"].as_str().unwrap());
    }
    seen.reverse();
    assert_eq!(seen, calls);
    for bad in ["limit=many", "before=yesterday", "since=yesterday", "user=x", "agent=x", "grant=x"] {
        door.get(format!("/v1/audit?{bad}")).by(&owner).send().await.refused(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn an_untouched_register_verifies_and_each_kind_of_tampering_shows() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    kanban::board(host.door(), &owner).await;
    let head = sealed_head(&host, &owner).await;
    let whole = verify(&host, &owner).await;
    assert_eq!((&whole["ok"], &whole["problems"]), (&json!(true), &json!([])), "{whole}");
    assert!(
        whole["entries"].as_i64().unwrap() >= whole["sealed"].as_i64().unwrap()
            && whole["sealed"].as_i64().unwrap() > 0
    );

    // An exported head that the chain still has; one that it never had.
    let (seq, digest) = (head["seq"].as_i64().unwrap(), head["head"].as_str().unwrap());
    let with_head =
        |seq: i64, digest: &str| host.door().get(format!("/v1/audit/verify?seq={seq}&head={digest}")).by(&owner);
    assert_eq!(with_head(seq, digest).send().await.expect(200)["ok"], true);
    assert_eq!(with_head(seq, &"0".repeat(64)).send().await.expect(200)["ok"], false);
    assert_eq!(with_head(seq + 1_000_000, digest).send().await.expect(200)["ok"], false, "the tail was cut off");

    let sql = host.sql().await;
    // Nobody but the database's own superuser gets past the triggers.
    assert!(sql.execute("DELETE FROM inn.entries", &[]).await.is_err());
    assert!(sql.execute("UPDATE inn.entries SET outcome = 'done'", &[]).await.is_err());
    sql.batch_execute("SET session_replication_role = replica").await.unwrap();
    let changed =
        sql.execute("UPDATE inn.entries SET outcome = 'refused:forbidden' WHERE action = 'records.create'", &[]).await;
    assert!(changed.unwrap() > 0);
    let edited = verify(&host, &owner).await;
    assert_eq!(edited["ok"], false);
    sql.execute("UPDATE inn.entries SET outcome = 'done' WHERE action = 'records.create'", &[]).await.unwrap();
    assert_eq!(verify(&host, &owner).await["ok"], true);
    assert!(sql.execute("DELETE FROM inn.entries WHERE action = 'records.create'", &[]).await.unwrap() > 0);
    let cut = verify(&host, &owner).await;
    assert_eq!(cut["ok"], false);
    assert!(!cut["problems"].as_array().unwrap().is_empty(), "{cut}");
}

#[tokio::test]
async fn the_export_has_one_entry_a_line() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    kanban::board(host.door(), &owner).await;
    let reply = host.door().get("/v1/audit/export?limit=500").by(&owner).send().await;
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = reply.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().filter(|entry| entry["facts"]["action"] == "records.create").count() >= 2);
}

#[tokio::test]
async fn the_register_is_for_owners_and_of_one_tenant() {
    let host = TestHost::start().await;
    let (owner, rival) = (host.owner().await, host.rival().await);
    let door = host.door();
    let mine = door.get("/v1/members").by(&owner).send().await;
    for path in ["/v1/audit", "/v1/audit/verify", "/v1/audit/head", "/v1/audit/export"] {
        door.get(path).by(&host.editor().await).send().await.refused(403, "forbidden");
        door.get(path).send().await.refused(401, "unauthenticated");
    }
    let page = door.get("/v1/audit?limit=500").by(&rival).send().await.expect(200);
    assert!(page["items"].as_array().unwrap().iter().all(|entry| entry["call"] != mine.call_id()));
    // Reading the register is in the register.
    let looked = door.get("/v1/audit").by(&rival).send().await;
    let page = door.get("/v1/audit?action=audit.search").by(&rival).send().await.expect(200);
    assert!(page["items"].as_array().unwrap().iter().any(|entry| entry["call"] == looked.call_id()));
}
