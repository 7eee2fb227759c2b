use inn_tests::drawer::{self, Form};
use inn_tests::{Consent, Reply};
use serde_json::{Value, json};

use super::{created, id, opened, opened_with};

fn off_loopback(settings: &mut inn_server::Settings) {
    settings.http.listen = ([127, 0, 0, 1], inn_tests::host::free_port()).into();
    settings.http.public_url = Some("https://inn.example".parse().unwrap());
}

fn with_token(record: &Value, token: &str) -> String {
    format!("{}?token={token}", drawer::file(record, &record["safe"]))
}

const TOKEN: &str = "/apps/drawer/api/files/token";

fn token(reply: &Reply) -> String {
    reply.expect(200)["token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn a_protected_file_opens_with_papers_or_a_token_and_by_the_view_rule() {
    let (host, owner) = opened_with("none", off_loopback).await;
    let door = host.door();
    let (editor, viewer) = (host.editor().await, host.viewer().await);
    let record =
        created(&host, &owner, &Form::new().text("title", "open").file("safe", "s.png", &drawer::png(5, 5))).await;
    let path = drawer::file(&record, &record["safe"]);
    door.get(&path).send().await.refused(401, "unauthenticated");
    door.get(with_token(&record, "fil_nonsense")).send().await.refused(401, "unauthenticated");
    assert_eq!(door.get(&path).by(&viewer).send().await.status, 200);
    door.call(reqwest::Method::POST, TOKEN).send().await.refused(401, "unauthenticated");
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(&viewer).send().await);
    let opened = door.get(with_token(&record, &taken)).send().await;
    assert_eq!((opened.status, opened.header("content-type")), (200, Some("image/png")));
    assert!(opened.header("cache-control").unwrap().starts_with("private"));
    // Whose read it was is in the register.
    let reader = "SELECT user_id::text FROM inn.entries WHERE action = 'files.read' AND outcome = 'done' ORDER BY at DESC LIMIT 1";
    let user: String = host.sql().await.query_one(reader, &[]).await.unwrap().get(0);
    assert_eq!(format!("usr_{}", user.replace('-', "")), viewer.user);
    // It opens files and nothing else, on its own app and no other.
    door.get(format!("{}?token={taken}", drawer::docs())).send().await.refused(401, "unauthenticated");
    assert_eq!(door.get(drawer::docs()).header("authorization", &*taken).send().await.status, 401);
    // The rule hides the record, so the file is not there either; owners see everything.
    let secret = created(&host, &owner, &Form::new().text("title", "secret").file("safe", "s.txt", b"s")).await;
    door.get(drawer::file(&secret, &secret["safe"])).by(&editor).send().await.refused(404, "not_found");
    door.get(with_token(&secret, &taken)).send().await.refused(404, "not_found");
    assert_eq!(door.get(drawer::file(&secret, &secret["safe"])).by(&owner).send().await.status, 200);
    // A token that means nothing is passed over, and what else was shown counts.
    assert_eq!(door.get(with_token(&record, "fil_nonsense")).by(&viewer).send().await.status, 200);
}

#[tokio::test]
async fn a_token_ends_with_the_session_behind_it_and_by_itself() {
    let (host, owner) = opened_with("none", off_loopback).await;
    let door = host.door();
    let record = created(&host, &owner, &Form::new().file("safe", "s.txt", b"s")).await;
    let viewer = host.viewer().await;
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(&viewer).send().await);
    assert_eq!(door.get(with_token(&record, &taken)).send().await.status, 200);
    door.delete("/v1/session").by(&viewer).send().await.expect(200);
    door.get(with_token(&record, &taken)).send().await.refused(401, "unauthenticated");

    let viewer = host.viewer().await;
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(&viewer).send().await);
    let later = "UPDATE inn.file_tokens SET expires_at = clock_timestamp() - interval '1 second'";
    host.sql().await.execute(later, &[]).await.unwrap();
    door.get(with_token(&record, &taken)).send().await.refused(401, "unauthenticated");
    let lifetime = "SELECT count(*) FROM inn.file_tokens WHERE expires_at > clock_timestamp() + interval '181 seconds'";
    assert_eq!(host.count(lifetime).await, 0);
    inn_tests::until("expired tokens to be forgotten", || async {
        (host.count("SELECT count(*) FROM inn.file_tokens").await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_agents_token_opens_what_its_scopes_do_until_the_grant_is_revoked() {
    let (host, owner) = opened().await;
    let door = host.door();
    let record = created(&host, &owner, &Form::new().text("title", "open").file("safe", "s.txt", b"s")).await;
    let path = drawer::file(&record, &record["safe"]);
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, drawer::SLUG, &["data:docs:read"], &Consent::default()).await;
    assert_eq!(door.get(&path).by(&agent).send().await.status, 200, "it may sign as well");
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(&agent).send().await);
    assert_eq!(door.get(with_token(&record, &taken)).send().await.status, 200);
    let entry =
        "SELECT facts FROM inn.entries WHERE action = 'files.read' AND outcome = 'done' ORDER BY at DESC LIMIT 1";
    let facts: String = host.sql().await.query_one(entry, &[]).await.unwrap().get(0);
    assert!(facts.contains("\"via\":\"file_token\""), "{facts}");
    // Rules count for an agent even when its person is an owner.
    let secret = created(&host, &owner, &Form::new().text("title", "secret").file("safe", "s.txt", b"s")).await;
    door.get(with_token(&secret, &taken)).send().await.refused(404, "not_found");
    door.delete(format!("/v1/grants/{}", agent.grant)).by(&owner).send().await.expect(200);
    door.get(with_token(&record, &taken)).send().await.refused(401, "token_revoked");

    let mut writer = host.new_agent().await;
    writer.obtain(&owner, drawer::SLUG, &["data:docs:write"], &Consent::default()).await;
    door.get(&path).by(&writer).send().await.refused(403, "insufficient_scope");
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(&writer).send().await);
    door.get(with_token(&record, &taken)).send().await.refused(403, "insufficient_scope");
}

