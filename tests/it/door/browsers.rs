//! Foreign pages and foreign names.

use inn_tests::{Papers, TestHost, host, kanban};
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn foreign_origins_are_refused_preflight_included() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let app_origin = format!("http://{}", door.app_host(kanban::SLUG));
    let other_app = format!("http://{}", door.app_host("other"));
    for origin in
        ["https://evil.example", "null", "http://localhost", other_app.as_str(), "http://kanban.localhost.evil.example"]
    {
        for (what, call) in [
            ("read on the app", door.get("/api/collections/boards/records").on_app(kanban::SLUG)),
            (
                "write on the app",
                door.post("/api/collections/boards/records", &json!({"name": "x"})).on_app(kanban::SLUG),
            ),
            ("the app's face", door.get(kanban::records("boards")).by(&owner)),
            ("a person", door.get("/v1/session").by(&owner)),
            ("an agent", door.get(kanban::records("boards")).by(&agent)),
            ("sign-in", door.post("/v1/session", &json!({"email": "owner@acme.example", "password": host::PASSWORD}))),
            ("the page", door.get("/").on_app(kanban::SLUG)),
        ] {
            let reply = call.header("origin", origin).send().await;
            assert_eq!(reply.json()["code"], "forbidden_origin", "{what} from {origin}: {}", reply.text());
            reply.refused(403, "forbidden_origin");
            assert!(reply.header("access-control-allow-origin").is_none());
        }
        for call in
            [door.call(Method::OPTIONS, "/v1/session"), door.call(Method::OPTIONS, "/api/_a2app").on_app(kanban::SLUG)]
        {
            let preflight = call.header("origin", origin).header("access-control-request-method", "POST");
            let reply = preflight.header("access-control-request-headers", "authorization").send().await;
            assert!(reply.status >= 400, "a preflight from {origin} was answered: {}", reply.status);
            assert!(
                !reply.headers.keys().any(|name| name.as_str().starts_with("access-control-")),
                "{:?}",
                reply.headers
            );
        }
    }
    // The app's own page may.
    let own = door.post("/api/collections/boards/records", &json!({"name": "x"})).on_app(kanban::SLUG);
    own.header("origin", app_origin).send().await.expect(200);
}

#[tokio::test]
async fn foreign_host_names_lead_nowhere() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (_, port) = door.authority.rsplit_once(':').unwrap();
    for name in [
        "evil.example",
        &format!("evil.example:{port}"),
        "localhost:1",
        &format!("a.kanban.localhost:{port}"),
        "127.0.0.2",
        "localhost",
    ] {
        let reply = door.get("/v1/session").host(name).by(&owner).send().await;
        reply.refused(403, "forbidden_host");
        let reply = door.get("/api/_a2app").host(name).send().await;
        reply.refused(403, "forbidden_host");
    }
    // The machine's own names for itself are the platform's on loopback.
    door.get("/v1/session").host(format!("127.0.0.1:{port}")).by(&owner).send().await.expect(200);
}

#[tokio::test]
async fn a_visitor_at_this_machine_reads_and_its_own_page_writes() {
    let host = TestHost::start().await;
    let door = host.door();
    let origin = format!("http://{}", door.app_host(kanban::SLUG));
    let list = || door.get("/api/collections/boards/records").on_app(kanban::SLUG);
    let create = || door.post("/api/collections/boards/records", &json!({"name": "House"})).on_app(kanban::SLUG);
    list().send().await.expect(200);
    create().send().await.refused(401, "agent_token_required");
    create().header("origin", &origin).send().await.expect(200);
    // Below the platform a visitor reads and does not write, whatever its origin.
    assert_eq!(door.get(kanban::records("boards")).send().await.expect(200)["totalItems"], 1);
    let below = || kanban::create(door, "boards", &json!({"name": "x"}), Papers::Nobody);
    below().send().await.refused(401, "agent_token_required");
    below().header("origin", door.origin()).send().await.refused(401, "agent_token_required");
    // A visitor is nobody to the platform.
    for path in ["/v1/apps", "/v1/session", "/v1/audit", "/v1/members"] {
        door.get(path).send().await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn off_loopback_an_app_is_for_members_only() {
    let port = host::free_port();
    let it = TestHost::with(|settings| {
        settings.http.listen = ([127, 0, 0, 1], port).into();
        settings.http.public_url = Some("https://inn.example".parse().unwrap());
        settings.http.apps_domain = Some("apps.inn.example".to_owned());
    })
    .await;
    let door = it.door();
    assert_eq!(door.authority, "inn.example");
    let origin = "https://kanban.apps.inn.example";
    let list = || door.get("/api/collections/boards/records").on_app(kanban::SLUG);
    list().send().await.refused(401, "unauthenticated");
    list().header("origin", origin).send().await.refused(401, "unauthenticated");
    door.get(kanban::records("boards")).send().await.refused(401, "unauthenticated");
    // Its pages send a stranger to the console.
    let page = door.get("/").on_app(kanban::SLUG).send().await;
    assert_eq!((page.status, page.header("location")), (303, Some("https://inn.example/open/kanban")));
    // The token file of the machine is worth nothing here.
    let token = Papers::Loopback(it.loopback_token(kanban::SLUG));
    list().by(token).send().await.refused(401, "agent_token_required");
    // The machine's own names are not the platform's.
    door.get("/v1/keys").host(format!("127.0.0.1:{port}")).send().await.refused(403, "forbidden_host");
    door.get("/v1/keys").host("localhost").send().await.refused(403, "forbidden_host");
    // Members and signed agents come in as always.
    let owner = it.owner().await;
    door.get(kanban::records("boards")).by(&owner).send().await.expect(200);
    let agent = it.agent(&owner, &["data:boards:read"]).await;
    door.get(kanban::records("boards")).by(&agent).send().await.expect(200);
    // The cookie is bound to this origin and to TLS.
    let body = json!({"email": "owner@acme.example", "password": host::PASSWORD});
    let signed_in = door.post("/v1/session", &body).send().await;
    let cookie = signed_in.header("set-cookie").unwrap();
    assert!(
        cookie.starts_with("__Host-inn-session=") && cookie.contains("Secure") && !cookie.contains("Domain"),
        "{cookie}"
    );
}
