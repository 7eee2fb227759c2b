//! Accounts of an app's own users: guests, people signed in to the app, and what is theirs.

use inn_protocol::app::{AppSnapshot, AuthMode};
use inn_protocol::call::Action;
use inn_protocol::caller::{AppUser, Caller, Person};
use inn_protocol::people::Role;
use inn_protocol::{AppId, Code, Digest};
use serde_json::{Map, Value, json};

use super::fixture::{
    LOOPBACK, PUBLIC, actions, app, app_id, asked, full_agent, id, key, other_tenant, person, tenant,
};
use crate::access::{Permit, decide_as, is_own_record, manage_rule, sign_in_rule};
use crate::filter::{AuthFacts, matches};

/// The fixture's app, with accounts.
fn club() -> AppSnapshot {
    let mut club = app(AuthMode::MultiUser);
    let mut definition = (*club.definition).clone();
    for (name, options) in [
        ("users", json!({"authRule": "verified = true", "manageRule": "@request.auth.id = 'boss'"})),
        ("staff", json!({"authRule": null})),
    ] {
        definition.model.collections.push(
            serde_json::from_value(json!({
                "id": format!("{name}_id"), "name": name, "type": "auth", "auth": options,
                "fields": [{"id": "b1", "name": "verified", "type": "bool"}],
            }))
            .unwrap(),
        );
    }
    club.definition = std::sync::Arc::new(definition);
    club
}

fn user(app: AppId, record: &str) -> Caller {
    let (collection, record) = ("users".to_owned(), record.to_owned());
    Caller::AppUser(AppUser { app, tenant: tenant(), collection, record, token_key: Digest::of(b"key") })
}

fn auth(collection: &str, verb: &'static str) -> Action {
    Action::AppAuth { collection: collection.to_owned(), record: String::new(), verb }
}

fn as_record(caller: &Caller, action: &Action, record: &str) -> Result<Permit, inn_protocol::Refusal> {
    let facts = AuthFacts::of_record(row(record));
    decide_as(caller, action, Some(&club()), &facts, PUBLIC, chrono::DateTime::UNIX_EPOCH)
}

fn row(id: &str) -> Map<String, Value> {
    let row = json!({"id": id, "collectionId": "users_id", "collectionName": "users", "owner": id});
    row.as_object().cloned().unwrap()
}

#[test]
fn rules_are_evaluated_as_the_record_that_is_signed_in() {
    let mine = Action::ListRecords { entity: "mine".to_owned() };
    let permit = as_record(&user(app_id(), "u1"), &mine, "u1").unwrap();
    let rule = permit.rule.stored().unwrap();
    assert!(matches(rule, &row("u1")) && !matches(rule, &row("u2")));
    assert!(!permit.superuser && !permit.see_hidden);
    let locked = Action::ListRecords { entity: "locked".to_owned() };
    assert_eq!(as_record(&user(app_id(), "u1"), &locked, "u1").unwrap_err().code, Code::Forbidden);
}

#[test]
fn somebody_of_one_app_is_nobody_in_another_and_on_the_platform() {
    let stranger = user(id(AppId::PREFIX, 99), "u1");
    let list = Action::ListRecords { entity: "cards".to_owned() };
    assert_eq!(asked(&stranger, &list, Some(&club()), PUBLIC).unwrap_err().code, Code::UnknownApp);
    let here = user(app_id(), "u1");
    let platform = actions().into_iter().filter(|action| {
        matches!(
            action,
            Action::OwnSession { .. }
                | Action::CreateTenant { .. }
                | Action::ListQueueLimits
                | Action::SetQueueLimit { .. }
                | Action::ListMembers
                | Action::ManageMembers { .. }
                | Action::ListApps
                | Action::Deploy { .. }
                | Action::ManageApp { .. }
                | Action::ListGrants
                | Action::DecideGrant { .. }
                | Action::RevokeGrant { .. }
                | Action::Explain
                | Action::ReadRegister { .. }
                | Action::ReadReceipt { .. }
                | Action::RegisterAgent
                | Action::RequestGrant { .. }
                | Action::TakeToken { .. }
                | Action::Claim
                | Action::Hold { .. }
                | Action::HoldMany
                | Action::ViewGrantRequest { .. }
        )
    });
    let mut seen = 0;
    for action in platform {
        assert!(asked(&here, &action, Some(&club()), PUBLIC).is_err(), "{action:?}");
        assert!(asked(&here, &action, None, PUBLIC).is_err(), "{action:?}");
        seen += 1;
    }
    assert_eq!(seen, 22);
}

#[test]
fn guests_of_an_app_with_accounts_fall_under_its_rules_and_ask_nothing_of_agents() {
    let club = club();
    for guest in [Caller::Stranger, Caller::Visitor] {
        for host in [LOOPBACK, PUBLIC] {
            let create = Action::CreateRecord { entity: "cards".to_owned() };
            assert!(asked(&guest, &create, Some(&club), host).is_ok());
            let locked = Action::ListRecords { entity: "locked".to_owned() };
            assert_eq!(asked(&guest, &locked, Some(&club), host).unwrap_err().code, Code::Forbidden);
            let mine = Action::ListRecords { entity: "mine".to_owned() };
            let permit = asked(&guest, &mine, Some(&club), host).unwrap();
            assert!(!matches(permit.rule.stored().unwrap(), &row("")), "no record is nobody's");
            for operation in ["report", "cards.clear-archived"] {
                let run = Action::RunOperation { operation: operation.to_owned() };
                assert_eq!(asked(&guest, &run, Some(&club), host).unwrap_err().code.status(), 401, "{operation}");
            }
            assert!(
                asked(&guest, &Action::RunOperation { operation: "cards.add".to_owned() }, Some(&club), host).is_ok()
            );
            let ask = Action::Ask { capability: "summarise-board".to_owned() };
            assert_eq!(asked(&guest, &ask, Some(&club), host).unwrap_err().code.status(), 401);
        }
    }
}