#[tokio::test]
async fn what_becomes_protected_is_protected_at_once() {
    let (host, owner) = opened_with("multi-user", off_loopback).await;
    let door = host.door();
    let form = Form::new().text("title", "secret").file("one", "a.txt", b"a");
    let record = created(&host, &owner, &form).await;
    let path = drawer::file(&record, &record["one"]);
    assert_eq!(door.get(&path).send().await.status, 200);
    let mut files = drawer::files("multi-user");
    let mut schema: Value = serde_json::from_slice(&files["pb/pb_schema.json"]).unwrap();
    for field in schema[0]["fields"].as_array_mut().unwrap() {
        if field["name"] == "one" {
            field["protected"] = json!(true);
        }
    }
    files.insert("pb/pb_schema.json".to_owned(), schema.to_string().into_bytes());
    host.deploy(&owner, drawer::SLUG, files).await;
    door.get(&path).send().await.refused(404, "not_found");
    assert_eq!(door.get(&path).by(&owner).send().await.status, 200);
    assert_eq!(door.get(drawer::doc(id(&record))).by(&owner).send().await.status, 200);
}

#[tokio::test]
async fn a_user_of_the_app_opens_protected_files_by_a_token_until_the_password_changes() {
    let (host, _) = opened_with("multi-user", off_loopback).await;
    let door = host.door();
    let users = |path: &str| format!("/apps/{}/api/collections/users/{path}", drawer::SLUG);
    let sign_up = |name: &'static str| {
        let form = Form::new()
            .text("email", &format!("{name}@drawer.example"))
            .text("password", "12345678")
            .text("passwordConfirm", "12345678")
            .file("avatar", "me.png", &drawer::png(4, 4));
        let call = form.call(door, reqwest::Method::POST, users("records"));
        async move { call.send().await.expect(200) }
    };
    let sign_in = |name: &'static str, password: &'static str| {
        let body = json!({"identity": format!("{name}@drawer.example"), "password": password});
        let call = door.post(users("auth-with-password"), &body);
        async move { call.send().await.expect(200) }
    };
    let (ada, bob) = (sign_up("ada").await, sign_up("bob").await);
    let session = sign_in("ada", "12345678").await;
    let papers = || inn_tests::Papers::Bearer(session["token"].as_str().unwrap().to_owned());
    // Who signed up sees no more than the rules let: the record of the answer is looked at with the new token.
    let record = &session["record"];
    let avatar = |record: &Value, name: &Value| {
        format!("/apps/{}/api/files/users/{}/{}", drawer::SLUG, id(record), name.as_str().unwrap())
    };
    let own = avatar(record, &record["avatar"]);
    // Nobody is a guest here, whom the rule does not let see it.
    door.get(&own).send().await.refused(404, "not_found");
    let taken = token(&door.call(reqwest::Method::POST, TOKEN).by(papers()).send().await);
    assert_eq!(taken.split('.').count(), 3, "PocketBase's own kind");
    let opened = door.get(format!("{own}?token={taken}")).send().await;
    assert_eq!((opened.status, opened.header("content-type")), (200, Some("image/png")));
    assert_eq!(door.get(&own).by(papers()).send().await.status, 200);
    // Somebody else's falls under the rule.
    let sql = format!("SELECT avatar FROM {}.users WHERE id = $1", host.app_schema(drawer::SLUG).await);
    let others: String = host.sql().await.query_one(&sql, &[&id(&bob)]).await.unwrap().get(0);
    let others = avatar(&bob, &json!(others));
    door.get(format!("{others}?token={taken}")).send().await.refused(404, "not_found");
    // It is no token for anything else, and one for anything else opens no files.
    let look = door.get(users(&format!("records/{}", id(&ada))));
    assert_ne!(look.header("authorization", taken.as_str()).send().await.status, 200);
    let auth = session["token"].as_str().unwrap();
    door.get(format!("{own}?token={auth}")).send().await.refused(404, "not_found");
    let change = json!({"oldPassword": "12345678", "password": "87654321", "passwordConfirm": "87654321"});
    door.patch(users(&format!("records/{}", id(&ada))), &change).by(papers()).send().await.expect(200);
    door.get(format!("{own}?token={taken}")).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn a_rule_can_tell_a_file_from_its_record() {
    let host = inn_tests::TestHost::start().await;
    let owner = host.owner().await;
    let mut files = drawer::files("none");
    let rule = "\"viewRule\":\"title != 'secret'\"";
    inn_tests::bundle::edit(
        &mut files,
        "pb/pb_schema.json",
        rule,
        "\"viewRule\":\"@request.context = 'protectedFile' || title != 'secret'\"",
    );
    host.deploy(&owner, drawer::SLUG, files).await;
    let viewer = host.viewer().await;
    let record = created(&host, &owner, &Form::new().text("title", "secret").file("safe", "s.txt", b"s")).await;
    host.door().get(drawer::doc(id(&record))).by(&viewer).send().await.refused(404, "not_found");
    let file = host.door().get(drawer::file(&record, &record["safe"])).by(&viewer).send().await;
    assert_eq!((file.status, file.body.as_slice()), (200, &b"s"[..]));
}
