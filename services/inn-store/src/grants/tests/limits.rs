//! What goes beyond the scopes at consent, and who may give it.

use std::collections::BTreeMap;
use std::sync::Arc;

use inn_ports::{Apps, Consent, DeployPlan, Grants, NewGrantRequest};
use inn_protocol::app::AppDefinition;
use inn_protocol::people::Role;
use inn_protocol::{AppId, Code, Digest, Refusal};
use serde_json::json;

use crate::people::fixture::{World, code, consent, refusal};

const SCOPES: [&str; 1] = ["queue:summarise-board"];

async fn decide(world: &World, app: AppId, yes: &Consent) -> Result<inn_protocol::grant::Grant, Refusal> {
    let wish = NewGrantRequest { app, ..world.wish(&SCOPES) };
    world.store.request_grant(&world.call("grants.request"), &wish).await.unwrap();
    world.store.approve(&world.call("grants.approve"), wish.id, yes).await.map_err(|error| refusal::<()>(Err(error)))
}

#[tokio::test]
async fn each_extra_of_a_grant_needs_its_role() {
    let world = World::new().await;
    let bob = world.member("bob@example.org", Role::Viewer).await;
    let plain = consent(bob, &SCOPES);
    let others = Consent { others_requests: true, ..consent(bob, &SCOPES) };
    let unsigned = Consent { plain_token: true, ..consent(bob, &SCOPES) };
    let record = Consent { app_record: Some("u1".to_owned()), ..consent(bob, &SCOPES) };
    decide(&world, world.app.id, &plain).await.unwrap();
    for (role, refused) in
        [(Role::Viewer, &[&others, &unsigned, &record][..]), (Role::Editor, &[&unsigned, &record][..])]
    {
        world.member("bob@example.org", role).await;
        for yes in refused {
            let refusal = decide(&world, world.app.id, yes).await.unwrap_err();
            assert_eq!((refusal.code, refusal.leg), (Code::Forbidden, Some("user")), "{role:?} {yes:?}");
            assert!(refusal.who_can_fix.is_some() && refusal.message.contains(role.as_str()), "{}", refusal.message);
        }
    }
    assert_eq!(world.count("SELECT count(*) FROM inn.grants").await, 1);
    assert!(decide(&world, world.app.id, &others).await.unwrap().others_requests);
    world.member("bob@example.org", Role::Owner).await;
    assert!(decide(&world, world.app.id, &unsigned).await.unwrap().plain_token);
}

async fn deployed(world: &World, slug: &str, auth_mode: &str) -> AppId {
    let id = json!({"id": "f_id", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true});
    let rules = json!({"listRule": "", "viewRule": "", "createRule": "", "updateRule": "", "deleteRule": ""});
    let collection = |kind: &str, name: &str, fields: serde_json::Value| {
        let mut collection = rules.clone();
        let more = json!({"id": format!("c_{name}"), "name": name, "type": kind, "fields": fields, "indexes": []});
        collection.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        collection
    };
    let title = json!({"id": "f_title", "name": "title", "type": "text"});
    let email = json!({"id": "f_email", "name": "email", "type": "email", "system": true});
    let definition: AppDefinition = serde_json::from_value(json!({
        "declaredId": slug, "name": slug, "dialect": "1.0", "authMode": auth_mode,
        "model": {"collections": [collection("base", "notes", json!([id, title])), collection("auth", "users", json!([id, email]))]},
        "operations": [], "operationsJson": {}, "capabilities": [], "limits": {},
    }))
    .unwrap();
    let plan = DeployPlan {
        tenant: world.tenant,
        slug: slug.to_owned(),
        definition: Arc::new(definition),
        release: Digest::of(slug.as_bytes()),
        archive: Digest::of(b"archive"),
        archive_bytes: 7,
        files: BTreeMap::new(),
        ui_files: BTreeMap::new(),
        consented: vec![],
        allow_destructive: false,
        dry_run: false,
    };
    let app = world.store.deploy(&world.call("apps.deploy"), &plan).await.unwrap().app;
    let schema = format!("app_{}", app.uuid().simple());
    let rows = format!("INSERT INTO {schema}.notes (id) VALUES ('n1'); INSERT INTO {schema}.users (id) VALUES ('u1')");
    world.admin.batch_execute(&rows).await.unwrap();
    app
}

#[tokio::test]
async fn a_grant_acts_as_a_user_of_the_app_only_where_there_is_such_a_user() {
    let world = World::new().await;
    let (shared, single) = (deployed(&world, "shared", "multi-user").await, deployed(&world, "single", "none").await);
    let link = |record: &str| Consent { app_record: Some(record.to_owned()), ..consent(world.owner, &SCOPES) };
    for (app, record) in [(shared, "n1"), (shared, "nobody"), (shared, ""), (shared, "u1\0"), (single, "u1")] {
        let refused = decide(&world, app, &link(record)).await.unwrap_err();
        assert_eq!(refused.code, Code::InvalidParameter, "{record:?}");
        assert_eq!(refused.violations[0].field, "appRecord", "{record:?}");
    }
    assert_eq!(world.count("SELECT count(*) FROM inn.grants").await, 0);
    let grant = decide(&world, shared, &link("u1")).await.unwrap();
    assert_eq!(grant.app_record.as_deref(), Some("u1"));
    let wish = NewGrantRequest { app: shared, ..world.wish(&SCOPES) };
    world.store.request_grant(&world.call("x"), &wish).await.unwrap();
    world.admin.batch_execute("UPDATE inn.apps SET status = 'removed'").await.unwrap();
    assert_eq!(code(world.store.approve(&world.call("x"), wish.id, &link("u1")).await), Code::UnknownApp);
}
