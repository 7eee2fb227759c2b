//! Somebody who would like to be somebody else.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{SLUG, Vault};

fn account(id: &str, email: &str) -> Value {
    json!({"id": id, "email": email, "password": "password123", "passwordConfirm": "password123"})
}

/// Rules compare `@request.auth.id` with ids that records hold: an account of another collection with the same id would
/// pass for the one they mean.
#[tokio::test]
async fn an_id_belongs_to_one_account_of_all_collections() {
    let vault = Vault::open().await;
    let sign_up = |entity: &str, id: &str| {
        let body = account(id, &format!("{id}@{entity}.example"));
        vault.host.door().post(Vault::records(entity), &body)
    };
    sign_up("staff", "victim000000000").send().await.expect(200);
    for by in [None, Some(&vault.owner)] {
        let call = sign_up("users", "victim000000000");
        let reply = match by {
            Some(owner) => call.by(owner).send().await,
            None => call.send().await,
        };
        let told = reply.refused(400, "not_unique");
        assert_eq!(told["data"]["id"]["code"], "validation_invalid_auth_id", "{told}");
    }
    // A record that is no account may have it.
    vault.create("notes", &json!({"id": "victim000000000", "title": "x"})).await;
    // In one batch, the first of two is there already when the second comes.
    let create = |entity: &str| json!({"method": "POST", "url": format!("/api/collections/{entity}/records"), "body": account("twice0000000000", "twice@vault.example")});
    let batch = json!({"requests": [create("users"), create("staff")]});
    let reply = vault.host.door().post(format!("/apps/{SLUG}/api/batch"), &batch).by(&vault.owner).send().await;
    let told = reply.expect(400);
    let second = &told["data"]["requests"]["1"]["response"]["data"]["id"]["code"];
    assert_eq!(second, "validation_invalid_auth_id", "{told}");
    // All at once: one of each pair.
    let pairs = (0..8).flat_map(|number| ["users", "staff"].map(|entity| (entity, format!("race{number}0000000000"))));
    let calls: Vec<_> = pairs.map(|(entity, id)| sign_up(entity, &id).by(&vault.owner).send()).collect();
    let statuses: Vec<u16> = join_all(calls).await.iter().map(|reply| reply.status).collect();
    for pair in statuses.chunks(2) {
        assert!(pair == [200, 400] || pair == [400, 200], "{statuses:?}");
    }
    // Whoever is gone leaves the id behind.
    let path = format!("{}/victim000000000", Vault::records("staff"));
    vault.host.door().delete(path).by(&vault.owner).send().await.expect(204);
    sign_up("users", "victim000000000").send().await.expect(200);
}
