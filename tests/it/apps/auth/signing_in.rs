//! `auth-with-password`, `auth-refresh`, `auth-methods`: who gets a token, and what it is.

use inn_tests::Papers;
use serde_json::{Value, json};

use super::{Club, PASSWORD, token};

/// The claims of a token.
fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let body = token.split('.').nth(1).expect("three parts");
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(body).expect("base64url");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[tokio::test]
async fn a_password_gets_the_record_and_a_token_in_pocketbases_shape() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let answer = club.sign_in(&ada.email, PASSWORD).await.expect(200);
    assert_eq!(answer["record"]["email"], json!(ada.email), "one's own email is shown");
    assert_eq!(answer["record"]["collectionName"], "users");
    let claims = claims(&token(&answer));
    let keys: Vec<_> = claims.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["collectionId", "exp", "id", "refreshable", "type"]);
    assert_eq!((&claims["id"], &claims["type"]), (&json!(ada.id), &json!("auth")));
    assert_eq!((&claims["collectionId"], &claims["refreshable"]), (&json!("_pb_users_auth_"), &json!(true)));
    let days = (claims["exp"].as_i64().unwrap() - chrono::Utc::now().timestamp()) / 86_400;
    assert!((4..=5).contains(&days), "{claims}");
}

#[tokio::test]
async fn the_token_counts_with_and_without_bearer_and_on_both_faces() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let path = format!("/api/collections/users/records/{}", ada.id);
    for value in [ada.token.clone(), format!("Bearer {}", ada.token), format!("bearer {}", ada.token)] {
        let below = club.host.door().get(format!("/apps/club{path}")).header("authorization", &value).send().await;
        assert_eq!(below.status, 200, "{}", below.text());
        let own = club.host.door().get(path.as_str()).on_app("club").header("authorization", &value).send().await;
        assert_eq!(own.status, 200, "{}", own.text());
    }
}

#[tokio::test]
async fn unknown_people_and_wrong_passwords_get_the_same_answer() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let mut seen = Vec::new();
    for (identity, password) in [
        (ada.email.as_str(), "wrong-password"),
        ("nobody@club.example", PASSWORD),
        ("ADA@club.example", PASSWORD),
        (&ada.id, PASSWORD),
    ] {
        let reply = club.sign_in(identity, password).await;
        let mut body = reply.refused(400, "sign_in_failed");
        body.as_object_mut().unwrap().remove("call");
        assert_eq!((&body["message"], &body["data"]), (&json!("Failed to authenticate."), &json!({})));
        seen.push(body);
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}

#[tokio::test]
async fn an_empty_form_names_its_fields_and_a_wrong_collection_is_not_there() {
    let club = Club::start().await;
    let answer = club.post("users/auth-with-password", &json!({})).send().await.json();
    assert_eq!(answer["message"], "An error occurred while validating the submitted data.");
    for field in ["identity", "password"] {
        assert_eq!(answer["data"][field], json!({"code": "validation_required", "message": "Cannot be blank."}));
    }
    for body in [json!([]), json!("x"), json!(1)] {
        club.post("users/auth-with-password", &body).send().await.refused(400, "invalid_body");
    }
    let whole = json!({"identity": "a@b.example", "password": "x"});
    for entity in ["notes", "nothing", "%00"] {
        let refused = club.post(&format!("{entity}/auth-with-password"), &whole).send().await.refused(404, "not_found");
        assert_eq!(refused["message"], "Missing or invalid collection context.");
    }
    let long = json!({"identity": "a".repeat(100_000), "password": "x"});
    assert_eq!(club.post("users/auth-with-password", &long).send().await.status, 400);
    let nul = json!({"identity": "a\u{0}b", "password": "x\u{0}"});
    assert_eq!(club.post("users/auth-with-password", &nul).send().await.status, 400);
}

