//! Every endpoint of `/v1`.

use inn_http::api::endpoint::{ENDPOINTS, Endpoint};
use inn_tests::host::PASSWORD;
use inn_tests::{Call, bundle, kanban};
use serde_json::{Value, json};

use super::{Sample, World};

/// What a row sends: path with query, and a body.
type Target = fn(&Sample) -> (String, Value);

fn plain(path: &str) -> (String, Value) {
    (path.to_owned(), Value::Null)
}

/// Endpoint, what is sent, and the status for stranger, viewer, editor, owner, key, agent.
#[rustfmt::skip]
const TABLE: &[(&str, Target, [u16; 6])] = &[
    ("POST /v1/session", |_| ("/v1/session".into(), json!({"email": "viewer@acme.example", "password": PASSWORD})), [200, 200, 200, 200, 200, 200]),
    ("GET /v1/session", |_| plain("/v1/session"), [401, 200, 200, 200, 403, 403]),
    ("PATCH /v1/session", |_| ("/v1/session".into(), json!({"tenant": "acme"})), [401, 200, 200, 200, 403, 403]),
    ("DELETE /v1/session", |_| plain("/v1/session"), [401, 200, 200, 200, 403, 403]),
    ("POST /v1/session/confirm", |_| ("/v1/session/confirm".into(), json!({"password": PASSWORD})), [401, 200, 200, 200, 403, 403]),
    ("PUT /v1/session/password", |_| ("/v1/session/password".into(), json!({"old": PASSWORD, "new": PASSWORD})), [401, 200, 200, 200, 403, 403]),
    ("POST /v1/session/handoff", |_| ("/v1/session/handoff".into(), json!({"app": "kanban"})), [401, 200, 200, 200, 403, 403]),
    ("GET /v1/tenants", |_| plain("/v1/tenants"), [401, 200, 200, 200, 403, 403]),
    ("POST /v1/tenants", |s| ("/v1/tenants".into(), json!({"slug": &s.card, "name": "Side"})), [401, 201, 409, 409, 403, 403]),
    ("GET /v1/members", |_| plain("/v1/members"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/members", |_| ("/v1/members".into(), json!({"email": "viewer@acme.example", "role": "viewer"})), [401, 403, 403, 200, 401, 403]),
    ("DELETE /v1/members/{user}", |s| plain(&format!("/v1/members/{}", s.viewer)), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/apps", |_| plain("/v1/apps"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/apps", |_| plain("/v1/apps?slug=kanban"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/apps/{slug}", |_| plain("/v1/apps/kanban"), [401, 200, 200, 200, 401, 403]),
    ("DELETE /v1/apps/{slug}", |_| plain("/v1/apps/spare"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/apps/{slug}/releases", |_| plain("/v1/apps/kanban/releases"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/apps/{slug}/releases/rollback", |s| ("/v1/apps/kanban/releases/rollback".into(), json!({"release": &s.release})), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/agents", |_| plain("/v1/agents"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/agents", |s| ("/v1/agents".into(), json!({"publicKey": &s.public_key, "name": "x"})), [401, 403, 403, 403, 201, 401]),
    ("GET /v1/grant-requests", |_| plain("/v1/grant-requests"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/grant-requests", |_| ("/v1/grant-requests".into(), json!({"app": "kanban", "scopes": ["data:cards:read"]})), [401, 403, 403, 403, 201, 201]),
    ("GET /v1/grant-requests/{id}", |s| plain(&format!("/v1/grant-requests/{}", s.grant_request)), [401, 200, 200, 200, 200, 404]),
    ("POST /v1/grant-requests/{id}/approve", |s| (format!("/v1/grant-requests/{}/approve", s.grant_request), json!({})), [401, 201, 409, 409, 403, 403]),
    ("POST /v1/grant-requests/{id}/refuse", |s| (format!("/v1/grant-requests/{}/refuse", s.grant_request), json!({})), [401, 403, 403, 200, 403, 403]),
    ("GET /v1/grants", |_| plain("/v1/grants"), [401, 200, 200, 200, 401, 403]),
    ("GET /v1/grants/{id}", |s| plain(&format!("/v1/grants/{}", s.grant)), [401, 404, 404, 200, 401, 403]),
    ("DELETE /v1/grants/{id}", |s| plain(&format!("/v1/grants/{}", s.grant)), [401, 404, 404, 200, 401, 401]),
    ("POST /v1/token", |s| ("/v1/token".into(), json!({"grant": &s.grant})), [401, 403, 403, 403, 200, 200]),
    ("POST /v1/explain", |_| ("/v1/explain".into(), json!({"app": "kanban", "action": "app.describe"})), [401, 200, 200, 200, 401, 200]),
    ("GET /v1/requests", |_| plain("/v1/requests?app=kanban"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/requests/claim", |_| ("/v1/requests/claim".into(), json!({"capabilities": ["nothing"]})), [401, 403, 403, 403, 200, 200]),
    ("GET /v1/requests/{id}", |s| plain(&format!("/v1/requests/{}?app=kanban", s.task)), [401, 404, 200, 200, 401, 403]),
    ("POST /v1/requests/{id}/heartbeat", |s| (format!("/v1/requests/{}/heartbeat", s.request), json!({"epoch": s.epoch})), [401, 403, 403, 403, 200, 200]),
    ("POST /v1/requests/{id}/progress", |s| (format!("/v1/requests/{}/progress", s.request), json!({"epoch": s.epoch, "step": "x", "percent": 1})), [401, 403, 403, 403, 200, 200]),
    ("POST /v1/requests/{id}/ask", |s| (format!("/v1/requests/{}/ask", s.request), json!({"epoch": s.epoch, "question": "Which board?"})), [401, 403, 403, 403, 200, 409]),
    ("POST /v1/requests/{id}/complete", |s| (format!("/v1/requests/{}/complete", s.request), json!({"epoch": s.epoch, "result": {"summary": "x"}})), [401, 403, 403, 403, 200, 409]),
    ("POST /v1/requests/complete", |s| ("/v1/requests/complete".into(), json!({"items": [{"id": s.request, "epoch": s.epoch, "result": {"summary": "x"}}]})), [401, 403, 403, 403, 200, 409]),
    ("POST /v1/requests/{id}/fail", |s| (format!("/v1/requests/{}/fail", s.request), json!({"epoch": s.epoch, "reason": "x"})), [401, 403, 403, 403, 200, 409]),
    ("POST /v1/requests/{id}/release", |s| (format!("/v1/requests/{}/release", s.request), json!({"epoch": s.epoch})), [401, 403, 403, 403, 200, 409]),
    ("POST /v1/requests/{id}/cancel", |s| (format!("/v1/requests/{}/cancel", s.task), json!({"app": "kanban"})), [401, 403, 200, 409, 401, 403]),
    ("POST /v1/requests/{id}/answer", |s| (format!("/v1/requests/{}/answer", s.request), json!({"app": "kanban", "answer": "yes"})), [401, 403, 409, 409, 401, 403]),
    ("POST /v1/requests/{id}/take-back", |s| (format!("/v1/requests/{}/take-back", s.request), json!({"app": "kanban"})), [401, 403, 200, 409, 401, 403]),
    ("POST /v1/requests/{id}/end", |s| (format!("/v1/requests/{}/end", s.task), json!({"app": "kanban"})), [401, 403, 200, 409, 401, 403]),
    ("POST /v1/requests/{id}/replay", |s| (format!("/v1/requests/{}/replay", s.task), json!({"app": "kanban"})), [401, 403, 409, 409, 401, 403]),
    ("GET /v1/requests/{id}/why", |s| plain(&format!("/v1/requests/{}/why?app=kanban", s.task)), [401, 404, 200, 200, 401, 403]),
    ("GET /v1/queue-limits", |_| plain("/v1/queue-limits"), [401, 200, 200, 200, 401, 403]),
    ("POST /v1/queue-limits", |_| ("/v1/queue-limits".into(), json!({"kind": "app", "app": "kanban", "weight": 2})), [401, 403, 403, 200, 401, 403]),
    ("POST /v1/requests/cancel", |_| ("/v1/requests/cancel".into(), json!({"app": "kanban", "capability": "nothing"})), [401, 403, 200, 200, 401, 403]),
    ("GET /v1/jobs", |_| plain("/v1/jobs?app=kanban"), [401, 200, 200, 200, 401, 401]),
    ("GET /v1/jobs/{id}", |s| plain(&format!("/v1/jobs/{}?app=kanban", s.job)), [401, 404, 200, 200, 401, 401]),
    ("GET /v1/jobs/{id}/logs", |s| plain(&format!("/v1/jobs/{}/logs?app=kanban", s.job)), [401, 404, 200, 200, 401, 401]),
    ("POST /v1/jobs/{id}/cancel", |s| (format!("/v1/jobs/{}/cancel", s.job), json!({"app": "kanban"})), [401, 403, 200, 409, 401, 401]),
    ("POST /v1/jobs/{id}/retry", |s| (format!("/v1/jobs/{}/retry", s.job), json!({"app": "kanban"})), [401, 403, 409, 409, 401, 403]),
    ("GET /v1/audit", |_| plain("/v1/audit"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/audit/verify", |_| plain("/v1/audit/verify"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/audit/head", |_| plain("/v1/audit/head"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/audit/export", |_| plain("/v1/audit/export"), [401, 403, 403, 200, 401, 403]),
    ("GET /v1/receipts/{call}", |s| plain(&format!("/v1/receipts/{}", s.receipt)), [401, 404, 404, 200, 401, 404]),
    ("GET /v1/keys", |_| plain("/v1/keys"), [200, 200, 200, 200, 200, 200]),
    ("GET /v1/openapi.json", |_| plain("/v1/openapi.json"), [200, 200, 200, 200, 200, 200]),
    ("GET /healthz", |_| plain("/healthz"), [200, 200, 200, 200, 200, 200]),
    ("GET /readyz", |_| plain("/readyz"), [200, 200, 200, 200, 200, 200]),
    ("GET /metrics", |_| plain("/metrics"), [200, 200, 200, 200, 200, 200]),
    ("GET /help/{code}", |_| plain("/help/not_found"), [200, 200, 200, 200, 200, 200]),
];

fn name(endpoint: &Endpoint) -> String {
    format!("{} {}", endpoint.method, endpoint.path)
}

#[test]
fn every_endpoint_has_a_row_and_every_row_an_endpoint() {
    for endpoint in ENDPOINTS {
        let rows = TABLE.iter().filter(|(row, _, _)| *row == name(endpoint)).count();
        assert_eq!(rows, 1, "add one row for {} to TABLE in tests/it/coverage/endpoints.rs", name(endpoint));
    }
    for (row, _, _) in TABLE {
        assert!(ENDPOINTS.iter().any(|endpoint| name(endpoint) == *row), "{row} is no endpoint: take its row out");
    }
}

#[tokio::test]
async fn every_caller_gets_what_the_table_says_and_an_entry() {
    let world = World::new().await;
    let owner = world.host.owner().await;
    world.host.deploy(&owner, "spare", kanban::files()).await;
    let mut problems = Vec::new();
    for endpoint in ENDPOINTS {
        let what = name(endpoint);
        let Some((_, target, expected)) = TABLE.iter().find(|(row, _, _)| *row == what) else { continue };
        let sample = world.sample().await;
        let (path, body) = target(&sample);
        let call = || -> Call {
            let call = world.host.door().call(endpoint.method.parse().unwrap(), &path);
            match &body {
                _ if endpoint.body_limit.is_some() => call.body(bundle::pack(kanban::files())),
                Value::Null => call,
                body => call.json(body),
            }
        };
        problems.extend(world.compare(&what, endpoint.action, &sample, call, *expected).await);
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    // What names something in its address or body names it in the register.
    let query = "SELECT DISTINCT action FROM inn.entries WHERE target = '' AND outcome = 'done' ORDER BY action";
    let rows = world.host.sql().await.query(query, &[]).await.unwrap();
    let nameless: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let nameless: Vec<&str> = nameless.iter().map(String::as_str).filter(|action| !NAMELESS.contains(action)).collect();
    assert!(nameless.is_empty(), "entries of these name nothing: {nameless:?}");
}

/// Lists, one's own session, and what is about many things or about none yet.
#[rustfmt::skip]
const NAMELESS: &[&str] = &[
    "agents.register", "apps.list", "audit.export", "audit.head", "audit.search", "audit.verify", "explain", "grants.list", "jobs.list",
    "members.list", "queue.limits", "requests.cancel-many", "requests.claim", "requests.complete-many", "requests.list", "sessions.confirm", "sessions.handoff",
    "sessions.password", "sessions.sign-in", "sessions.sign-out", "sessions.switch", "sessions.tenants", "sessions.view",
];

#[tokio::test]
async fn what_cannot_be_read_is_in_the_register_too() {
    let world = World::new().await;
    let sample = world.sample().await;
    for (index, papers) in sample.papers.iter().enumerate().skip(1) {
        let call = world.host.door().call(reqwest::Method::POST, "/v1/token").body("{").by(papers.clone());
        let reply = call.send().await;
        reply.refused(400, "invalid_body");
        let call = reply.call_id().parse::<inn_protocol::CallId>().unwrap().uuid();
        let query = "SELECT outcome FROM inn.entries WHERE call = $1";
        let row =
            world.host.sql().await.query_one(query, &[&call]).await.unwrap_or_else(|_| panic!("no entry for {index}"));
        assert_eq!(row.get::<_, &str>(0), "refused:invalid_body");
    }
}
