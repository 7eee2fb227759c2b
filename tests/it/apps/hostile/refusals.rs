//! The status of everything that can be refused (reference notes on PocketBase, section B), each in its two shapes.

use inn_tests::{Call, Reply};
use reqwest::Method;
use serde_json::{Value, json};

use super::{SLUG, Vault};

/// A refusal has PocketBase's members too; nothing but a field that was sent stands in `data`.
#[track_caller]
fn refused(what: &str, reply: &Reply, status: u16) -> Value {
    let body = reply.expect(status);
    assert_eq!(body["status"], status, "{what}: {body}");
    assert!(body["message"].as_str().is_some_and(|text| text.len() > 10), "{what}: {body}");
    assert!(body["code"].is_string() && body["ok"] == json!(false), "{what}: {body}");
    assert!(body["data"].is_object(), "{what}: {body}");
    body
}

impl Vault {
    fn call(&self, method: &str, path: &str) -> Call {
        self.host.door().call(method.parse::<Method>().unwrap(), format!("/apps/{SLUG}{path}"))
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Call {
        self.call(method, path).json(body)
    }

    fn raw(&self, content_type: Option<&str>, body: &[u8]) -> Call {
        let call = self.call("POST", "/api/collections/notes/records").body(body);
        match content_type {
            Some(content_type) => call.header("content-type", content_type),
            None => call,
        }
    }
}

const GONE: &str = "000000000000000";

#[tokio::test]
async fn each_kind_of_refusal_has_its_status() {
    let vault = Vault::open().await;
    let note = vault.create("notes", &json!({"title": "a note"})).await;
    let shut = vault.create("own", &json!({"name": "shut"})).await;
    let hidden = vault.create("locked", &json!({"name": "x"})).await;
    let notes = "/api/collections/notes/records";
    let account = |name: &str| json!({"email": format!("{name}@vault.example"), "password": "password123", "passwordConfirm": "password123", "name": name});
    for name in ["ann", "banned"] {
        vault.send("POST", "/api/collections/users/records", &account(name)).send().await.expect(200);
    }
    let sign_in = |name: &str, password: &str| {
        let body = json!({"identity": format!("{name}@vault.example"), "password": password});
        vault.send("POST", "/api/collections/users/auth-with-password", &body)
    };
    let token = sign_in("ann", "password123").send().await.expect(200)["token"].as_str().unwrap().to_owned();
    let ann = || inn_tests::Papers::Bearer(token.clone());
    let of = |entity: &str, id: &str| format!("/api/collections/{entity}/records/{id}");
    let name = || json!({"name": "x"});
    let cases: Vec<(u16, &str, Call)> = vec![
        // 400: filter, sort, page, body, type, failed create rule, validation.
        (400, "a filter that is none", vault.call("GET", &format!("{notes}?filter=title%3D"))),
        (400, "a sort that is none", vault.call("GET", &format!("{notes}?sort=title%2C%2Cid"))),
        (400, "a page that is no number", vault.call("GET", &format!("{notes}?page=one"))),
        (400, "a size that is no number", vault.call("GET", &format!("{notes}?perPage=1.5"))),
        (400, "a flag that is none", vault.call("GET", &format!("{notes}?skipTotal=yes"))),
        (400, "a write to a view", vault.send("POST", "/api/collections/titles/records", &json!({"title": "x"}))),
        (400, "a change of a view", vault.send("PATCH", &of("titles", &note), &json!({"title": "x"}))),
        (400, "a delete in a view", vault.call("DELETE", &of("titles", &note))),
        (400, "a create rule that fails", vault.send("POST", "/api/collections/own/records", &name())),
        (400, "a wrong sign-in", sign_in("ann", "wrong password")),
        (400, "an empty sign-in", vault.send("POST", "/api/collections/users/auth-with-password", &json!({}))),
        (400, "no client id", vault.send("POST", "/api/realtime", &json!({"subscriptions": []}))),
        // 401: only with papers.
        (401, "a file token for nobody", vault.send("POST", "/api/files/token", &json!({}))),
        (401, "a refresh of nothing", vault.send("POST", "/api/collections/users/auth-refresh", &json!({}))),
        // 403: no rule, wrong audience, what is switched off, who may not sign in.
        (403, "a list without a rule", vault.call("GET", "/api/collections/locked/records")),
        (403, "a view without a rule", vault.call("GET", &of("locked", &hidden))),
        (403, "a view without a rule of what is not there", vault.call("GET", &of("locked", GONE))),
        (403, "a create without a rule", vault.send("POST", "/api/collections/locked/records", &name())),
        (403, "a change without a rule of what is not there", vault.send("PATCH", &of("locked", GONE), &name())),
        (403, "a delete without a rule of what is not there", vault.call("DELETE", &of("locked", GONE))),
        (
            403,
            "a refresh in another collection",
            vault.send("POST", "/api/collections/staff/auth-refresh", &json!({})).by(ann()),
        ),
        (
            403,
            "a password where passwords are off",
            vault.send("POST", "/api/collections/staff/auth-with-password", &json!({"identity": "x", "password": "y"})),
        ),
        (
            403,
            "a code where codes are off",
            vault.send("POST", "/api/collections/users/request-otp", &json!({"email": "ann@vault.example"})),
        ),
        (403, "whom the auth rule keeps out", sign_in("banned", "password123")),
        (403, "a filter about who asks", vault.call("GET", &format!("{notes}?filter=title%20%7E%20%27%40request.%27"))),
        // 404: nothing there, or a rule that fails.
        (404, "a record that is not there", vault.call("GET", &of("notes", GONE))),
        (404, "a view rule that fails", vault.call("GET", &of("own", &shut))),
        (404, "an update rule that fails", vault.send("PATCH", &of("own", &shut), &name())),
        (404, "a delete rule that fails", vault.call("DELETE", &of("own", &shut))),
        (404, "a change of what is not there", vault.send("PATCH", &of("notes", GONE), &json!({}))),
        (404, "a collection that is not there", vault.call("GET", "/api/collections/nope/records")),
        (404, "a create in no collection", vault.send("POST", "/api/collections/nope/records", &name())),
        (
            404,
            "a sign-in where nobody has accounts",
            vault.send("POST", "/api/collections/notes/auth-with-password", &json!({"identity": "x", "password": "y"})),
        ),
        (
            404,
            "a stream that is not open",
            vault.send("POST", "/api/realtime", &json!({"clientId": "x".repeat(40), "subscriptions": []})),
        ),
        (404, "PUT on a record", vault.send("PUT", &of("notes", &note), &json!({}))),
        (404, "POST on a record", vault.send("POST", &of("notes", &note), &json!({}))),
        (404, "DELETE of a list", vault.call("DELETE", notes)),
        // 413: over the limit of the host.
        (413, "a body over the limit", vault.raw(Some("application/json"), &vec![b' '; 3 << 20])),
    ];
    for (status, what, call) in cases {
        let body = refused(what, &call.send().await, status);
        let named: Vec<&String> = body["data"].as_object().unwrap().keys().collect();
        let left_out = ["an empty sign-in", "no client id"].contains(&what);
        assert_eq!(named.is_empty(), !left_out, "{what}: {body}");
    }
    assert_eq!(
        (vault.total("own").await, vault.total("locked").await, vault.total("notes").await),
        (json!(1), json!(1), json!(1))
    );
}

#[tokio::test]
async fn each_kind_of_body_is_read_or_refused() {
    let vault = Vault::open().await;
    let json = Some("application/json");
    let form = Some("application/x-www-form-urlencoded");
    for (status, content_type, body) in [
        (200, json, &b""[..]),
        (200, json, b"{}"),
        (200, json, b"{\"title\":\"x\"}"),
        (200, Some("application/json; charset=utf-8"), b"{\"title\":\"x\"}"),
        (200, form, b"title=x&count=1"),
        (200, None, b""),
        (400, json, b"[]"),
        (400, json, b"[{\"title\":\"x\"}]"),
        (400, json, b"\"x\""),
        (400, json, b"12"),
        (400, json, b"true"),
        (400, json, b"{"),
        (400, json, b"{\"title\":\"x\"} rubbish"),
        (400, json, b"\xff\xfe"),
        (400, Some("application/xml"), b"<title>x</title>"),
        (400, Some("text/plain"), b"{\"title\":\"x\"}"),
        (400, Some("rubbish"), b"{\"title\":\"x\"}"),
        (400, None, b"{\"title\":\"x\"}"),
        (400, Some("multipart/form-data"), b"x"),
        (
            400,
            Some("multipart/form-data; boundary=b"),
            b"--b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nx",
        ),
    ] {
        let what = format!("{content_type:?} {}", String::from_utf8_lossy(body));
        let before = vault.total("notes").await;
        let reply = vault.raw(content_type, body).send().await;
        if status == 200 {
            reply.expect(200);
        } else {
            let told = refused(&what, &reply, status);
            assert_eq!(told["data"], json!({}), "{what}");
            assert_eq!(vault.total("notes").await, before, "{what}: nothing is kept");
        }
    }
}

#[tokio::test]
async fn too_many_calls_are_told_when_to_come_again() {
    let host = inn_tests::TestHost::with(|settings| settings.rates.data = 3).await;
    let owner = host.owner().await;
    host.deploy(&owner, SLUG, inn_tests::bundle::project(SLUG, "multi-user", &super::collections())).await;
    let vault = Vault { host, owner };
    for _ in 0..3 {
        vault.list("notes", &[]).send().await.expect(200);
    }
    let reply = vault.list("notes", &[]).send().await;
    let body = refused("one too many", &reply, 429);
    assert_eq!(body["data"], json!({}));
    assert!(reply.header("retry-after").is_some(), "PocketBase leaves it out; ours says when");
}