#[tokio::test]
async fn other_fields_may_name_an_account_when_the_app_says_so() {
    let club =
        Club::with(json!({"passwordAuth": {"enabled": true, "identityFields": ["nick", "email"]}}), |_| {}).await;
    let ada = club.sign_up("ada").await;
    let nick = json!({"nick": "countess"});
    club.host.door().patch(Club::path(&format!("users/records/{}", ada.id)), &nick).by(&ada).send().await.expect(200);
    club.sign_in("countess", PASSWORD).await.expect(200);
    club.sign_in(&ada.email, PASSWORD).await.expect(200);
    let with = |field: &str| json!({"identity": "countess", "password": PASSWORD, "identityField": field});
    club.post("users/auth-with-password", &with("nick")).send().await.expect(200);
    club.post("users/auth-with-password", &with("email")).send().await.refused(400, "sign_in_failed");
    let other = club.post("users/auth-with-password", &with("name")).send().await;
    assert_eq!((other.status, &other.json()["data"]["identityField"]["code"]), (400, &json!("validation_in_invalid")));
}

#[tokio::test]
async fn the_auth_rule_keeps_people_out_also_of_a_refresh() {
    let club = Club::with(json!({"authRule": "nick != 'banned'"}), |_| {}).await;
    let ada = club.sign_up("ada").await;
    club.post("users/auth-refresh", &json!({})).by(&ada).send().await.expect(200);
    let path = Club::path(&format!("users/records/{}", ada.id));
    club.host.door().patch(path, &json!({"nick": "banned"})).by(&club.owner).send().await.expect(200);
    for reply in
        [club.sign_in(&ada.email, PASSWORD).await, club.post("users/auth-refresh", &json!({})).by(&ada).send().await]
    {
        let refused = reply.refused(403, "forbidden");
        assert_eq!(refused["message"], "The request doesn't satisfy the collection requirements to authenticate.");
    }
    club.sign_in(&ada.email, "wrong-password").await.refused(400, "sign_in_failed");
}

#[tokio::test]
async fn a_refresh_needs_a_token_of_this_collection_and_gives_a_new_one() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let answer = club.post("users/auth-refresh", &json!({})).by(&ada).send().await.expect(200);
    assert_eq!(answer["record"]["id"], json!(ada.id));
    let fresh = Papers::Bearer(token(&answer));
    club.get(&format!("users/records/{}", ada.id)).by(fresh).send().await.expect(200);
    let guest = club.post("users/auth-refresh", &json!({})).send().await.refused(401, "unauthenticated");
    assert_eq!(guest["message"], "The request requires valid record authorization token.");
    club.post("users/auth-refresh", &json!({})).by(&club.owner).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_token_that_does_not_hold_makes_a_guest() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let (signed, _) = ada.token.rsplit_once('.').unwrap();
    let forged = format!("{signed}.{}", "A".repeat(43));
    for token in [forged.as_str(), "a.b.c", ".."] {
        let papers = || Papers::Bearer(token.to_owned());
        let seen = club.get("users/records").by(papers()).send().await.expect(200);
        assert_eq!(seen["totalItems"], 0, "{token}");
        club.post("users/auth-refresh", &json!({})).by(papers()).send().await.refused(401, "unauthenticated");
    }
    // A token of one app is nothing in another.
    let other = club.host.door().get("/apps/kanban/api/collections/boards/records").by(&ada).send().await;
    assert_eq!(other.status, 401, "{}", other.text());
    club.host.door().get("/v1/session").by(&ada).send().await.refused(401, "invalid_token");
}

