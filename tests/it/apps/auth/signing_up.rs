//! An account is a record that is created by whoever the create rule lets, with a password.

use inn_tests::kanban;
use serde_json::{Value, json};

use super::{Club, PASSWORD};

fn body(email: &str) -> Value {
    json!({"email": email, "password": PASSWORD, "passwordConfirm": PASSWORD})
}

#[tokio::test]
async fn a_guest_signs_up_and_the_password_is_kept_as_a_hash_only() {
    let club = Club::start().await;
    let record = club.post("users/records", &body("ada@club.example")).send().await.expect(200);
    for secret in ["password", "tokenKey", "email"] {
        assert!(record.get(secret).is_none(), "{secret} is not told: {record}");
    }
    let sql = format!("SELECT password, \"tokenKey\" FROM {}.users", club.host.app_schema("club").await);
    let row = club.host.sql().await.query_one(&sql, &[]).await.unwrap();
    let (hash, key): (String, String) = (row.get(0), row.get(1));
    assert!(hash.starts_with("$argon2id$") && key.len() == 50, "{hash} {key}");
    let kept: i64 = club
        .host
        .count("SELECT count(*) FROM inn.receipts WHERE \"row\" LIKE '%password123%' OR \"row\" LIKE '%argon2%'")
        .await;
    assert_eq!(kept, 0, "no receipt holds it");
}

#[tokio::test]
async fn everything_wrong_with_a_sign_up_is_told_in_pocketbases_words() {
    let club = Club::start().await;
    for (change, field, code) in [
        (json!({"passwordConfirm": "other"}), "passwordConfirm", "validation_values_mismatch"),
        (json!({"passwordConfirm": null}), "passwordConfirm", "validation_required"),
        (json!({"password": "short", "passwordConfirm": "short"}), "password", "validation_min_text_constraint"),
        (json!({"verified": true}), "verified", "validation_values_mismatch"),
        (json!({"email": "nobody"}), "email", "validation_is_email"),
    ] {
        let mut sent = body("ada@club.example");
        for (key, value) in change.as_object().unwrap() {
            sent[key] = value.clone();
        }
        let reply = club.post("users/records", &sent).send().await;
        let answer = reply.json();
        assert_eq!((reply.status, &answer["data"][field]["code"]), (400, &json!(code)), "{answer}");
        assert!(!answer.to_string().contains("short"), "a password is never told back: {answer}");
    }
    club.post("users/records", &body("ada@club.example")).send().await.expect(200);
    let twice = club.post("users/records", &body("ada@club.example")).send().await;
    assert_eq!((twice.status, &twice.json()["data"]["email"]["code"]), (400, &json!("validation_not_unique")));
    assert_eq!(club.host.count(&format!("SELECT count(*) FROM {}.users", club.host.app_schema("club").await)).await, 1);
}

#[tokio::test]
async fn what_a_guest_did_is_in_the_register_and_what_a_guest_was_refused_is_not() {
    let club = Club::start().await;
    let entries = "SELECT count(*) FROM inn.entries WHERE caller = 'stranger' AND action = 'records.create'";
    for _ in 0..3 {
        assert_eq!(club.post("users/records", &json!({"email": "nobody"})).send().await.status, 400);
    }
    assert_eq!(club.host.count(entries).await, 0);
    club.post("users/records", &body("ada@club.example")).send().await.expect(200);
    assert_eq!(club.host.count(entries).await, 1);
}

#[tokio::test]
async fn rules_are_evaluated_as_the_record_that_is_signed_in() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    let note = json!({"text": "mine", "owner": ada.id});
    let made = club.post("notes/records", &note).by(&ada).send().await.expect(200);
    // For somebody else, and by a guest.
    club.post("notes/records", &note).by(&bob).send().await.refused(400, "create_refused");
    club.post("notes/records", &note).send().await.refused(400, "create_refused");
    let total = |reply: Value| reply["totalItems"].clone();
    assert_eq!(total(club.get("notes/records").by(&ada).send().await.expect(200)), 1);
    assert_eq!(total(club.get("notes/records").by(&bob).send().await.expect(200)), 0);
    assert_eq!(total(club.get("notes/records").send().await.expect(200)), 0, "a guest sees what the rule lets through");
    let path = format!("notes/records/{}", kanban::id(&made));
    assert_eq!(club.get(&path).by(&bob).send().await.status, 404);
    club.get(&path).by(&ada).send().await.expect(200);
}

