//! Signing up, in and out (`reference` notes on PocketBase, section E).

use serde_json::{Value, json};

use super::ask::{Ask, Who};
use super::category::Category;
use super::rows::PASSWORD;
use super::schema::id;
use super::suite::Case;

const NOBODY: Who = Who::Nobody;
const ANN: Who = Who::User(0);
const BEN: Who = Who::User(1);
const ROOT: Who = Who::Superuser;

fn users(verb: &str, who: Who, body: Value) -> Ask {
    Ask::post(who, &format!("/api/collections/users/{verb}"), body)
}

fn sign_in(identity: &str, password: &str) -> Ask {
    users("auth-with-password", NOBODY, json!({"identity": identity, "password": password}))
}

fn sign_up(who: Who, short: &str, more: &Value) -> Ask {
    let mut body = json!({
        "id": id(short), "email": format!("{short}@sea.example"), "password": PASSWORD, "passwordConfirm": PASSWORD,
    });
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    body.as_object_mut().expect("an object").retain(|_, value| *value != json!("[none]"));
    Ask::create(who, "users", body)
}

/// In order: each sees what the ones before have left.
pub(crate) fn all() -> Vec<Case> {
    let mut methods = Ask::list(NOBODY, "users");
    "/api/collections/users/auth-methods".clone_into(&mut methods.path);
    let ann = id("ann");
    let mut asks = vec![methods.clone()];
    "/api/collections/crews/auth-methods".clone_into(&mut methods.path);
    asks.push(methods);
    asks.extend([
        sign_in("ann@sea.example", PASSWORD),
        sign_in("ANN@sea.example", PASSWORD),
        sign_in("ann@sea.example", "wrong password"),
        sign_in("nobody@sea.example", PASSWORD),
        sign_in("", ""),
        sign_in("ann@sea.example", ""),
        sign_in(&ann, PASSWORD),
        sign_in("ann@sea.example", PASSWORD).with("fields", "record.id,token"),
        sign_in("ann@sea.example", PASSWORD).with("expand", "crew"),
        users("auth-with-password", NOBODY, json!({})),
        users(
            "auth-with-password",
            NOBODY,
            json!({"identity": "ann@sea.example", "password": PASSWORD, "identityField": "email"}),
        ),
        users(
            "auth-with-password",
            NOBODY,
            json!({"identity": "ann@sea.example", "password": PASSWORD, "identityField": "name"}),
        ),
        Ask::post(NOBODY, "/api/collections/crews/auth-with-password", json!({"identity": "a", "password": "b"})),
        Ask::post(NOBODY, "/api/collections/none/auth-with-password", json!({"identity": "a", "password": "b"})),
        users("auth-refresh", NOBODY, json!({})),
        users("auth-refresh", ANN, json!({})),
        users("auth-refresh", BEN, json!({})),
        users("auth-with-otp", NOBODY, json!({"otpId": "x", "password": "123456"})),
        users("request-otp", NOBODY, json!({"email": "ann@sea.example"})),
        users("request-password-reset", NOBODY, json!({"email": "nobody@sea.example"})),
        users("request-password-reset", NOBODY, json!({"email": "no address"})),
        users("request-password-reset", NOBODY, json!({})),
        users(
            "confirm-password-reset",
            NOBODY,
            json!({"token": "x", "password": "12345678", "passwordConfirm": "12345678"}),
        ),
        users("confirm-password-reset", NOBODY, json!({})),
        users("request-verification", NOBODY, json!({"email": "nobody@sea.example"})),
        users("confirm-verification", NOBODY, json!({"token": "x"})),
        users("confirm-verification", NOBODY, json!({})),
        users("request-email-change", NOBODY, json!({"newEmail": "x@sea.example"})),
        users("request-email-change", ANN, json!({"newEmail": "no address"})),
        users("request-email-change", ANN, json!({"newEmail": "ben@sea.example"})),
        users("confirm-email-change", NOBODY, json!({"token": "x", "password": "y"})),
    ]);
    // Who sees which address.
    for who in [NOBODY, ANN, BEN, ROOT] {
        asks.push(Ask::view(who, "users", &ann));
        asks.push(Ask::view(who, "users", &id("ben")));
        asks.push(Ask::list(who, "users").with("sort", "id"));
    }
    // Signing up.
    asks.extend([
        sign_up(NOBODY, "cleo", &json!({})),
        sign_up(NOBODY, "cora", &json!({"email": "cleo@sea.example"})),
        sign_up(NOBODY, "cora", &json!({"email": "CLEO@sea.example"})),
        sign_up(NOBODY, "dora", &json!({"password": "short", "passwordConfirm": "short"})),
        sign_up(NOBODY, "dora", &json!({"passwordConfirm": "another one"})),
        sign_up(NOBODY, "dora", &json!({"passwordConfirm": "[none]"})),
        sign_up(NOBODY, "dora", &json!({"password": "[none]", "passwordConfirm": "[none]"})),
        sign_up(NOBODY, "dora", &json!({"email": ""})),
        sign_up(NOBODY, "dora", &json!({"email": "[none]"})),
        sign_up(NOBODY, "dora", &json!({"email": "no address"})),
        sign_up(NOBODY, "dora", &json!({"verified": true})),
        sign_up(NOBODY, "dora", &json!({"emailVisibility": true, "name": "Dora", "crew": id("c2")})),
        sign_up(NOBODY, "dana", &json!({"password": "x".repeat(71), "passwordConfirm": "x".repeat(71)})),
        sign_up(NOBODY, "dina", &json!({"password": "x".repeat(72), "passwordConfirm": "x".repeat(72)})),
        sign_up(ROOT, "ed", &json!({"verified": true})),
        sign_up(ROOT, "eve", &json!({"id": id("ann")})),
        sign_in("cleo@sea.example", PASSWORD),
        sign_in("ed@sea.example", PASSWORD),
    ]);
    // An id is one account's, whichever collection it is in; nobody gets to be @request.auth.id of somebody else.
    let pilot = |who, short: &str, email: &str| {
        let body = json!({"id": id(short), "email": email, "password": PASSWORD, "passwordConfirm": PASSWORD});
        Ask::create(who, "pilots", body)
    };
    asks.extend([
        pilot(NOBODY, "ann", "pilot@sea.example"),
        pilot(ROOT, "ann", "pilot@sea.example"),
        pilot(NOBODY, "pia", "ann@sea.example"),
        sign_up(NOBODY, "pia", &json!({})),
        Ask::delete(ROOT, "pilots", &id("pia")),
        sign_up(NOBODY, "pia", &json!({})),
        pilot(NOBODY, "pia", "pia@sea.example"),
        Ask::list(ROOT, "pilots").with("sort", "id"),
    ]);
    // One's own account, and another's.
    let change = |who, short: &str, body| Ask::update(who, "users", &id(short), body);
    asks.extend([
        change(ANN, "ann", json!({"name": "Ann"})),
        change(ANN, "ben", json!({"name": "x"})),
        change(ANN, "ann", json!({"verified": false})),
        change(ANN, "ann", json!({"email": "other@sea.example"})),
        change(ANN, "ann", json!({"email": "ann@sea.example"})),
        change(ANN, "ann", json!({"emailVisibility": true})),
        change(ANN, "ann", json!({"password": "another password"})),
        change(ANN, "ann", json!({"password": "another password", "passwordConfirm": "another password"})),
        change(
            ANN,
            "ann",
            json!({"password": "another password", "passwordConfirm": "another password", "oldPassword": "wrong"}),
        ),
        change(ROOT, "ed", json!({"email": "edward@sea.example", "verified": false})),
        change(ROOT, "ed", json!({"password": "a new password", "passwordConfirm": "a new password"})),
        sign_in("edward@sea.example", "a new password"),
        sign_in("edward@sea.example", PASSWORD),
        change(NOBODY, "ann", json!({"name": "x"})),
        // With it go all tokens.
        change(
            ANN,
            "ann",
            json!({"password": "another password", "passwordConfirm": "another password", "oldPassword": PASSWORD}),
        ),
        users("auth-refresh", ANN, json!({})),
        Ask::view(ANN, "users", &ann),
        sign_in("ann@sea.example", "another password"),
        Ask::delete(BEN, "users", &ann),
        Ask::delete(BEN, "users", &id("ben")),
        users("auth-refresh", BEN, json!({})),
        sign_in("ben@sea.example", PASSWORD),
        Ask::list(ROOT, "users").with("sort", "id"),
    ]);
    asks.into_iter().map(|ask| Case::new(Category::Auth, ask)).collect()
}
