//! What an attacker tried and must not get.

use inn_tests::{Consent, TestHost, kanban, until};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[tokio::test]
async fn the_register_is_sealed_across_a_power_of_ten_of_transaction_ids() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    // Nothing is sealed while this transaction runs, so that entries on both sides of the mark end up in one batch.
    let old = host.sql().await;
    old.batch_execute("BEGIN; SELECT pg_current_xact_id()").await.unwrap();
    let burner = host.sql().await;
    let next = "SELECT pg_current_xact_id()::text::bigint";
    let now: i64 = burner.query_one(next, &[]).await.unwrap().get(0);
    let mut mark = 10;
    while mark <= now + 20 {
        mark *= 10;
    }
    while burner.query_one(next, &[]).await.unwrap().get::<_, i64>(0) < mark - 10 {}
    for number in 0..20 {
        kanban::create(host.door(), "boards", &json!({"name": format!("b{number}")}), &owner).send().await.expect(200);
    }
    old.batch_execute("COMMIT").await.unwrap();
    let open = "SELECT count(*) FROM inn.entries e WHERE NOT EXISTS (SELECT FROM inn.sealed s WHERE s.tenant = e.tenant AND s.call = e.call AND s.at = e.at)";
    until("every entry is sealed", || async { (host.count(open).await == 0).then_some(()) }).await;
    // And it goes on.
    kanban::create(host.door(), "boards", &json!({"name": "after"}), &owner).send().await.expect(200);
    until("later entries are sealed, too", || async { (host.count(open).await == 0).then_some(()) }).await;
}

#[tokio::test]
async fn a_scope_to_write_does_not_read() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let (_, list) = kanban::board(host.door(), &owner).await;
    let card = kanban::card(host.door(), &owner, &list, "secret").await;
    let agent = host.agent(&owner, &["data:cards:write"]).await;
    let answer = host.door().patch(kanban::record("cards", &card), &json!({})).by(&agent).send().await;
    assert!(!answer.text().contains("secret"), "{}", answer.text());
}

#[tokio::test]
async fn a_viewer_cannot_give_an_agent_what_the_viewer_may_not_do() {
    let host = TestHost::start().await;
    let (owner, viewer) = (host.owner().await, host.viewer().await);
    let (board, _) = kanban::board(host.door(), &owner).await;
    kanban::ask(host.door(), &owner, &board).await;
    let mut agent = host.new_agent().await;
    // Requests of others are refused at consent (v1/grant_requests); the bare scope is given and is worth nothing.
    let consent = Consent { others_requests: false, plain_token: false };
    agent.obtain(&viewer, kanban::SLUG, &["queue:summarise-board"], &consent).await;
    agent.queue("claim", &json!({})).send().await.refused(403, "insufficient_scope");
    // And who consents to answering others' requests without being allowed to is told so.
    let request = agent.ask_for_grant(kanban::SLUG, &["queue:summarise-board"]).await;
    let yes = json!({"password": inn_tests::host::PASSWORD, "othersRequests": true});
    let approve = format!("/v1/grant-requests/{}/approve", request["id"].as_str().unwrap());
    host.door().post(approve, &yes).by(&viewer).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_token_beside_a_call_that_needs_none_is_no_server_error() {
    let host = TestHost::start().await;
    let agent = host.agent(&host.owner().await, kanban::SCOPES).await;
    for (path, body) in [
        ("/v1/token", json!({"grant": agent.grant})),
        ("/v1/grant-requests", json!({"app": kanban::SLUG, "scopes": ["data:cards:read"]})),
    ] {
        let reply = host.door().post(path, &body).by(&agent).send().await;
        assert!(reply.status < 500, "{path}: {}", reply.text());
    }
}

#[tokio::test]
async fn signing_in_does_not_depend_on_an_old_cookie() {
    let host = TestHost::start().await;
    let body = json!({"email": "owner@acme.example", "password": inn_tests::host::PASSWORD});
    let call = host.door().post("/v1/session", &body).header("cookie", "inn-session=ses_ended");
    call.header("origin", host.door().origin()).send().await.expect(200);
}

#[tokio::test]
async fn a_call_without_host_is_refused() {
    let host = TestHost::start().await;
    let socket = host.door().socket.trim_start_matches("http://").to_owned();
    let mut stream = tokio::net::TcpStream::connect(socket).await.unwrap();
    let app = host.door().app_host(kanban::SLUG);
    let call = format!("GET /v1/keys HTTP/1.0\r\nX-Forwarded-Host: {app}\r\n\r\n");
    stream.write_all(call.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.0 4"), "{answer}");
}
