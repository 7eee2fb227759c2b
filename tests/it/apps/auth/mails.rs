//! What needs a mail: a forgotten password, an address to confirm, a new address.

use inn_tests::Papers;
use serde_json::json;

use super::{Club, PASSWORD, linked};

#[tokio::test]
async fn a_forgotten_password_is_replaced_by_mail_and_the_link_works_once() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    club.post("users/request-password-reset", &json!({"email": ada.email})).send().await.expect(204);
    let token = linked(&club.mail(&ada.email, "confirm-password-reset").await);
    let confirm = |password: &str| {
        let body = json!({"token": token, "password": password, "passwordConfirm": password});
        club.post("users/confirm-password-reset", &body).send()
    };
    let short = confirm("short").await;
    assert_eq!((short.status, short.json()["data"]["password"]["code"].is_string()), (400, true), "{}", short.text());
    confirm("new-password").await.expect(204);
    assert_eq!(club.looks(&ada).await, 404, "every token ended");
    club.sign_in(&ada.email, PASSWORD).await.refused(400, "sign_in_failed");
    let answer = club.sign_in(&ada.email, "new-password").await.expect(200);
    assert_eq!(answer["record"]["verified"], true, "the mail was read");
    let again = confirm("third-password").await;
    assert_eq!((again.status, &again.json()["data"]["token"]["code"]), (400, &json!("validation_invalid_token")));
}

#[tokio::test]
async fn an_address_is_confirmed_by_mail() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    club.post("users/request-verification", &json!({"email": ada.email})).send().await.expect(204);
    let token = linked(&club.mail(&ada.email, "confirm-verification").await);
    // A token of one kind is none of another.
    let misused = json!({"token": token, "password": "new-password", "passwordConfirm": "new-password"});
    assert_eq!(club.post("users/confirm-password-reset", &misused).send().await.status, 400);
    assert_eq!(club.get("users/records").by(Papers::Bearer(token.clone())).send().await.expect(200)["totalItems"], 0);
    club.post("users/confirm-verification", &json!({"token": token})).send().await.expect(204);
    let answer = club.sign_in(&ada.email, PASSWORD).await.expect(200);
    assert_eq!(answer["record"]["verified"], true);
    assert_eq!(club.looks(&ada).await, 200, "nothing ended");
    club.post("users/confirm-verification", &json!({"token": "x.y.z"})).send().await.refused(400, "invalid_value");
}

#[tokio::test]
async fn a_new_address_is_confirmed_at_the_new_address_with_the_password() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    let ask = |email: &str| club.post("users/request-email-change", &json!({"newEmail": email})).by(&ada).send();
    for (email, code) in [(ada.email.as_str(), "validation_not_in_invalid"), ("nobody", "validation_is_email")] {
        let reply = ask(email).await;
        assert_eq!((reply.status, &reply.json()["data"]["newEmail"]["code"]), (400, &json!(code)), "{}", reply.text());
    }
    assert_eq!(ask(&bob.email).await.status, 400, "somebody else's");
    club.post("users/request-email-change", &json!({"newEmail": "x@club.example"}))
        .send()
        .await
        .refused(401, "unauthenticated");
    ask("countess@club.example").await.expect(204);
    let token = linked(&club.mail("countess@club.example", "confirm-email-change").await);
    let confirm =
        |password: &str| club.post("users/confirm-email-change", &json!({"token": token, "password": password})).send();
    let wrong = confirm("wrong-password").await;
    assert_eq!(wrong.json()["data"]["password"]["code"], "validation_invalid_password", "{}", wrong.text());
    confirm(PASSWORD).await.expect(204);
    assert_eq!(club.looks(&ada).await, 404, "every token ended");
    club.sign_in("countess@club.example", PASSWORD).await.expect(200);
    assert_eq!(confirm(PASSWORD).await.status, 400, "once");
}