#[test]
fn everybody_but_agents_may_try_to_sign_in_where_there_are_accounts() {
    let club = club();
    let owner = Caller::Person(person(Role::Owner));
    for caller in [Caller::Stranger, Caller::Visitor, owner, user(app_id(), "u1")] {
        assert!(asked(&caller, &auth("users", "with-password"), Some(&club), PUBLIC).is_ok());
        assert!(asked(&caller, &auth("_superusers", "with-password"), Some(&club), PUBLIC).is_ok());
        for entity in ["cards", "nothing", "_inner"] {
            let refused = asked(&caller, &auth(entity, "with-password"), Some(&club), PUBLIC).unwrap_err();
            assert_eq!((refused.code, refused.leg), (Code::NotFound, Some("app")), "{entity}");
        }
    }
    for caller in [Caller::Agent(full_agent(Role::Owner)), Caller::Key(key())] {
        assert_eq!(
            asked(&caller, &auth("users", "with-password"), Some(&club), PUBLIC).unwrap_err().code,
            Code::Forbidden
        );
    }
    let mut single = club.clone();
    let mut definition = (*single.definition).clone();
    definition.auth_mode = AuthMode::None;
    single.definition = std::sync::Arc::new(definition);
    let refused = asked(&Caller::Stranger, &auth("users", "with-password"), Some(&single), PUBLIC).unwrap_err();
    assert_eq!((refused.code, refused.leg), (Code::Forbidden, Some("app")));
}

#[test]
fn the_own_account_is_of_one_collection_and_impersonating_is_for_owners() {
    let club = club();
    let ask = |caller: &Caller, action: &Action| asked(caller, action, Some(&club), PUBLIC).map_err(|r| r.code);
    for verb in ["refresh", "request-email-change", "sign-out"] {
        assert!(ask(&user(app_id(), "u1"), &auth("users", verb)).is_ok());
        assert!(ask(&user(app_id(), "u1"), &auth("users_id", verb)).is_ok(), "by id");
        assert_eq!(ask(&user(app_id(), "u1"), &auth("staff", verb)).err(), Some(Code::Forbidden));
        for guest in [Caller::Stranger, Caller::Visitor] {
            assert_eq!(ask(&guest, &auth("users", verb)).err(), Some(Code::Unauthenticated));
        }
    }
    let owner = |tenant| Caller::Person(Person { tenant, ..person(Role::Owner) });
    assert!(ask(&owner(tenant()), &auth("_superusers", "refresh")).unwrap().superuser);
    assert_eq!(ask(&owner(tenant()), &auth("users", "refresh")).err(), Some(Code::Forbidden));
    assert_eq!(
        ask(&Caller::Person(person(Role::Editor)), &auth("_superusers", "refresh")).err(),
        Some(Code::Unauthenticated)
    );
    assert!(ask(&owner(tenant()), &auth("users", "impersonate")).is_ok());
    for caller in [owner(other_tenant()), Caller::Person(person(Role::Editor)), user(app_id(), "u1")] {
        assert_eq!(ask(&caller, &auth("users", "impersonate")).err(), Some(Code::Forbidden));
    }
}

#[test]
fn a_record_is_its_own_by_collection_and_id() {
    let club = club();
    let users = club.definition.model.collection("users").unwrap();
    let staff = club.definition.model.collection("staff").unwrap();
    let facts = AuthFacts::of_record(row("u1"));
    assert!(is_own_record(&facts, users, &row("u1")));
    assert!(!is_own_record(&facts, users, &row("u2")) && !is_own_record(&facts, staff, &row("u1")));
    assert!(!is_own_record(&AuthFacts::nobody(), users, &row("u1")));
    assert!(!is_own_record(&AuthFacts::of_id("u1"), users, &row("u1")), "an id alone says nothing of the collection");
}

#[test]
fn rules_of_signing_in_are_those_of_the_collection() {
    let (club, now) = (club(), chrono::DateTime::UNIX_EPOCH);
    let model = &club.definition.model;
    let (users, staff) = (model.collection("users").unwrap(), model.collection("staff").unwrap());
    let rule = sign_in_rule(&club, users, &AuthFacts::nobody(), now).unwrap().unwrap();
    let verified = |verified: bool| json!({"verified": verified}).as_object().cloned().unwrap();
    assert!(matches(&rule, &verified(true)) && !matches(&rule, &verified(false)));
    assert_eq!(sign_in_rule(&club, staff, &AuthFacts::nobody(), now).unwrap(), None, "null lets nobody in");
    let by = |record: &str| manage_rule(&club, users, &AuthFacts::of_record(row(record)), now).unwrap().unwrap();
    assert!(matches(&by("boss"), &row("u1")) && !matches(&by("u2"), &row("u1")));
    assert_eq!(manage_rule(&club, users, &AuthFacts::nobody(), now).unwrap(), None);
}