#[tokio::test]
async fn an_email_is_shown_to_the_account_itself_and_to_owners() {
    let everybody = json!({"listRule": "", "viewRule": ""});
    let club = Club::with(everybody, |_| {}).await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    let path = format!("users/records/{}", ada.id);
    let email = |record: Value| record.get("email").cloned();
    assert_eq!(email(club.get(&path).by(&ada).send().await.expect(200)), Some(json!(ada.email)));
    assert_eq!(email(club.get(&path).by(&club.owner).send().await.expect(200)), Some(json!(ada.email)));
    assert_eq!(email(club.get(&path).by(&bob).send().await.expect(200)), None);
    assert_eq!(email(club.get(&path).send().await.expect(200)), None);
    let show = json!({"emailVisibility": true});
    club.host.door().patch(Club::path(&path), &show).by(&ada).send().await.expect(200);
    assert_eq!(email(club.get(&path).by(&bob).send().await.expect(200)), Some(json!(ada.email)));
}

#[tokio::test]
async fn whoever_the_manage_rule_puts_in_charge_sets_emails_and_passwords_of_others() {
    let options = json!({"manageRule": "@request.auth.name = 'chief'", "updateRule": "", "viewRule": ""});
    let club = Club::with(options, |_| {}).await;
    let (chief, ada) = (club.sign_up("chief").await, club.sign_up("ada").await);
    let path = Club::path(&format!("users/records/{}", ada.id));
    let change = json!({"email": "new@club.example", "verified": true, "password": "other-password", "passwordConfirm": "other-password"});
    let attempt = |by: &super::Account| club.host.door().patch(path.as_str(), &change).by(by).send();
    let refused = attempt(&ada).await;
    let data = refused.json()["data"].clone();
    assert_eq!(refused.status, 400, "{data}");
    for field in ["email", "verified", "oldPassword"] {
        assert!(data[field]["code"].is_string(), "{field}: {data}");
    }
    let record = attempt(&chief).await.expect(200);
    assert_eq!((&record["verified"], &record["email"]), (&json!(true), &json!("new@club.example")));
    club.sign_in("new@club.example", "other-password").await.expect(200);
    assert_eq!(club.sign_in("new@club.example", PASSWORD).await.status, 400);
}

#[tokio::test]
async fn guests_cannot_keep_the_host_busy_with_passwords() {
    let club = Club::with(json!({}), |settings| settings.rates.auth = 3).await;
    let one = |number: u32| club.post("users/records", &body(&format!("u{number}@club.example"))).send();
    for number in 0..3 {
        one(number).await.expect(200);
    }
    one(3).await.refused(429, "rate_limited");
    let batch: Vec<Value> = (4..6)
        .map(|n| json!({"method": "POST", "url": "/api/collections/users/records", "body": body(&format!("u{n}@club.example"))}))
        .collect();
    let reply = club.host.door().post("/apps/club/api/batch", &json!({"requests": batch})).send().await;
    reply.refused(429, "rate_limited");
    // Members are counted by who they are.
    club.post("users/records", &body("u9@club.example")).by(&club.owner).send().await.expect(200);
}

#[tokio::test]
async fn accounts_are_made_and_their_passwords_changed_in_a_batch_too() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let change = |old: &str| {
        let change = json!({"password": "new-password", "passwordConfirm": "new-password", "oldPassword": old});
        let requests = json!({"requests": [
            {"method": "POST", "url": "/api/collections/users/records", "body": body("bob@club.example")},
            {"method": "PATCH", "url": format!("/api/collections/users/records/{}", ada.id), "body": change},
        ]});
        club.host.door().post("/apps/club/api/batch", &requests).by(&ada).send()
    };
    let wrong = change("wrong").await;
    assert_eq!(wrong.status, 400, "{}", wrong.text());
    club.sign_in("bob@club.example", PASSWORD).await.refused(400, "sign_in_failed");
    let done = change(PASSWORD).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(!done.text().contains("argon2"));
    club.sign_in("bob@club.example", PASSWORD).await.expect(200);
    club.sign_in(&ada.email, "new-password").await.expect(200);
    assert_eq!(club.looks(&ada).await, 404);
}

#[tokio::test]
async fn a_user_of_the_app_asks_for_work_and_sees_what_became_of_it() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    let tasks = "/apps/club/api/_a2app/tasks";
    let ask = json!({"capability": "sum-up", "payload": {}});
    let task = club.host.door().post(tasks, &ask).by(&ada).send().await.expect(201);
    let one = format!("{tasks}/{}", kanban::id(&task));
    club.host.door().get(one.as_str()).by(&ada).send().await.expect(200);
    assert_eq!(club.host.door().get(one.as_str()).by(&bob).send().await.status, 404);
    assert_eq!(club.host.door().post(tasks, &ask).send().await.status, 401, "a guest asks nothing of agents");
    let me = club.host.door().get("/apps/club/api/_a2app/whoami").by(&ada).send().await.expect(200);
    assert_eq!(me["principal"], json!(format!("users/{}", ada.id)));
}