#[tokio::test]
async fn unknown_addresses_are_answered_alike_and_nobody_is_flooded() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    for path in ["request-password-reset", "request-verification"] {
        for email in [ada.email.as_str(), "nobody@club.example", ada.email.as_str(), ada.email.as_str()] {
            let reply = club.post(&format!("users/{path}"), &json!({"email": email})).send().await;
            assert_eq!((reply.status, reply.text().as_str()), (204, ""), "{path} {email}");
        }
        club.mail(&ada.email, &path.replace("request", "confirm")).await;
        let wrong = club.post(&format!("users/{path}"), &json!({"email": "nobody"})).send().await.json();
        assert_eq!(wrong["data"]["email"]["code"], "validation_is_email");
    }
    // The receipts of all of them, once they are there: one mail of each purpose went.
    let done =
        "SELECT count(*) FROM inn.entries WHERE action IN ('auth.request-password-reset', 'auth.request-verification')";
    inn_tests::until("six entries", || async { (club.host.count(done).await == 6).then_some(()) }).await;
    let page = club.host.door().get("/mail").by(Papers::Cookie(club.owner.token.clone())).send().await.text();
    assert_eq!(page.matches("<article").count(), 2, "{page}");
    assert!(!page.contains("nobody@club.example"));
}

#[tokio::test]
async fn mails_are_shown_to_owners_of_their_own_tenant_only() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    club.post("users/request-password-reset", &json!({"email": ada.email})).send().await.expect(204);
    club.mail(&ada.email, "confirm-password-reset").await;
    let rival = club.host.rival().await;
    let seen = club.host.door().get("/mail").by(Papers::Cookie(rival.token)).send().await;
    assert!(seen.status == 200 && !seen.text().contains(&ada.email), "{}", seen.text());
    let editor = club.host.editor().await;
    let seen = club.host.door().get("/mail").by(Papers::Cookie(editor.token)).send().await;
    assert!(!seen.text().contains(&ada.email), "{}", seen.text());
}

#[tokio::test]
async fn the_page_behind_the_links_does_nothing_by_itself() {
    let club = Club::start().await;
    let page = club.host.door().get("/_/").on_app("club").send().await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    let script = club.host.door().get("/_/page.js").on_app("club").send().await;
    assert_eq!((script.status, script.header("content-type")), (200, Some("text/javascript; charset=utf-8")));
}

#[tokio::test]
async fn a_template_of_the_apps_own_is_filled_in() {
    let template = json!({"subject": "Hello {RECORD:name}", "body": "<p>{APP_NAME}: <a href=\"{APP_URL}/reset#/auth/confirm-password-reset/{TOKEN}\">go</a> {RECORD:tokenKey}!</p>"});
    let club = Club::with(json!({"resetPasswordTemplate": template}), |_| {}).await;
    let ada = club.sign_up("ada").await;
    club.post("users/request-password-reset", &json!({"email": ada.email})).send().await.expect(204);
    let mail = club.mail(&ada.email, "The Club").await;
    assert!(mail.contains("Hello ada") && mail.contains("club.localhost"), "{mail}");
    let body = json!({"token": linked(&mail), "password": "new-password", "passwordConfirm": "new-password"});
    club.post("users/confirm-password-reset", &body).send().await.expect(204);
}

#[tokio::test]
async fn mail_goes_through_the_server_that_is_set() {
    let (port, letters) = inn_tests::mail_server().await;
    let club = Club::with(json!({}), |settings| {
        settings.mail.smtp_host = Some("127.0.0.1".to_owned());
        settings.mail.smtp_port = port;
        settings.mail.smtp_tls = inn_tests::Tls::None;
        settings.mail.from = Some("inn@example.org".to_owned());
    })
    .await;
    let ada = club.sign_up("ada").await;
    club.post("users/request-password-reset", &json!({"email": ada.email})).send().await.expect(204);
    let letter = inn_tests::until("a letter", || async { letters.lock().unwrap().first().cloned() }).await;
    assert!(letter.contains(&format!("RCPT TO:<{}>", ada.email)) && letter.contains("MAIL FROM:<inn@example.org>"));
    assert!(letter.contains("The Club"), "{letter}");
    let page = club.host.door().get("/mail").by(Papers::Cookie(club.owner.token.clone())).send().await;
    assert_eq!(page.status, 404, "where mail is really sent nothing is shown: {}", page.text());
}
