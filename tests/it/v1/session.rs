use inn_tests::host::PASSWORD;
use inn_tests::{Papers, TestHost, kanban, snapshot};
use serde_json::json;

#[tokio::test]
async fn signing_in_answers_a_token_a_cookie_and_who_one_is() {
    let host = TestHost::start().await;
    let body = json!({"email": "Owner@ACME.example", "password": PASSWORD});
    let reply = host.door().post("/v1/session", &body).send().await;
    let answer = reply.expect(200);
    assert_eq!(reply.cookie().as_deref(), answer["token"].as_str());
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax") && cookie.contains("Path=/"), "{cookie}");
    let mut shown = answer;
    shown["token"] = "[token]".into();
    insta::assert_snapshot!(snapshot::body(&shown, host.door()));
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_get_the_same_answer() {
    let host = TestHost::start().await;
    let mut answers = Vec::new();
    for (email, password) in [("owner@acme.example", "wrong horse battery"), ("nobody@acme.example", PASSWORD)] {
        let reply = host.door().post("/v1/session", &json!({"email": email, "password": password})).send().await;
        reply.refused(401, "wrong_credentials");
        answers.push(snapshot::of(&reply, host.door()));
        assert!(reply.header("set-cookie").is_none());
    }
    assert_eq!(answers[0], answers[1]);
}

#[tokio::test]
async fn attempts_to_sign_in_are_limited_with_a_time_to_come_back() {
    let host = TestHost::with(|settings| settings.rates.auth = 3).await;
    let body = json!({"email": "owner@acme.example", "password": "wrong horse battery"});
    for _ in 0..3 {
        host.door().post("/v1/session", &body).send().await.refused(401, "wrong_credentials");
    }
    let reply = host.door().post("/v1/session", &body).send().await;
    let refusal = reply.refused(429, "rate_limited");
    assert!((1..=60).contains(&refusal["retryAfterSeconds"].as_u64().unwrap()));
    // What needs no password goes on.
    host.door().get("/v1/keys").send().await.expect(200);
}

#[tokio::test]
async fn signing_out_ends_this_session_and_no_other() {
    let host = TestHost::start().await;
    let (one, other) = (host.owner().await, host.owner().await);
    host.door().delete("/v1/session").by(&one).send().await.expect(200);
    host.door().get("/v1/session").by(&one).send().await.refused(401, "unauthenticated");
    host.door().get("/v1/session").by(&other).send().await.expect(200);
}

#[tokio::test]
async fn signing_out_everywhere_ends_every_session_of_the_person() {
    let host = TestHost::start().await;
    let (one, other, editor) = (host.owner().await, host.owner().await, host.editor().await);
    let answer = host.door().delete("/v1/session?all=true").by(&one).send().await.expect(200);
    // The template's own session is one of them.
    assert!(answer["ended"].as_u64().unwrap() >= 2, "{answer}");
    for ended in [&one, &other] {
        host.door().get("/v1/session").by(ended).send().await.refused(401, "unauthenticated");
    }
    host.door().get("/v1/session").by(&editor).send().await.expect(200);
}

#[tokio::test]
async fn a_made_up_session_token_is_nobody() {
    let host = TestHost::start().await;
    for token in ["ses_", "ses_0123456789abcdef", &format!("ses_{}", "A".repeat(43))] {
        let papers = Papers::Session(token.to_owned());
        host.door().get("/v1/session").by(papers).send().await.refused(401, "unauthenticated");
    }
}

#[tokio::test]
async fn a_person_works_in_one_tenant_at_a_time_and_switches() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    door.post("/v1/tenants", &json!({"slug": "side", "name": "Side project"})).by(&owner).send().await.expect(201);
    let switched = door.patch("/v1/session", &json!({"tenant": "side"})).by(&owner).send().await.expect(200);
    assert_eq!(
        (&switched["session"]["tenant"]["slug"], &switched["session"]["role"]),
        (&json!("side"), &json!("owner"))
    );
    // Apps of the other tenant are out of sight from here.
    assert_eq!(door.get("/v1/apps").by(&owner).send().await.expect(200)["items"], json!([]));
    let view = door.get("/v1/session").by(&owner).send().await.expect(200);
    let mut slugs: Vec<&str> =
        view["tenants"].as_array().unwrap().iter().map(|t| t["slug"].as_str().unwrap()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["acme", "side"]);
    door.patch("/v1/session", &json!({"tenant": "rival"})).by(&owner).send().await.refused(403, "forbidden");
    door.patch("/v1/session", &json!({"tenant": "acme"})).by(&owner).send().await.expect(200);
    let apps = door.get("/v1/apps").by(&owner).send().await.expect(200);
    assert_eq!(apps["items"][0]["slug"], kanban::SLUG);
}

