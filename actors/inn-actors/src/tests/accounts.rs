//! People who are signed in to an app itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inn_grants::app_token::{Claims, Kind, mint};
use inn_grants::password;
use inn_ports::memory::MEMORY_SECRET;
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, Call, Papers, Place};
use inn_protocol::caller::Caller;
use inn_protocol::receipt::Verb;
use inn_protocol::{AppId, Code};
use serde_json::{Map, Value, json};

use super::support::{World, noon};
use crate::RecordWrite;

fn club(world: &World) -> AppSnapshot {
    let rule = "id = @request.auth.id";
    let definition = json!({
        "declaredId": "club", "name": "Club", "dialect": "1.0", "authMode": "multi-user",
        "model": {"collections": [{
            "id": "users_id", "name": "users", "type": "auth",
            "listRule": rule, "viewRule": rule, "createRule": "", "updateRule": rule, "deleteRule": rule,
            "fields": [
                {"id": "f1", "name": "id", "type": "text", "system": true, "required": true, "primaryKey": true},
                {"id": "f2", "name": "password", "type": "password", "system": true, "required": true, "hidden": true, "min": 8},
                {"id": "f3", "name": "tokenKey", "type": "text", "system": true, "required": true, "hidden": true},
                {"id": "f4", "name": "email", "type": "email", "system": true, "required": true},
                {"id": "f5", "name": "emailVisibility", "type": "bool", "system": true},
                {"id": "f6", "name": "verified", "type": "bool", "system": true},
            ],
        }]},
        "operations": [], "operationsJson": [], "capabilities": [], "limits": {},
    });
    AppSnapshot {
        id: AppId::new(),
        slug: "club".to_owned(),
        definition: Arc::new(serde_json::from_value(definition).unwrap()),
        ..world.app.clone()
    }
}

struct Club {
    world: World,
    app: AppSnapshot,
}

impl Club {
    fn new() -> Self {
        let world = World::new();
        let app = club(&world);
        world.core.put_app(app.clone());
        let club = Self { world, app };
        club.put("ada", "key");
        club
    }

    fn put(&self, id: &str, token_key: &str) {
        let hash = password::hash_of_app("password", [1; 16]).unwrap();
        let row = json!({"id": id, "email": format!("{id}@x.example"), "password": hash, "tokenKey": token_key});
        self.world.core.put_row(self.app.id, "users", row.as_object().cloned().unwrap());
    }

    fn row(&self, id: &str) -> Map<String, Value> {
        self.world.core.row(self.app.id, "users", id).unwrap()
    }

    fn token(id: &str, token_key: &str, expires: i64) -> String {
        let claims = Claims {
            collection_id: "users_id".to_owned(),
            exp: noon().timestamp() + expires,
            id: id.to_owned(),
            refreshable: Some(true),
            kind: Kind::Auth,
            email: None,
            new_email: None,
            jti: None,
        };
        mint(&claims, &MEMORY_SECRET, token_key)
    }

    fn call(&self, action: Action, token: String) -> Call {
        let place = Place::App { slug: "club".to_owned(), own_origin: true };
        Call { place, ..self.world.call(action, Papers::AppUser { token }) }
    }

    async fn caller(&self, token: String) -> &'static str {
        let call = self.call(list(), token);
        self.world.gateway.read(call, |admitted| async move { Ok(admitted.caller.kind()) }).await.unwrap()
    }

    async fn write(
        &self,
        verb: Verb,
        id: Option<&str>,
        body: Value,
        token: String,
    ) -> Result<Map<String, Value>, Code> {
        let entity = "users".to_owned();
        let action = match id {
            None => Action::CreateRecord { entity: entity.clone() },
            Some(id) => Action::UpdateRecord { entity: entity.clone(), id: id.to_owned() },
        };
        let id = id.map(str::to_owned);
        let write = |_: &_| {
            let (entity, id, body) = (entity.clone(), id.clone(), body.clone());
            Ok(RecordWrite { verb, entity, id, body, form: None, fixed: None })
        };
        let written = self.world.gateway.write(self.call(action, token), write).await;
        written.map(|(_, committed)| committed.row).map_err(|refusal| refusal.code)
    }
}

fn list() -> Action {
    Action::ListRecords { entity: "users".to_owned() }
}

