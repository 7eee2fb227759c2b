//! Every route of an app's face.

use inn_tests::{Call, TestHost};
use regex::Regex;
use serde_json::{Value, json};

use super::{Sample, World};

/// Where the routes are declared; the test reads them there, so that none is forgotten here.
const DECLARED: &str = include_str!("../../../services/inn-http/src/app/mod.rs");

/// Method and pattern below the app, register action, what is sent, and the status for stranger, viewer, editor, owner, key, agent.
/// A stranger on a loopback host reads what a visitor may.
type Row = (&'static str, &'static str, &'static str, fn(&Sample) -> (String, Value), [u16; 6]);

fn records(entity: &str) -> String {
    format!("/api/collections/{entity}/records")
}

fn users(path: &str, body: Value) -> (String, Value) {
    (format!("/api/collections/users/{path}"), body)
}

fn plain(path: impl Into<String>) -> (String, Value) {
    (path.into(), Value::Null)
}

#[rustfmt::skip]
const TABLE: &[Row] = &[
    ("GET", "/api/health", "app.describe", |_| plain("/api/health"), [200, 200, 200, 200, 200, 200]),
    ("GET", "/api/_a2app", "app.describe", |_| plain("/api/_a2app"), [200, 200, 200, 200, 200, 200]),
    ("GET", "/api/_a2app/describe", "app.describe", |_| plain("/api/_a2app/describe"), [200, 200, 200, 200, 200, 200]),
    ("GET", "/api/_a2app/whoami", "app.describe", |_| plain("/api/_a2app/whoami"), [200, 200, 200, 200, 200, 200]),
    ("GET", "/api/_ops", "app.describe", |_| plain("/api/_ops"), [200, 200, 200, 200, 200, 200]),
    ("GET", "/api/_a2app/tasks", "requests.list", |_| plain("/api/_a2app/tasks"), [200, 200, 200, 200, 401, 403]),
    ("POST", "/api/_a2app/tasks", "requests.ask", |s| ("/api/_a2app/tasks".into(), json!({"capability": "summarise-board", "payload": {"board": &s.board}})), [401, 403, 201, 201, 401, 403]),
    ("GET", "/api/_a2app/tasks/{id}", "requests.view", |s| plain(format!("/api/_a2app/tasks/{}", s.task)), [200, 404, 200, 200, 401, 403]),
    ("POST", "/api/_a2app/tasks/{id}/cancel", "requests.cancel", |s| (format!("/api/_a2app/tasks/{}/cancel", s.task), json!({})), [401, 403, 200, 409, 401, 403]),
    ("POST", "/api/_a2app/tasks/{id}/answer", "requests.answer", |s| (format!("/api/_a2app/tasks/{}/answer", s.task), json!({"answer": 1})), [401, 403, 409, 409, 401, 403]),
    ("GET", "/api/_jobs/{id}", "jobs.view", |s| plain(format!("/api/_jobs/{}", s.job)), [200, 404, 200, 200, 401, 200]),
    ("POST", "/api/_jobs/{id}/cancel", "jobs.cancel", |s| (format!("/api/_jobs/{}/cancel", s.job), json!({})), [401, 403, 200, 409, 401, 409]),
    ("GET", "/api/collections/{entity}/records", "records.list", |_| plain(records("cards")), [200, 200, 200, 200, 401, 200]),
    ("POST", "/api/collections/{entity}/records", "records.create", |s| (records("cards"), json!({"title": "x", "list": &s.list})), [401, 403, 200, 200, 401, 200]),
    ("GET", "/api/collections/{entity}/records/{id}", "records.view", |s| plain(format!("{}/{}", records("cards"), s.card)), [200, 200, 200, 200, 401, 200]),
    ("PATCH", "/api/collections/{entity}/records/{id}", "records.update", |s| (format!("{}/{}", records("cards"), s.card), json!({"title": "y"})), [401, 403, 200, 200, 401, 200]),
    ("DELETE", "/api/collections/{entity}/records/{id}", "records.delete", |s| plain(format!("{}/{}", records("cards"), s.card)), [401, 403, 204, 404, 401, 404]),
    ("POST", "/api/batch", "records.batch", |s| ("/api/batch".into(), json!({"requests": [{"method": "POST", "url": records("cards"), "body": {"title": "x", "list": &s.list}}]})), [401, 400, 200, 200, 401, 200]),
    ("POST", "/api/realtime", "realtime.subscribe", |_| ("/api/realtime".into(), json!({"clientId": "nobody's", "subscriptions": ["cards/*"]})), [404, 404, 404, 404, 404, 404]),
    ("GET", "/api/files/{entity}/{id}/{name}", "files.read", |s| plain(format!("/api/files/cards/{}/nothing.png", s.card)), [404, 404, 404, 404, 401, 404]),
    ("POST", "/api/files/token", "files.token", |_| plain("/api/files/token"), [401, 200, 200, 200, 401, 200]),
    // Signing in counts for nobody until it worked, so there is no entry yet; the kanban app has no accounts of its own.
    ("GET", "/api/collections/{entity}/auth-methods", "app.describe", |_| plain("/api/collections/users/auth-methods"), [200, 200, 200, 200, 200, 200]),
    ("POST", "/api/collections/{entity}/auth-with-password", "", |_| users("auth-with-password", json!({"identity": "x", "password": "y"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/auth-with-oauth2", "", |_| users("auth-with-oauth2", json!({})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/auth-with-otp", "", |_| users("auth-with-otp", json!({"otpId": "x", "password": "y"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/request-otp", "", |_| users("request-otp", json!({"email": "a@b.example"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/request-password-reset", "", |_| users("request-password-reset", json!({"email": "a@b.example"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/confirm-password-reset", "", |_| users("confirm-password-reset", json!({"token": "x"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/request-verification", "", |_| users("request-verification", json!({"email": "a@b.example"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/confirm-verification", "", |_| users("confirm-verification", json!({"token": "x"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/confirm-email-change", "", |_| users("confirm-email-change", json!({"token": "x"})), [403, 403, 403, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/request-email-change", "auth.request-email-change", |_| users("request-email-change", json!({"newEmail": "a@b.example"})), [401, 401, 401, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/auth-refresh", "auth.refresh", |_| users("auth-refresh", json!({})), [401, 401, 401, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/sign-out", "auth.sign-out", |_| users("sign-out", json!({})), [401, 401, 401, 403, 403, 403]),
    ("POST", "/api/collections/{entity}/impersonate/{id}", "auth.impersonate", |_| users("impersonate/x", json!({})), [401, 403, 403, 403, 403, 403]),
    // Operations are the app's own words; one of each kind stands for them.
    ("POST", "/api/ops/{name}", "operations.run", |s| ("/api/ops/cards.add".into(), json!({"title": "x", "list": &s.list})), [401, 403, 200, 200, 401, 200]),
    ("POST", "/api/ops/{list}", "operations.run", |_| ("/api/ops/cards.list-urgent".into(), json!({})), [401, 403, 200, 200, 401, 200]),
    ("POST", "/api/ops/{agent}", "operations.run", |s| ("/api/ops/board.sum-up".into(), json!({"board": &s.board})), [401, 403, 202, 202, 401, 202]),
    ("POST", "/api/ops/{destructive}", "operations.run", |s| ("/api/ops/cards.delete-archived".into(), json!({"id": &s.archived})), [401, 403, 204, 404, 401, 428]),
];

/// Routes with tests of their own elsewhere: on an app's own origin, with a code instead of papers; and the stream, whose
/// answer does not end.
const ELSEWHERE: &[&str] = &["/_/", "/_/page.js", "/_inn/enter", "/api/realtime"];

#[test]
fn every_declared_route_has_a_row() {
    let literal = Regex::new(r#""(/[a-z_][^"]*)""#).unwrap();
    let mut patterns: Vec<&str> = literal.captures_iter(DECLARED).map(|found| found.get(1).unwrap().as_str()).collect();
    patterns.retain(|pattern| !ELSEWHERE.contains(pattern));
    assert!(
        patterns.len() > 8,
        "the routes are declared in another way now: teach this test to find them. Found {patterns:?}"
    );
    for pattern in &patterns {
        assert!(
            TABLE.iter().any(|row| row.1 == *pattern),
            "add rows for {pattern} to TABLE in tests/it/coverage/app_routes.rs"
        );
    }
    let methods = |method: &str| Regex::new(&format!(r"web::{method}\(\)")).unwrap().find_iter(DECLARED).count();
    for (method, name) in [("get", "GET"), ("post", "POST"), ("patch", "PATCH"), ("delete", "DELETE"), ("put", "PUT")] {
        let rows = TABLE.iter().filter(|row| row.0 == name && !row.1.starts_with("/api/ops/")).count();
        let elsewhere = if name == "GET" { ELSEWHERE.len() } else { 0 };
        assert_eq!(
            methods(method),
            rows + elsewhere,
            "{name} routes in services/inn-http/src/app/mod.rs and rows of TABLE differ in number"
        );
    }
}

#[tokio::test]
async fn every_caller_gets_what_the_table_says_and_an_entry() {
    let world = World::new().await;
    let mut problems = Vec::new();
    for (method, pattern, action, target, expected) in TABLE {
        let sample = world.sample().await;
        let (path, body) = target(&sample);
        let call = || -> Call {
            let call = world.host.door().call(method.parse().unwrap(), format!("/apps/kanban{path}"));
            if body.is_null() { call } else { call.json(&body) }
        };
        problems.extend(world.compare(&format!("{method} {pattern}"), action, &sample, call, *expected).await);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[tokio::test]
async fn a_member_of_another_tenant_is_nobody_here() {
    let world = World::new().await;
    let rival = world.host.rival().await;
    let mut problems = Vec::new();
    for (method, pattern, action, target, _) in TABLE {
        if action.is_empty() {
            // Whoever signs in is nobody yet, whatever else was shown.
            continue;
        }
        let sample = world.sample().await;
        let (path, body) = target(&sample);
        let call = world.host.door().call(method.parse().unwrap(), format!("/apps/kanban{path}"));
        let call = if body.is_null() { call } else { call.json(&body) };
        let reply = call.by(&rival).send().await;
        if reply.status != 404 {
            problems.push(format!("{method} {pattern}: {}", reply.text()));
        }
    }
    assert!(problems.is_empty(), "what somebody is no member of does not exist for them:\n{}", problems.join("\n"));
}

#[tokio::test]
async fn a_visitors_calls_are_in_the_register_too() {
    let host = TestHost::start().await;
    let reply = host.door().get("/apps/kanban/api/collections/boards/records").send().await;
    reply.expect(200);
    let call = reply.call_id().parse::<inn_protocol::CallId>().unwrap().uuid();
    let row =
        host.sql().await.query_one("SELECT caller, action FROM inn.entries WHERE call = $1", &[&call]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("visitor", "records.list"));
}