#[tokio::test]
async fn a_taken_tenant_slug_is_refused() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let reply = host.door().post("/v1/tenants", &json!({"slug": "rival", "name": "Me too"})).by(&owner).send().await;
    reply.refused(409, "slug_taken");
    let reply = host.door().post("/v1/tenants", &json!({"slug": "No Slug", "name": "x"})).by(&owner).send().await;
    reply.refused(400, "invalid_parameter");
}

#[tokio::test]
async fn giving_the_password_again_needs_the_right_one() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let confirm = |password: &str| host.door().post("/v1/session/confirm", &json!({"password": password})).by(&owner);
    confirm("wrong horse battery").send().await.refused(401, "wrong_credentials");
    confirm(PASSWORD).send().await.expect(200);
}

#[tokio::test]
async fn a_new_password_ends_the_other_sessions() {
    let host = TestHost::start().await;
    let (one, other) = (host.owner().await, host.owner().await);
    let change =
        |old: &str, new: &str| host.door().put("/v1/session/password", &json!({"old": old, "new": new})).by(&one);
    change("wrong horse battery", "a new long password").send().await.refused(401, "wrong_credentials");
    change(PASSWORD, "short").send().await.refused(400, "invalid_value");
    change(PASSWORD, "a new long password").send().await.expect(200);
    host.door().get("/v1/session").by(&other).send().await.refused(401, "unauthenticated");
    host.door().get("/v1/session").by(&one).send().await.expect(200);
    let old = json!({"email": "owner@acme.example", "password": PASSWORD});
    host.door().post("/v1/session", &old).send().await.refused(401, "wrong_credentials");
    let new = json!({"email": "owner@acme.example", "password": "a new long password"});
    host.door().post("/v1/session", &new).send().await.expect(200);
}

#[tokio::test]
async fn a_handoff_opens_its_app_once() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let answer = door.post("/v1/session/handoff", &json!({"app": kanban::SLUG})).by(&owner).send().await.expect(200);
    let url = url::Url::parse(answer["url"].as_str().unwrap()).unwrap();
    assert_eq!(url.host_str().unwrap().split('.').next(), Some(kanban::SLUG));
    let target = format!("{}?{}", url.path(), url.query().unwrap());
    let entered = door.get(&target).on_app(kanban::SLUG).send().await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")), "{}", entered.text());
    let cookie = entered.cookie().expect("a session of the app's origin");

    let again = door.get(&target).on_app(kanban::SLUG).send().await;
    again.refused(401, "wrong_credentials");

    // The cookie is the person on the app's origin, and nobody anywhere else.
    let me =
        door.get("/api/_a2app/whoami").on_app(kanban::SLUG).by(Papers::Cookie(cookie.clone())).send().await.expect(200);
    assert_eq!(me["principal"], owner.user.as_str());
    door.get("/v1/session").by(Papers::Cookie(cookie.clone())).send().await.refused(401, "unauthenticated");
    door.get("/v1/session").by(Papers::Session(cookie)).send().await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_handoff_is_for_members_of_the_apps_tenant() {
    let host = TestHost::start().await;
    let rival = host.rival().await;
    for app in [kanban::SLUG, "nothing"] {
        let reply = host.door().post("/v1/session/handoff", &json!({"app": app})).by(&rival).send().await;
        reply.refused(404, "unknown_app");
    }
}

#[tokio::test]
async fn a_cookie_writes_only_from_the_platforms_own_page() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let write =
        || door.post("/v1/tenants", &json!({"slug": "side", "name": "Side"})).by(Papers::Cookie(owner.token.clone()));
    write().send().await.refused(403, "forbidden_origin");
    write().header("origin", "https://evil.example").send().await.refused(403, "forbidden_origin");
    write()
        .header("origin", format!("http://{}", door.app_host(kanban::SLUG)))
        .send()
        .await
        .refused(403, "forbidden_origin");
    write().header("origin", "null").send().await.refused(403, "forbidden_origin");
    write().header("origin", door.origin()).send().await.expect(201);
    door.get("/v1/session").by(Papers::Cookie(owner.token.clone())).send().await.expect(200);
}

#[tokio::test]
async fn bodies_that_do_not_fit_are_named() {
    let host = TestHost::start().await;
    let post = |body: &str| host.door().call(reqwest::Method::POST, "/v1/session").body(body.to_owned());
    for body in
        ["{", "[]", "\"x\"", "{}", r#"{"email":1,"password":"x"}"#, r#"{"email":"a@b","password":"x","admin":true}"#]
    {
        post(body).send().await.refused(400, "invalid_body");
    }
}
