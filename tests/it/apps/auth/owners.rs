//! Owners of the app's tenant are its superusers.

use inn_tests::host::PASSWORD as OWN;
use inn_tests::{Papers, kanban};
use serde_json::json;

use super::{Club, PASSWORD, token};

#[tokio::test]
async fn an_owner_signs_in_as_superuser_and_is_that_on_this_app_only() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let sign_in =
        |email: &str| club.post("_superusers/auth-with-password", &json!({"identity": email, "password": OWN}));
    let answer = sign_in("owner@acme.example").send().await.expect(200);
    assert_eq!(answer["record"]["collectionName"], "_superusers");
    let root = Papers::Bearer(token(&answer));
    let seen = club.get("users/records").by(root.clone()).send().await.expect(200);
    assert_eq!((&seen["totalItems"], &seen["items"][0]["email"]), (&json!(1), &json!(ada.email)));
    let own = club.host.door().get("/api/collections/users/records").on_app("club").by(root.clone()).send().await;
    assert_eq!(own.json()["totalItems"], 1, "{}", own.text());
    let again = club.post("_superusers/auth-refresh", &json!({})).by(root.clone()).send().await.expect(200);
    assert_eq!(again["record"]["email"], "owner@acme.example");
    // Good for this app, and for nothing else of the person's.
    let kanban = club.host.door().get(kanban::records("users")).by(root.clone()).send().await;
    assert_eq!(kanban.status, 401, "{}", kanban.text());
    assert_eq!(club.host.door().get("/v1/session").by(root).send().await.status, 401);
    for email in ["editor@acme.example", "owner@rival.example", "nobody@acme.example"] {
        sign_in(email).send().await.refused(400, "sign_in_failed");
    }
}

#[tokio::test]
async fn signing_out_of_the_platform_everywhere_ends_the_superuser_too() {
    let club = Club::start().await;
    let body = json!({"identity": "owner@acme.example", "password": OWN});
    let answer = club.post("_superusers/auth-with-password", &body).send().await.expect(200);
    let root = Papers::Bearer(token(&answer));
    club.post("_superusers/auth-refresh", &json!({})).by(root.clone()).send().await.expect(200);
    club.host.door().delete("/v1/session?all=true").by(&club.owner).send().await.expect(200);
    assert_eq!(club.post("_superusers/auth-refresh", &json!({})).by(root).send().await.status, 401);
}

#[tokio::test]
async fn owners_set_what_accounts_may_not_set_themselves() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let path = Club::path(&format!("users/records/{}", ada.id));
    let body = json!({"verified": true, "email": "countess@club.example", "password": "set-by-owner", "passwordConfirm": "set-by-owner"});
    club.host.door().patch(path, &body).by(&club.owner).send().await.expect(200);
    assert_eq!(club.looks(&ada).await, 404, "its tokens ended");
    club.sign_in("countess@club.example", "set-by-owner").await.expect(200);
    assert_eq!(club.sign_in(&ada.email, PASSWORD).await.status, 400);
}

#[tokio::test]
async fn an_owner_may_take_a_token_of_an_account_which_is_not_made_to_last() {
    let club = Club::start().await;
    let ada = club.sign_up("ada").await;
    let path = format!("users/impersonate/{}", ada.id);
    let answer = club.post(&path, &json!({"duration": 60})).by(&club.owner).send().await.expect(200);
    let acting = super::Account { id: ada.id.clone(), email: ada.email.clone(), token: token(&answer) };
    assert_eq!(club.looks(&acting).await, 200);
    let again = club.post("users/auth-refresh", &json!({})).by(&acting).send().await.expect(200);
    assert_eq!(token(&again), acting.token, "the same token: it ends when it would have ended");
    club.post(&path, &json!({})).send().await.refused(401, "unauthenticated");
    club.post(&path, &json!({})).by(&ada).send().await.refused(403, "forbidden");
    club.post("users/impersonate/nobody", &json!({})).by(&club.owner).send().await.refused(404, "not_found");
    let negative = club.post(&path, &json!({"duration": -1})).by(&club.owner).send().await.json();
    assert_eq!(negative["data"]["duration"]["params"], json!({"threshold": 0}), "{negative}");
}
