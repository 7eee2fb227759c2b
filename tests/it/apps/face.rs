//! An app's own origin, and the same API below the platform.

use inn_tests::{Papers, Reply, Signing, TestHost, kanban};
use serde_json::json;

#[tokio::test]
async fn the_ui_is_served_on_the_apps_own_origin_under_a_strict_policy() {
    let host = TestHost::start().await;
    let door = host.door();
    let page = door.get("/").on_app(kanban::SLUG).send().await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")), "{}", page.text());
    let policy = page.header("content-security-policy").expect("a policy");
    for directive in ["default-src 'self'", "object-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(directive), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let tag = page.header("etag").unwrap().to_owned();
    let again = door.get("/").on_app(kanban::SLUG).header("if-none-match", tag).send().await;
    assert_eq!(again.status, 304);
    let script = door.get("/app.js").on_app(kanban::SLUG).send().await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
    for path in ["/nothing.js", "/../manifest.json", "/%2e%2e/manifest.json", "/manifest.json", "/pb_schema.json"] {
        door.get(path).on_app(kanban::SLUG).send().await.refused(404, "not_found");
    }
}

#[tokio::test]
async fn nothing_an_app_serves_runs_on_the_platforms_origin() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    for path in ["/apps/kanban/", "/apps/kanban/index.html", "/apps/kanban/app.js"] {
        let reply = door.get(path).by(&owner).send().await;
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
    let reply = door.get("/apps/kanban/api/_a2app/describe").by(&owner).send().await;
    reply.expect(200);
    assert_eq!(reply.header("content-security-policy"), Some("sandbox"));
    // Cookies count for nothing there, not even from the platform's own page.
    let cookie = || Papers::Cookie(owner.token.clone());
    let write = door.post(kanban::records("boards"), &json!({"name": "x"})).by(cookie());
    write.header("origin", door.origin()).send().await.refused(401, "agent_token_required");
    let me = door.get("/apps/kanban/api/_a2app/whoami").by(cookie()).send().await.expect(200);
    assert_eq!(me["principal"], json!(null));
}

/// What does not depend on the moment.
fn lasting(reply: &Reply) -> (u16, serde_json::Value) {
    let mut body = reply.json();
    if let Some(object) = body.as_object_mut() {
        object.remove("serverNow");
        object.remove("serverTime");
    }
    (reply.status, body)
}

#[tokio::test]
async fn both_faces_answer_the_same() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let (_, list) = kanban::board(door, &agent).await;
    kanban::card(door, &agent, &list, "Eat chicken").await;
    for path in ["/api/_ops", "/api/collections/cards/records", "/api/health", "/api/_a2app/whoami"] {
        let below = door.get(format!("/apps/kanban{path}")).by(&agent).send().await;
        let own = door.get(path).on_app(kanban::SLUG).by(&agent).send().await;
        assert_eq!(lasting(&below), lasting(&own), "{path}");
        assert_eq!(own.status, 200, "{path}: {}", own.text());
    }
    // A signature is for one name: what was signed for one face is worth nothing on the other.
    let signing = Signing { authority: Some(door.authority.clone()), ..Signing::default() };
    let crossed = door.get("/api/_a2app").on_app(kanban::SLUG).by(&agent).signing(signing).send().await;
    crossed.refused(401, "invalid_signature");
}
