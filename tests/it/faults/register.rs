use inn_tests::host::PASSWORD;
use inn_tests::{Call, TestHost, kanban};
use serde_json::json;

/// From here on no entry can be written.
const BREAK: &str = "
CREATE FUNCTION inn.out_of_paper() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER out_of_paper BEFORE INSERT ON inn.entries FOR EACH ROW EXECUTE FUNCTION inn.out_of_paper();";

const MEND: &str = "DROP TRIGGER out_of_paper ON inn.entries; DROP FUNCTION inn.out_of_paper();";

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let (board, list) = kanban::board(door, &agent).await;
    let request = kanban::ask(door, &owner, &board).await;
    let pending = agent.ask_for_grant(kanban::SLUG, &["data:cards:read"]).await;
    let schema = host.app_schema(kanban::SLUG).await;
    let tables = [
        format!("{schema}.boards"),
        format!("{schema}.cards"),
        "inn.apps".to_owned(),
        "inn.agents".to_owned(),
        "inn.grants".to_owned(),
        "inn.sessions".to_owned(),
        "inn.members".to_owned(),
        "inn.tenants".to_owned(),
        "inn.requests".to_owned(),
        "inn.receipts".to_owned(),
        "inn.entries".to_owned(),
        "inn.outbox".to_owned(),
        "inn.changes".to_owned(),
    ];
    let contents = || async {
        let sql = host.sql().await;
        let mut all = Vec::new();
        for table in &tables {
            let query =
                format!("SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), 'empty') FROM {table} t");
            all.push((table.clone(), sql.query_one(&query, &[]).await.unwrap().get::<_, String>(0)));
        }
        all
    };
    let sql = host.sql().await;
    sql.batch_execute(BREAK).await.unwrap();
    let before = contents().await;
    let id = pending["id"].as_str().unwrap();
    let calls: Vec<(&str, Call)> = vec![
        ("create by an agent", kanban::create(door, "boards", &json!({"name": "x"}), &agent)),
        ("create with a key", kanban::create(door, "boards", &json!({"name": "x"}), &agent).key("k")),
        ("create by a person", kanban::create(door, "boards", &json!({"name": "x"}), &owner)),
        ("update", door.patch(kanban::record("boards", &board), &json!({"name": "x"})).by(&agent)),
        ("delete", door.delete(kanban::record("boards", &board)).by(&agent)),
        ("operation", door.post("/apps/kanban/api/ops/cards.add", &json!({"title": "x", "list": list})).by(&agent)),
        (
            "ask",
            door.post(
                "/apps/kanban/api/_a2app/tasks",
                &json!({"capability": "summarise-board", "payload": {"board": board}}),
            )
            .by(&owner),
        ),
        ("claim", agent.queue("claim", &json!({}))),
        ("cancel", door.post(format!("/v1/requests/{request}/cancel"), &json!({"app": "kanban"})).by(&owner)),
        ("approve", door.post(format!("/v1/grant-requests/{id}/approve"), &json!({"password": PASSWORD})).by(&owner)),
        ("revoke", door.delete(format!("/v1/grants/{}", agent.grant)).by(&owner)),
        ("token", agent.take_token()),
        ("member", door.post("/v1/members", &json!({"email": "viewer@acme.example", "role": "editor"})).by(&owner)),
        ("tenant", door.post("/v1/tenants", &json!({"slug": "side", "name": "Side"})).by(&owner)),
        (
            "deploy",
            door.call(reqwest::Method::POST, "/v1/apps?slug=second")
                .body(inn_tests::bundle::pack(kanban::files()))
                .by(&owner),
        ),
        ("remove", door.delete("/v1/apps/kanban").by(&owner)),
        ("sign in", door.post("/v1/session", &json!({"email": "viewer@acme.example", "password": PASSWORD}))),
        ("sign out", door.delete("/v1/session").by(&owner)),
        ("read", door.get(kanban::records("boards")).by(&agent)),
        ("read the register", door.get("/v1/audit").by(&owner)),
    ];
    let mut wrong = Vec::new();
    for (what, call) in calls {
        let reply = call.send().await;
        if reply.status < 500 {
            wrong.push(format!("{what}: {} {}", reply.status, reply.text()));
        } else {
            reply.refused(reply.status, reply.json()["code"].as_str().unwrap());
        }
    }
    assert!(wrong.is_empty(), "done without an entry:\n{}", wrong.join("\n"));
    assert_eq!(contents().await, before);
    sql.batch_execute(MEND).await.unwrap();
    kanban::create(door, "boards", &json!({"name": "x"}), &agent).key("k").send().await.expect(200);
    door.get(kanban::records("boards")).by(&agent).send().await.expect(200);
    let verified = door.get("/v1/audit/verify").by(&owner).send().await.expect(200);
    assert_eq!(verified["problems"], json!([]), "{verified}");
}
