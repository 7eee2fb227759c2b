//! One-time passwords, and the second of two factors.

use serde_json::{Value, json};

use super::{Club, PASSWORD, token};

fn otp() -> Value {
    json!({"otp": {"enabled": true, "length": 6}})
}

fn both() -> Value {
    json!({"otp": {"enabled": true, "length": 6}, "mfa": {"enabled": true}})
}

/// The code in a mail.
fn code(mail: &str) -> String {
    let words = mail.split(|c: char| c.is_whitespace() || "<>".contains(c));
    let code = words.into_iter().find(|word| word.len() == 6 && word.chars().all(|c| c.is_ascii_digit()));
    code.expect("a code").to_owned()
}

async fn ask(club: &Club, email: &str) -> String {
    let answer = club.post("users/request-otp", &json!({"email": email})).send().await.expect(200);
    answer["otpId"].as_str().expect("an id").to_owned()
}

async fn with_code(club: &Club, id: &str, code: &str, mfa: Option<&str>) -> inn_tests::Reply {
    let body = json!({"otpId": id, "password": code, "mfaId": mfa});
    club.post("users/auth-with-otp", &body).send().await
}

#[tokio::test]
async fn a_code_by_mail_signs_in_once_and_confirms_the_address() {
    let club = Club::with(otp(), |_| {}).await;
    let ada = club.sign_up("ada").await;
    let id = ask(&club, &ada.email).await;
    let code = code(&club.mail(&ada.email, "code").await);
    assert_eq!(code.len(), 6);
    let answer = with_code(&club, &id, &code, None).await.expect(200);
    assert_eq!(answer["record"]["id"], json!(ada.id));
    let again = with_code(&club, &id, &code, None).await.refused(400, "sign_in_failed");
    assert_eq!(again["message"], "Invalid or expired OTP.");
    let me = club.post("users/auth-refresh", &json!({})).by(inn_tests::Papers::Bearer(token(&answer))).send().await;
    assert_eq!(me.expect(200)["record"]["verified"], true);
}

#[tokio::test]
async fn codes_cannot_be_guessed_and_are_kept_nowhere() {
    let club = Club::with(otp(), |_| {}).await;
    let ada = club.sign_up("ada").await;
    let id = ask(&club, &ada.email).await;
    let code = code(&club.mail(&ada.email, "code").await);
    let kept = club
        .host
        .count(&format!("SELECT count(*) FROM inn.app_tickets t WHERE t::text LIKE '%{code}%' AND t.id = '{id}'"))
        .await;
    assert_eq!(kept, 0);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    for _ in 0..5 {
        with_code(&club, &id, wrong, None).await.refused(400, "sign_in_failed");
    }
    with_code(&club, &id, &code, None).await.refused(400, "sign_in_failed");
}

#[tokio::test]
async fn unknown_addresses_get_an_id_too() {
    let club = Club::with(otp(), |_| {}).await;
    let id = ask(&club, "nobody@club.example").await;
    assert_eq!(id.len(), 15);
    with_code(&club, &id, "123456", None).await.refused(400, "sign_in_failed");
    for body in [json!({}), json!({"otpId": "x"}), json!({"otpId": "\u{0}", "password": "1"})] {
        assert_eq!(club.post("users/auth-with-otp", &body).send().await.status, 400);
    }
}

#[tokio::test]
async fn a_new_password_ends_codes_that_are_under_way() {
    let club = Club::with(otp(), |_| {}).await;
    let ada = club.sign_up("ada").await;
    let id = ask(&club, &ada.email).await;
    let code = code(&club.mail(&ada.email, "code").await);
    club.post("users/sign-out", &json!({})).by(&ada).send().await.expect(204);
    with_code(&club, &id, &code, None).await.refused(400, "sign_in_failed");
}

#[tokio::test]
async fn two_factors_are_asked_for_and_must_differ() {
    let club = Club::with(both(), |_| {}).await;
    let body = json!({"email": "ada@club.example", "password": PASSWORD, "passwordConfirm": PASSWORD});
    club.post("users/records", &body).send().await.expect(200);
    let email = "ada@club.example";
    let first = club.sign_in(email, PASSWORD).await;
    assert_eq!(first.status, 401, "{}", first.text());
    let mfa = first.json()["mfaId"].as_str().expect("a ticket").to_owned();
    let twice = json!({"identity": email, "password": PASSWORD, "mfaId": mfa});
    club.post("users/auth-with-password", &twice).send().await.refused(400, "sign_in_failed");
    let id = ask(&club, email).await;
    let code = code(&club.mail(email, "code").await);
    with_code(&club, &id, &code, Some("nothing")).await.refused(400, "sign_in_failed");
    let answer = with_code(&club, &id, &code, Some(&mfa)).await.expect(200);
    assert!(answer["token"].is_string());
    with_code(&club, &id, &code, Some(&mfa)).await.refused(400, "sign_in_failed");
}