#[tokio::test]
async fn the_ways_of_signing_in_are_told_to_everybody() {
    let club = Club::with(json!({"otp": {"enabled": true}}), |_| {}).await;
    let told = club.get("users/auth-methods").send().await.expect(200);
    assert_eq!(
        told,
        json!({
            "password": {"identityFields": ["email"], "enabled": true}, "oauth2": {"providers": [], "enabled": false},
            "mfa": {"enabled": false, "duration": 0}, "otp": {"enabled": true, "duration": 180},
            "authProviders": null, "usernamePassword": false, "emailPassword": true,
        })
    );
    club.get("notes/auth-methods").send().await.refused(404, "not_found");
    club.post("users/auth-with-oauth2", &json!({})).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn a_way_of_signing_in_that_is_off_is_refused_by_name() {
    let club = Club::with(json!({"passwordAuth": {"enabled": false, "identityFields": []}}), |_| {}).await;
    let refused = club.sign_in("ada@club.example", PASSWORD).await.refused(403, "forbidden");
    assert_eq!(refused["message"], "The collection is not configured to allow password authentication.");
    let reset = club.post("users/request-password-reset", &json!({"email": ""})).send().await;
    assert_eq!(reset.refused(400, "invalid_parameter")["message"], refused["message"]);
    for (path, body) in
        [("request-otp", json!({"email": "a@b.example"})), ("auth-with-otp", json!({"otpId": "x", "password": "1"}))]
    {
        club.post(&format!("users/{path}"), &body).send().await.refused(403, "forbidden");
    }
}

#[tokio::test]
async fn an_app_without_accounts_of_its_own_has_nobody_to_sign_in() {
    let club = Club::start().await;
    let body = json!({"identity": "ada@club.example", "password": PASSWORD});
    let reply = club.host.door().post("/apps/kanban/api/collections/users/auth-with-password", &body).send().await;
    let refused = reply.refused(403, "forbidden");
    assert_eq!(refused["leg"], "app");
}

#[tokio::test]
async fn guessing_is_slowed_down_for_each_account_by_address() {
    let club = Club::with(json!({}), |settings| settings.rates.auth = 5).await;
    let mut last = 0;
    for _ in 0..6 {
        last = club.sign_in("nobody@club.example", "wrong-password").await.status;
    }
    assert_eq!(last, 429);
    let limited = club.sign_in("nobody@club.example", PASSWORD).await;
    assert!(limited.header("retry-after").is_some());
    assert_eq!(club.sign_in("somebody@club.example", "wrong-password").await.status, 400, "others are not touched");
}

#[tokio::test]
async fn what_somebody_signed_in_does_is_in_the_register_under_that_name() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let reply = club.get("notes/records").by(&ada).send().await;
    reply.expect(200);
    let refused = club.post("users/impersonate/x", &json!({})).by(&ada).send().await;
    refused.refused(403, "forbidden");
    let sql = club.host.sql().await;
    for (call, action, outcome) in
        [(reply.call_id(), "records.list", "done"), (refused.call_id(), "auth.impersonate", "refused:forbidden")]
    {
        let id = call.parse::<inn_protocol::CallId>().unwrap().uuid();
        let row = sql
            .query_one("SELECT caller, action, outcome, facts FROM inn.entries WHERE call = $1", &[&id])
            .await
            .unwrap();
        let facts: Value = serde_json::from_str(row.get(3)).unwrap();
        assert_eq!(
            (row.get::<_, &str>(0), row.get::<_, &str>(1), row.get::<_, &str>(2)),
            ("app_user", action, outcome)
        );
        assert_eq!(facts["appUser"], json!(format!("users/{}", ada.id)));
    }
    let signed: i64 = club
        .host
        .count(&format!(
            "SELECT count(*) FROM inn.entries WHERE action = 'auth.with-password' AND target = 'users/{}'",
            ada.id
        ))
        .await;
    assert_eq!(signed, 1, "signing in has an entry that names the account");
}

#[tokio::test]
async fn guests_are_counted_by_address_and_members_are_not_touched() {
    let club = Club::with(json!({}), |settings| settings.rates.data = 3).await;
    let read = || club.post("users/auth-refresh", &json!({})).send();
    for _ in 0..3 {
        read().await.refused(401, "unauthenticated");
    }
    let limited = read().await;
    limited.refused(429, "rate_limited");
    club.get("users/records").by(&club.owner).send().await.expect(200);
}
