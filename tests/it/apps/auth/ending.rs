//! How tokens end: with the password, the email, the account, or because somebody signs out everywhere.

use serde_json::json;

use super::{Club, PASSWORD, token};

#[tokio::test]
async fn a_new_password_needs_the_old_one_and_ends_every_token() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let other = token(&club.sign_in(&ada.email, PASSWORD).await.expect(200));
    let path = Club::path(&format!("users/records/{}", ada.id));
    let change = |old: Option<&str>| {
        let body = json!({"password": "new-password", "passwordConfirm": "new-password", "oldPassword": old});
        club.host.door().patch(path.as_str(), &body).by(&ada).send()
    };
    for (old, code) in [(None, "validation_required"), (Some("wrong"), "validation_invalid_old_password")] {
        let reply = change(old).await;
        assert_eq!(
            (reply.status, &reply.json()["data"]["oldPassword"]["code"]),
            (400, &json!(code)),
            "{}",
            reply.text()
        );
    }
    assert_eq!(club.looks(&ada).await, 200);
    change(Some(PASSWORD)).await.expect(200);
    assert_eq!(club.looks(&ada).await, 404, "the token that changed it");
    let elsewhere = super::Account { token: other, id: ada.id.clone(), email: ada.email.clone() };
    assert_eq!(club.looks(&elsewhere).await, 404, "and one on another device");
    club.sign_in(&ada.email, PASSWORD).await.refused(400, "sign_in_failed");
    club.sign_in(&ada.email, "new-password").await.expect(200);
}

#[tokio::test]
async fn other_changes_end_nothing() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let path = Club::path(&format!("users/records/{}", ada.id));
    let body = json!({"name": "Ada L.", "email": ada.email, "verified": false});
    club.host.door().patch(path, &body).by(&ada).send().await.expect(200);
    assert_eq!(club.looks(&ada).await, 200);
}

#[tokio::test]
async fn signing_out_everywhere_ends_every_token_at_once() {
    let club = Club::start().await;
    let (ada, bob) = (club.sign_up("ada").await, club.sign_up("bob").await);
    club.post("users/sign-out", &json!({})).send().await.refused(401, "unauthenticated");
    club.post("users/sign-out", &json!({})).by(&ada).send().await.expect(204);
    assert_eq!(club.looks(&ada).await, 404);
    assert_eq!(club.looks(&bob).await, 200, "others stay");
    club.post("users/sign-out", &json!({})).by(&ada).send().await.refused(401, "unauthenticated");
    club.sign_in(&ada.email, PASSWORD).await.expect(200);
}

#[tokio::test]
async fn a_deleted_account_has_no_tokens() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    club.host.door().delete(Club::path(&format!("users/records/{}", ada.id))).by(&ada).send().await.expect(204);
    assert_eq!(club.looks(&ada).await, 404);
    club.post("users/auth-refresh", &json!({})).by(&ada).send().await.refused(401, "unauthenticated");
}

#[tokio::test]
async fn a_token_is_ended_on_every_node_at_once() {
    let mut club = Club::start().await;
    club.host.add_node(|_| {}).await;
    let ada = club.sign_up("ada").await;
    let path = format!("/apps/club/api/collections/users/records/{}", ada.id);
    let second = club.host.doors()[1].clone();
    second.get(path.as_str()).by(&ada).send().await.expect(200);
    club.post("users/sign-out", &json!({})).by(&ada).send().await.expect(204);
    assert_eq!(second.get(path.as_str()).by(&ada).send().await.status, 404);
}

#[tokio::test]
async fn a_node_without_the_key_that_seals_the_tokens_secret_does_not_start() {
    let club = Club::start().await;
    club.sign_up("ada").await;
    let key = club.host.dir().join("keys/secret-1.key");
    let kept = std::fs::read(&key).unwrap();
    std::fs::remove_file(&key).unwrap();
    std::fs::rename(club.host.dir().join("keys"), club.host.dir().join("elsewhere")).unwrap();
    let refused = club.host.refused_node(|settings| {
        settings.data.keys_dir = Some(settings.data.dir.join("elsewhere"));
    });
    assert!(refused.await.contains("secret-<number>.key"), "a given directory without any");
    // With another one instead.
    std::fs::rename(club.host.dir().join("elsewhere"), club.host.dir().join("keys")).unwrap();
    let other = club.host.dir().join("keys/secret-2.key");
    std::fs::write(&other, &kept).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let refused = club.host.refused_node(|_| {}).await;
    assert!(refused.contains("secret-1.key"), "{refused}");
}
