//! Several writes as one (`reference` notes on PocketBase, section F).

use serde_json::{Value, json};

use super::ask::{Ask, Who};
use super::category::Category;
use super::schema::id;
use super::suite::Case;

const WHO: Who = Who::Superuser;

fn one(method: &str, target: &str, body: Value) -> Value {
    let mut request = json!({"method": method, "url": format!("/api/collections/{target}")});
    request["body"] = body;
    request
}

/// In order: each sees what the ones before have left.
pub(crate) fn all() -> Vec<Case> {
    let make = |short: &str, code: &str| {
        one("POST", "crates/records", json!({"id": id(short), "code": code, "row": code, "shelf": 1}))
    };
    let record = |short: &str| format!("crates/records/{}", id(short));
    let see = |short: &str| Ask::view(WHO, "crates", &id(short));
    let batch = |requests: Value| Ask::post(WHO, "/api/batch", json!({"requests": requests}));
    let asks = vec![
        batch(json!([make("ba", "ba"), make("bb", "bb")])),
        see("ba"),
        see("bb"),
        // The second is not unique: the first does not stay either.
        batch(json!([make("bc", "bc"), one("POST", "crates/records", json!({"id": id("bd"), "code": "ba"}))])),
        see("bc"),
        // One sees what the one before it has written.
        batch(json!([
            make("be", "be"),
            one("PATCH", &record("be"), json!({"code": "be2"})),
            one("DELETE", &record("ba"), json!(null))
        ])),
        see("be"),
        see("ba"),
        // PUT makes what is not there and changes what is.
        batch(json!([
            one("PUT", "crates/records", json!({"id": id("be"), "tag": "put"})),
            one("PUT", "crates/records", json!({"id": id("bf"), "code": "bf", "row": "bf"})),
        ])),
        see("be"),
        see("bf"),
        batch(json!([one("PUT", "crates/records", json!({"code": "noid", "row": "noid", "id": ""}))]))
            .with("fields", "none"),
        // Fields and expand of each.
        batch(json!([
            {"method": "POST", "url": "/api/collections/locks/records?expand=ships&fields=id,expand.ships.title", "body": {"id": id("bl"), "ships": id("s1")}},
        ])),
        batch(json!([])),
        batch(json!({})),
        batch(json!("x")),
        Ask::post(WHO, "/api/batch", json!({})),
        Ask::post(WHO, "/api/batch", json!([])),
        batch(json!([one("GET", "crates/records", json!({}))])),
        batch(json!([{"method": "POST", "url": "/api/health", "body": {}}])),
        batch(json!([{"method": "POST", "url": "/api/collections/users/auth-refresh", "body": {}}])),
        batch(json!([{"method": "NONE", "url": "/api/collections/crates/records", "body": {}}])),
        batch(json!([{"method": "POST", "url": "", "body": {}}])),
        batch(json!([one("POST", "none/records", json!({}))])),
        batch(json!([one("PATCH", &record("gone"), json!({"code": "x"}))])),
        batch(json!([one("DELETE", &record("gone"), json!({}))])),
        batch(json!([make("bg", "bg"), one("POST", "musts/records", json!({"title": ""}))])),
        see("bg"),
        batch(json!([make("bh", "bh"), one("POST", "forms/records", json!({"short": "toolong"}))])),
        see("bh"),
        batch(Value::Array((0..50).map(|n| make(&format!("bm{n}x"), &format!("bm{n}"))).collect())),
        batch(Value::Array((0..51).map(|n| make(&format!("bn{n}x"), &format!("bn{n}"))).collect())),
        Ask::list(WHO, "crates").with("sort", "id").with("perPage", "200").with("filter", "code ~ 'b'"),
    ];
    asks.into_iter().map(|ask| Case::new(Category::Batch, ask)).collect()
}