#[actix_rt::test]
async fn a_token_that_holds_makes_the_record_the_caller_and_an_entry_under_its_name() {
    let club = Club::new();
    let call = club.call(list(), Club::token("ada", "key", 60));
    let auth = club.world.gateway.read(call, |admitted| async move { Ok(admitted.permit.auth.record.clone()) }).await;
    let auth = auth.unwrap().unwrap();
    assert_eq!((&auth["id"], &auth["collectionName"]), (&json!("ada"), &json!("users")));
    assert!(!auth.contains_key("password") && !auth.contains_key("tokenKey"), "{auth:?}");
    assert_eq!(club.world.outcomes(), ["app_user records.list done"]);
}

#[actix_rt::test]
async fn a_token_that_does_not_hold_makes_a_guest_without_an_entry() {
    let club = Club::new();
    for token in [
        Club::token("ada", "another key", 60),
        Club::token("ada", "key", -1),
        Club::token("nobody", "key", 60),
        "a.b.c".to_owned(),
    ] {
        assert_eq!(club.caller(token).await, "stranger");
    }
    assert!(club.world.outcomes().is_empty());
    assert_eq!(club.caller(Club::token("ada", "key", 60)).await, "app_user");
}

#[actix_rt::test]
async fn a_key_that_changes_under_a_call_ends_the_token_before_the_answer() {
    let club = Club::new();
    let looks = AtomicUsize::new(0);
    let call = club.call(list(), Club::token("ada", "key", 60));
    let read = club.world.gateway.read(call, |admitted| {
        if looks.fetch_add(1, Ordering::Relaxed) == 0 {
            club.put("ada", "new key");
        }
        async move { Ok(matches!(admitted.caller, Caller::AppUser(_))) }
    });
    assert!(!read.await.unwrap(), "what was answered was decided for a guest");
    assert_eq!(looks.load(Ordering::Relaxed), 2);
}

#[actix_rt::test]
async fn a_new_account_has_a_hash_and_a_key_of_its_own() {
    let club = Club::new();
    let body = json!({"email": "bob@x.example", "password": "12345678", "passwordConfirm": "12345678"});
    let row = club.write(Verb::Create, None, body, "a.b.c".to_owned()).await.unwrap();
    let (hash, key) = (row["password"].as_str().unwrap(), row["tokenKey"].as_str().unwrap());
    assert!(password::verify("12345678", hash) && key.len() == 50);
    let id = row["id"].as_str().unwrap();
    assert_eq!(club.caller(Club::token(id, key, 60)).await, "app_user");
}

#[actix_rt::test]
async fn a_password_is_changed_with_the_old_one_and_the_key_with_it() {
    let club = Club::new();
    let change = |old: &str| {
        let body = json!({"password": "new-password", "passwordConfirm": "new-password", "oldPassword": old});
        club.write(Verb::Update, Some("ada"), body, Club::token("ada", "key", 60))
    };
    assert_eq!(change("wrong").await.err(), Some(Code::InvalidValue));
    assert_eq!(club.row("ada")["tokenKey"], "key");
    change("password").await.unwrap();
    let row = club.row("ada");
    assert!(password::verify("new-password", row["password"].as_str().unwrap()));
    assert_ne!(row["tokenKey"], "key");
    assert_eq!(club.caller(Club::token("ada", "key", 60)).await, "stranger");
}

#[actix_rt::test]
async fn the_same_email_again_ends_nothing_and_another_one_is_not_the_callers_to_set() {
    let club = Club::new();
    let set =
        |email: &str| club.write(Verb::Update, Some("ada"), json!({"email": email}), Club::token("ada", "key", 60));
    set("ada@x.example").await.unwrap();
    assert_eq!(club.row("ada")["tokenKey"], "key");
    assert_eq!(set("other@x.example").await.err(), Some(Code::InvalidValue));
}

#[actix_rt::test]
async fn a_token_is_for_the_app_it_was_made_for() {
    let club = Club::new();
    let call = club.world.call(
        Action::ListRecords { entity: "notes".to_owned() },
        Papers::AppUser { token: Club::token("ada", "key", 60) },
    );
    let refused = club.world.gateway.read(call, |_| async { Ok(()) }).await.unwrap_err();
    assert_eq!(refused.code, Code::Unauthenticated);
}
